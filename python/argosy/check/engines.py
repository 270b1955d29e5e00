"""The engines that run exports. One is a row of ``ENGINES``: which files it opens, how, and how exact it is."""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from ..line_process import LineProcess, ProcessEnded
from . import executorch_worker, onnx_worker, worker


#: The dtype of exports that compute in float16 where that is safe. They are compared with eager in float32.
MIXED = "mixed16"


def eager_dtype(dtype: str) -> str:
    """That of the eager model beside an export of a dtype."""
    return "float32" if dtype == MIXED else dtype


@dataclass(frozen=True)
class Engine:
    """A row. What opens a file is the function of the same name in ``worker.OPENERS``."""

    name: str
    #: of the files that it opens
    suffix: str
    #: what a file says of itself, and the dtype of its weights; neither loads it
    manifest: Callable[[str], dict[str, Any]]
    dtype: Callable[[str], str]
    #: an export is a folder, with a file for each component
    is_folder: bool = False
    #: memory is reserved when exporting, for sizes that the manifest tells; larger calls are not made
    is_bounded: bool = False
    #: dtypes that "auto" is not for weights of, and what it is instead
    replaced_dtypes: Mapping[str, str] = field(default_factory=dict)
    #: largest difference that is no mistake, against max(1, the largest expected value); for twins
    twin_tolerance: float = 1e-5
    #: the same for real weights, by their dtype
    tolerances: Mapping[str, float] = field(
        default_factory=lambda: {"float64": 1e-6, "float32": 1e-4, "float16": 5e-3, MIXED: 5e-3, "bfloat16": 4e-2}
    )

    def tolerance(self, dtype: str) -> float:
        return self.tolerances.get(dtype, max(self.tolerances.values()))


ENGINES = {
    engine.name: engine
    for engine in (
        Engine("pt2", ".pt2", worker.read_manifest, worker.dtype_of_pt2),
        Engine(
            "onnx",
            ".onnx",
            onnx_worker.read_manifest,
            onnx_worker.dtype_of_onnx,
            is_folder=True,
            replaced_dtypes={"bfloat16": "float32"},
            twin_tolerance=1e-4,
        ),
        Engine(
            "executorch",
            ".pte",
            executorch_worker.read_manifest,
            executorch_worker.dtype_of_executorch,
            is_bounded=True,
            replaced_dtypes={"bfloat16": "float32"},
            twin_tolerance=1e-4,
        ),
    )
}


@dataclass(frozen=True)
class Export:
    """What ``argosy export`` wrote: a file, or a folder with one for each component."""

    engine: Engine
    files: tuple[Path, ...]
    #: of the whole export: components with their interfaces, wiring, model class, task
    manifest: dict[str, Any]

    @property
    def dtype(self) -> str:
        """That of the weights of the largest file."""
        return self.engine.dtype(str(max(self.files, key=lambda file: file.stat().st_size)))

    @property
    def has_components(self) -> bool:
        """Whether what it has takes and returns what the model's components do; not so if it was made for a task."""
        return not self.engine.is_bounded or executorch_worker.has_components(self.manifest)

    @property
    def interfaces(self) -> dict[str, dict[str, Any]]:
        return {component["name"]: component for component in self.manifest["components"]}


def find_export(path: str | Path, engine: str | None = None) -> Export:
    """``engine`` says what a file is whose name does not (one that is not finished yet)."""
    path = Path(path)
    for row in ENGINES.values():
        files = sorted(path.glob(f"*{row.suffix}")) if path.is_dir() else [path]
        if path.exists() and files and (row.name == engine or files[0].suffix == row.suffix):
            return open_files(row, files)
    known = ", ".join(row.suffix for row in ENGINES.values())
    what = f"{path} {'holds' if path.is_dir() else 'is'} nothing that can be run" if path.exists() else f"there is no {path}"
    raise ExportError(what, code="not-found", hint=f"give what argosy export wrote: a file or folder of {known}")


def open_files(engine: Engine, files: list[Path]) -> Export:
    return Export(engine, tuple(files), _manifest(engine, files))


def _manifest(engine: Engine, files: list[Path]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    components: dict[str, dict[str, Any]] = {}
    for file in files:
        try:
            manifest = engine.manifest(str(file))
        except Exception as error:
            raise ExportError(f"{file} cannot be read: {error}", code="corrupt-file", hint="export it again") from error
        merged = {**manifest, **merged}
        components.update({each["name"]: each for each in manifest["components"]})
    return {**merged, "components": list(components.values())}


class EngineError(RuntimeError):
    """What an engine says of a file that it does not open, or of a call that it does not run."""


class EngineProcess(LineProcess):
    """Runs an export in a process of its own, without transformers and argosy. To be used in a with block."""

    def __init__(self, export: Export) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="argosy-check-")
        files = [self._named(file, export.engine.suffix) for file in export.files]
        super().__init__([sys.executable, worker.__file__, export.engine.name, *map(str, files)])
        try:
            self.components: list[str] = self._answer()["components"]
        except BaseException:
            self.close()
            raise

    def _named(self, file: Path, suffix: str) -> Path:
        """``file`` under a name that engines know it by."""
        if file.suffix == suffix:
            return file.absolute()
        link = Path(self._folder.name) / f"export{suffix}"
        link.symlink_to(file.absolute())
        return link

    def call(self, component: str, inputs: Mapping[str, torch.Tensor]) -> tuple[dict[str, torch.Tensor], float]:
        """Flat outputs and the seconds that the engine took. What the engine refuses is an ``EngineError``."""
        given, made = (Path(self._folder.name) / name for name in ("inputs.pt", "outputs.pt"))
        torch.save({name: tensor.detach().contiguous() for name, tensor in inputs.items()}, given)
        self.send({"component": component, "inputs": str(given), "outputs": str(made)})
        answer = self._answer()
        return torch.load(made, weights_only=True), answer["seconds"]

    def _answer(self) -> dict[str, Any]:
        try:
            answer = self.receive()
        except ProcessEnded as error:
            raise EngineError(f"the engine's {error}") from error
        if "error" in answer:
            raise EngineError(answer["error"])
        return answer

    def close(self) -> None:
        super().close()
        self._folder.cleanup()
