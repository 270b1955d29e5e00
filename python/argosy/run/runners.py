"""The engines that run bundles, one row each, and the process that one runs in."""

from __future__ import annotations

import contextlib
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from ..errors import ExportError
from .bundles import Bundle

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Runner:
    """A row. Its script takes the bundle's folder and answers lines of JSON (see ``worker.py``)."""

    name: str
    title: str
    script: str
    #: what to do if the engine is not there
    install: str
    #: batches of prompts of different lengths, in one run
    batches: bool = False
    #: the padding of such batches is behind the prompts
    pads_behind: bool = False
    #: penalties, forced and suppressed tokens of generation_config.json count
    own_settings: bool = False
    is_node: bool = False

    def command(self, folder: Path, python: str | None = None) -> list[str]:
        script = str(_HERE / self.script)
        if not self.is_node:
            return [python or sys.executable, script, self.name, str(folder)]
        node = shutil.which("node")
        if node is None:
            raise EngineMissing(f"{self.title} is not there (no node): {self.install}")
        return [node, script, str(folder)]


RUNNERS = {
    row.name: row
    for row in (
        Runner("genai", "ONNX Runtime GenAI", "worker.py", "pip install onnxruntime-genai", batches=True,
               pads_behind=True),
        Runner("transformersjs", "transformers.js", "transformersjs_worker.cjs",
               "install Node 20, then npm install @huggingface/transformers here, or name its node_modules by NODE_PATH",
               batches=True, own_settings=True, is_node=True),
        Runner("optimum", "Optimum", "worker.py",
               "pip install optimum-onnx[onnxruntime], in an environment of its own (name its Python by ARGOSY_PYTHON)",
               batches=True, own_settings=True),
    )
}  # fmt: skip


def find_runner(bundle: Bundle) -> Runner:
    if (runner := RUNNERS.get(bundle.engine)) is not None:
        return runner
    names = ", ".join(RUNNERS)
    if bundle.engine == "plain":
        raise ExportError(f"{bundle.folder} is a plain bundle: graphs for ONNX Runtime, which has no loop that generates",
                          code="unsupported-feature", hint=f"export it again with --for one of {names}")  # fmt: skip
    raise ExportError(f"{bundle.folder} is for {bundle.engine!r}, which is none of the engines that are known here",
                      code="unsupported-feature", hint=f"bundles are run for {names}")  # fmt: skip


class RunError(RuntimeError):
    """What an engine says of a bundle that it does not open, or of a request that it does not carry out."""


class EngineMissing(RunError):
    """The engine is not installed; the text says what to install."""


class BundleProcess:
    """A bundle, opened by its engine in a process of its own. To be used in a with block. ``python``: the interpreter of an
    engine that has an environment of its own."""

    def __init__(self, bundle: Bundle, python: str | None = None) -> None:
        self.runner = find_runner(bundle)
        command = self.runner.command(bundle.folder.absolute(), python)
        self._errors = tempfile.TemporaryFile("w+")
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors,
                                         text=True, encoding="utf-8")  # fmt: skip
        try:
            #: "version" of the engine, "seconds" that opening took
            self.opened: dict[str, Any] = self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, request: dict[str, Any], on_piece: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
        """Carries out a request; pieces of text are handed on as they come."""
        assert self._process.stdin is not None
        with contextlib.suppress(BrokenPipeError):  # a process that has ended gives no answer either
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        return self._answer(on_piece)

    def _lines(self) -> Iterator[dict[str, Any]]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            yield json.loads(line)
        self._process.wait()
        self._errors.seek(0)
        said = [line for line in self._errors.read().splitlines() if line.strip()]
        raise RunError(f"{self.runner.title}'s process ended with {self._process.returncode}{': ' + said[-1][:300] if said else ''}")

    def _answer(self, on_piece: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
        for answer in self._lines():
            if "piece" in answer:
                on_piece(answer["piece"])
            elif "missing" in answer:
                raise EngineMissing(f"{self.runner.title} is not there ({answer['missing']}): {self.runner.install}")
            elif "error" in answer:
                raise RunError(answer["error"])
            else:
                return answer
        raise AssertionError

    def close(self) -> None:
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):
                    stream.close()
        self._process.wait()
        self._errors.close()

    def __enter__(self) -> BundleProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
