"""Runs blocks of a page in a folder of its own, as a reader would from top to bottom."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from blocks import Block
from warm import warm_python

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parents[1]
PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
TIMEOUT = 1200  # seconds: a busy machine is slow


class BlockFailed(Exception):
    pass


def package_folder(folder: Path) -> Path:
    """A folder for PYTHONPATH with the package of the sources and its built extension, as an installation has them."""
    package = folder / "argosy"
    package.mkdir(parents=True)
    for each in (REPOSITORY / "python/argosy").iterdir():
        if each.name != "__pycache__":
            (package / each.name).symlink_to(each)
    built = [*PROGRAM.parents[1].glob("lib/python*/site-packages/argosy/_core*.so")]
    built += (REPOSITORY / "build/release/apps/python").glob("_core*.so")
    if not built:
        raise FileNotFoundError("the extension is not built: cmake --build --preset release")
    (package / built[0].name).symlink_to(built[0])
    return folder


def reader_environment(package: Path, cache: Path, programs: Path, **more: str) -> dict[str, str]:
    """What a reader who has installed the package has: `argosy` and `python` on the path, and a cache."""
    programs.mkdir()
    (programs / "argosy").symlink_to(PROGRAM)
    for name in ("python", "python3"):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
        (programs / name).chmod(0o755)
    kept = {name: value for name, value in os.environ.items() if name not in ("ARGOSY_SCHEMAS", "PYTHONPATH")}
    return {
        **kept,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(package),
        "ARGOSY_BIN": str(PROGRAM),
        "ARGOSY_PYTHON": warm_python(),
        "ARGOSY_CACHE": str(cache),
        "OMP_NUM_THREADS": "1",
        **more,
    }


@dataclass
class PageRun:
    folder: Path
    environment: dict[str, str]
    #: folder of an installation, where C++ finds the library
    prefix: Callable[[], Path]
    #: where `import … from '@huggingface/transformers'` finds it
    node: str | None = None
    node_modules: Path | None = None
    _python: subprocess.Popen[str] | None = field(default=None, init=False)

    def run(self, block: Block) -> None:
        """Raises BlockFailed."""
        if block.is_shell:
            return self._shell(block.commands(), block)
        runners = {"python": self._run_python, "cpp": self._cpp, "js": self._js, "json": self._json, "ir": self._ir,
                   "console": self._console}  # fmt: skip
        if block.language not in runners:
            raise BlockFailed(f"{block}: nothing runs {block.language}; a marker before it says why: <!-- not run: … -->")
        runners[block.language](block)

    def close(self) -> None:
        if self._python is not None:
            self._python.stdin.close()
            self._python.stdout.close()
            self._python.wait()

    def _start(self, command: list[object], what: object, folder: Path | None = None) -> None:
        done = subprocess.run(
            [str(part) for part in command], cwd=folder or self.folder, env=self.environment, text=True, timeout=TIMEOUT,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        if done.returncode != 0:
            raise BlockFailed(f"{what}: exit code {done.returncode}\n{done.stdout[-6000:]}")

    def _shell(self, commands: str, block: Block) -> None:
        self._start(["bash", "-xeuo", "pipefail", "-c", commands], block)

    def _run_python(self, block: Block) -> None:
        if self._python is None:
            self._python = subprocess.Popen(
                [sys.executable, HERE / "page_python.py"], cwd=self.folder, env=self.environment, text=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            )  # fmt: skip
        self._python.stdin.write(json.dumps({"name": str(block), "code": block.text}) + "\n")
        self._python.stdin.flush()
        for line in self._python.stdout:
            # What C++ prints comes in between.
            if line.startswith('{"failure"'):
                if failure := json.loads(line)["failure"]:
                    raise BlockFailed(f"{block}\n{failure}")
                return
        raise BlockFailed(f"{block}: Python ended with {self._python.wait()}")

    def _cpp(self, block: Block) -> None:
        """The block is a whole program."""
        source = self.folder / f"cpp{block.line}"
        source.mkdir()
        (source / "main.cpp").write_text(block.text)
        preamble = (REPOSITORY / "examples/cpp/CMakeLists.txt").read_text().partition("foreach")[0]
        target = "add_executable(block main.cpp)\ntarget_link_libraries(block PRIVATE argosy::argosy)\n"
        (source / "CMakeLists.txt").write_text(preamble + target)
        self._start(["cmake", "-S", source, "-B", source / "build", f"-DCMAKE_PREFIX_PATH={self.prefix()}"], block)
        self._start(["cmake", "--build", source / "build"], block)
        self._start([source / "build/block"], block)

    def _js(self, block: Block) -> None:
        if self.node is None or self.node_modules is None:
            raise BlockFailed(f"{block}: Node or transformers.js is not installed; tools/setup does it")
        modules = self.folder / "node_modules"
        if not modules.exists():
            modules.symlink_to(self.node_modules)
        script = self.folder / "block.mjs"
        script.write_text(block.text)
        self._start([self.node, script], block)

    def _json(self, block: Block) -> None:
        try:
            json.loads(block.text)
        except ValueError as error:
            raise BlockFailed(f"{block}: {error}") from error

    def _console(self, block: Block) -> None:
        """A session that tests/terminal records."""
        recorded = (REPOSITORY / "tests/golden/terminal").glob("*.txt")
        if not any(block.text == file.read_text(encoding="utf-8") for file in recorded):
            raise BlockFailed(f"{block}: is no recorded session as it is; run tools/record_sessions --update")

    def _ir(self, block: Block) -> None:
        file = self.folder / f"line{block.line}.ir"
        file.write_text(block.text)
        self._start([PROGRAM, "opt", file, "--passes=verify"], block)
