"""Python processes that start warm: a server has torch and transformers imported, and each request runs in a fork of it.

    python warm.py SERVER_SOCKET        serves until its standard input ends

``warm_python`` starts one and names a program for ARGOSY_PYTHON: it takes what an interpreter takes for ``-m MODULE
ARGUMENT...`` and ``SCRIPT ARGUMENT...``, and runs that in a fork. A fork that crashes takes nothing else along. Importing torch
is a third of what a small export costs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: Names a file that forks add a line to: their CPU seconds. They are no children of who asks for them.
CPU_FILE = "WARM_CPU_FILE"
#: What a fork is asked by: no imports that take time. Other modules of the package take their settings from the environment
#: as they are imported (where the Hub is), so they start cold.
_CLIENT = """#!{python} -ISs
import json, os, socket, sys
if sys.argv[1] == "-m" and not sys.argv[2].startswith(("argosy.capture", "argosy.check")):
    os.execv({python!r}, [{python!r}, *sys.argv[1:]])
server = socket.socket(socket.AF_UNIX)
server.connect({socket!r})
request = json.dumps({{"argv": sys.argv[1:], "cwd": os.getcwd(), "env": dict(os.environ)}}).encode()
socket.send_fds(server, [len(request).to_bytes(8, "little")], [0, 1, 2])
server.sendall(request)
answer = server.recv(1)
os._exit(answer[0] if answer else 134)
"""


class _WarmPython:
    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="argosy-warm-")
        self.socket = str(Path(self._folder.name) / "socket")
        self.program = Path(self._folder.name) / "python"
        self.program.write_text(_CLIENT.format(python=sys.executable, socket=self.socket), encoding="utf-8")
        self.program.chmod(0o755)
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false", "TRANSFORMERS_VERBOSITY": "error",
                       "PYTHONPATH": str(ROOT / "python")}  # fmt: skip
        self._server = subprocess.Popen([sys.executable, __file__, self.socket], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment)
        assert self._server.stdout is not None
        if self._server.stdout.readline() != b"ready\n":
            raise RuntimeError("the warm Python did not start")


@cache
def _started() -> _WarmPython:
    return _WarmPython()


def warm_python() -> str:
    """A program to be named by ARGOSY_PYTHON, one for all that a process asks for. It ends with that process."""
    return str(_started().program)


def renew_threads() -> None:
    """In a fork, before anything else: torch makes its pool of threads anew when it is first asked, and if two threads ask at
    once, as those that load weights do, one of them finds none."""
    import torch

    torch.set_num_threads(1)


def cpu_seconds() -> float:
    """Of this process since it was forked, and of those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def serve(path: str) -> None:
    _warm_up()
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(16)
    print("ready", flush=True)
    import select

    while True:
        readable, _, _ = select.select([listener, sys.stdin], [], [], 1.0)
        _reap()
        if sys.stdin in readable:
            os._exit(0)
        if listener in readable:
            connection, _ = listener.accept()
            if os.fork() == 0:
                listener.close()
                _run(connection)
            connection.close()


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


def _run(connection: socket.socket) -> None:
    """In a fork; does not return."""
    code = 1
    try:
        head, descriptors, _, _ = socket.recv_fds(connection, 8, 3)
        size, data = int.from_bytes(head, "little"), b""
        while len(data) < size:
            data += connection.recv(size - len(data))
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        renew_threads()
        request = json.loads(data)
        os.chdir(request["cwd"])
        os.environ.clear()
        os.environ.update(request["env"])
        threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
        sys.path[:0] = filter(None, request["env"].get("PYTHONPATH", "").split(os.pathsep))
        code = _execute(request["argv"])
        if file := request["env"].get(CPU_FILE):
            with open(file, "a", encoding="utf-8") as times:
                times.write(f"{cpu_seconds():.2f}\n")
    finally:
        # Exit handlers are for the threads that the server has; who asks may be gone already.
        with contextlib.suppress(BaseException):
            sys.stdout.flush()
            sys.stderr.flush()
        with contextlib.suppress(OSError):
            connection.sendall(bytes([code & 255]))
        os._exit(code & 255)


def _end_with(connection: socket.socket) -> None:
    """Ends this fork when who asked for it is ended."""
    with contextlib.suppress(OSError):
        connection.recv(1)
    os.kill(os.getpid(), signal.SIGKILL)


def _execute(argv: list[str]) -> int:
    import runpy
    import traceback

    leave = os._exit
    try:
        os._exit = _raise_exit  # type: ignore[assignment]  # the answer comes first
        if argv[0] == "-m":
            sys.argv = argv[1:]
            runpy.run_module(argv[1], run_name="__main__", alter_sys=True)
        else:
            sys.argv = argv
            runpy.run_path(argv[0], run_name="__main__")
        return 0
    except SystemExit as error:
        return error.code if isinstance(error.code, int) else int(error.code is not None)
    except BaseException:  # noqa: BLE001 - as an interpreter says it
        traceback.print_exc()
        return 1
    finally:
        os._exit = leave


def _raise_exit(code: int) -> None:
    raise SystemExit(code)


def _warm_up() -> None:
    """Imports what captures, checks and comparisons import late, by a capture of a small model."""
    import warnings

    import onnx  # noqa: F401
    import onnxruntime  # noqa: F401
    import safetensors.torch  # noqa: F401
    import torch
    import transformers

    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    transformers.utils.logging.disable_progress_bar()
    from argosy.capture import __main__ as capture
    from argosy.check import twin  # noqa: F401

    with tempfile.TemporaryDirectory() as name:
        config = transformers.LlamaConfig(vocab_size=64, hidden_size=16, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2)
        transformers.LlamaForCausalLM(config).save_pretrained(name)
        capture.main(["--model", name, "-o", f"{name}/warm.capture", "--progress", "off"])


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    serve(sys.argv[1])
