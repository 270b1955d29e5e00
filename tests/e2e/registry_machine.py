"""A machine without Python that asks a registry, and servers that are none."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cli_tool import REPOSITORY
from lonely_program import copy_program

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
MODEL = REPOSITORY / "tests/fixtures/trained-decoder"


@dataclass
class Machine:
    """A machine without Python: the program alone, an empty cache, no keys that are trusted."""

    folder: Path
    program: Path = field(init=False)

    def __post_init__(self) -> None:
        self.folder.mkdir(exist_ok=True)
        self.program = copy_program(PROGRAM, self.folder)

    def run(self, *arguments: str | Path, code: int = 0, **variables: str) -> str:
        """What it says on both streams."""
        environment = {**os.environ, "ARGOSY_CACHE": str(self.folder / "cache"), "ARGOSY_PYTHON": "/nonexistent/python",
                       "XDG_CONFIG_HOME": str(self.folder / "settings"), **variables}  # fmt: skip
        for name in ("ARGOSY_REGISTRY", "ARGOSY_REGISTRY_KEYS"):
            if name not in variables:
                environment.pop(name, None)
        done = subprocess.run([str(self.program), *map(str, arguments)], capture_output=True, text=True, env=environment,
                              timeout=120)  # fmt: skip
        assert done.returncode == code, done.stdout + done.stderr
        return done.stdout + done.stderr

    def capture(self, registry: object, key: str, code: int = 0, **variables: str) -> str:
        return self.run("capture", "--model", MODEL, "-o", self.folder / "out.capture", "--registry", str(registry), "--registry-key",
                        key, "--log-level", "info", code=code, **variables)  # fmt: skip

    def export(self, registry: object, key: str, code: int = 0) -> str:
        return self.run("export", "pt2", "--model", MODEL, self.folder / "out.pt2", "--registry", str(registry), "--registry-key", key,
                        "--log-level", "info", code=code)  # fmt: skip


def refused(machine: Machine, registry: object, key: str, words: str) -> str:
    said = machine.capture(registry, key, code=1)
    warning = next((line for line in said.splitlines() if "the registry is not used" in line), "")
    assert re.search(words, warning), said
    assert "no program" in said  # and Python is not there
    return said


@contextlib.contextmanager
def refusing(answer: bytes | Callable[[bytes], Iterator[bytes]]) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says the same to everybody, or what a function makes of the request; and what it was asked."""
    requests: list[bytes] = []
    listening = socket.create_server(("127.0.0.1", 0))
    stop = threading.Event()

    def serve(client: socket.socket) -> None:
        with client, contextlib.suppress(OSError):
            request = client.recv(4096)
            requests.append(request)
            for part in answer(request) if callable(answer) else [answer]:
                if stop.is_set():
                    return
                client.sendall(part)

    def accept() -> None:
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=serve, args=(listening.accept()[0],), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}", requests
    finally:
        stop.set()
        listening.close()


def http(body: bytes = b"", status: str = "200 OK", **headers: object) -> bytes:
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + body
