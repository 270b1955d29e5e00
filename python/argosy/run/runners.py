"""The engines that run bundles, one row each, and the process that one runs in."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..errors import ExportError
from ..line_process import LineProcess, ProcessEnded
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
    #: answers "feed" with the logits of each piece of a prompt
    gives_logits: bool = False
    #: what of "sampling" it lacks
    draws_without: tuple[str, ...] = ()
    is_node: bool = False

    def command(self, bundle: Bundle, python: str | None = None, on_cpu: bool = False) -> list[str]:
        folder = bundle.folder.absolute()
        script = str(_HERE / self.script)
        if not self.is_node:
            return [python or sys.executable, script, self.name, str(folder), *(["--cpu"] if on_cpu else [])]
        node = shutil.which("node")
        if node is None:
            raise EngineMissing(f"{self.title} is not there (no node): {self.install}")
        return [node, script, str(folder), *([bundle.variant] if bundle.variant else [])]


RUNNERS = {
    row.name: row
    for row in (
        Runner("genai", "ONNX Runtime GenAI", "worker.py", "pip install onnxruntime-genai", batches=True,
               pads_behind=True, gives_logits=True),
        Runner("transformersjs", "transformers.js", "transformersjs_worker.cjs",
               "install Node 20, then npm install @huggingface/transformers here, or name its node_modules by NODE_PATH",
               batches=True, own_settings=True, is_node=True, draws_without=("top_p",)),
        Runner("optimum", "Optimum", "worker.py",
               "pip install optimum-onnx[onnxruntime], in an environment of its own (name its Python by ARGOSY_PYTHON)",
               batches=True, own_settings=True),
        Runner("executorch", "ExecuTorch", "worker.py", "pip install executorch"),
    )
}  # fmt: skip


def find_runner(bundle: Bundle) -> Runner:
    if (runner := RUNNERS.get(bundle.engine)) is not None:
        return runner
    names = ", ".join(RUNNERS)
    if bundle.engine == "plain":
        raise ExportError(f"{bundle.folder} is a plain bundle: graphs for ONNX Runtime, which has no loop that generates",
                          code="unsupported-feature", hint=f"export it again with --for one of {names}")  # fmt: skip
    raise ExportError(f"{bundle.folder} is for {bundle.engine!r}, which nothing here can run",
                      code="unsupported-feature", hint=f"bundles are run for {names}")  # fmt: skip


class RunError(RuntimeError):
    """What an engine says of a bundle that it does not open, or of a request that it does not carry out."""


class EngineMissing(RunError):
    """The engine is not installed; the text says what to install."""


class BundleProcess(LineProcess):
    """A bundle, opened by its engine in a process of its own. To be used in a with block. ``python``: the interpreter of an
    engine that has an environment of its own. ``on_cpu``: whatever device the bundle is for, as far as the engine has a choice."""

    def __init__(self, bundle: Bundle, python: str | None = None, on_cpu: bool = False) -> None:
        self.runner = find_runner(bundle)
        super().__init__(self.runner.command(bundle, python, on_cpu))
        try:
            #: "version" of the engine, "seconds" that opening took
            self.opened: dict[str, Any] = self._answer()
        except BaseException:
            self.close()
            raise

    def ask(self, request: dict[str, Any], on_piece: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
        """Carries out a request; pieces of text are handed on as they come."""
        self.send(request)
        return self._answer(on_piece)

    def _answer(self, on_piece: Callable[[str], None] = lambda text: None) -> dict[str, Any]:
        while True:
            try:
                answer = self.receive()
            except ProcessEnded as error:
                raise RunError(f"{self.runner.title}'s {error}") from error
            if "piece" in answer:
                on_piece(answer["piece"])
            elif "missing" in answer:
                raise EngineMissing(f"{self.runner.title} is not there ({answer['missing']}): {self.runner.install}")
            elif "error" in answer:
                raise RunError(answer["error"])
            else:
                return answer
