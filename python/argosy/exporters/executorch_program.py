"""What `ExecutorchExporter` returns: a program of ExecuTorch in memory, whose weights are those of the live model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TextIO

import torch

from ..check import executorch_worker
from ..errors import ExportError
from .float32 import widened
from .tensors import get_leaf_tensors

if TYPE_CHECKING:
    from .._core import ExecutorchModel

METHOD = "forward"


class ExecutorchProgram:
    """An exported model. It reads the weights of the model that it was made from when it is saved or first run.

    ::

        program = ExecutorchExporter().export(model, inputs, ExecutorchConfig(dynamic=True))
        program.save("model.pte")
        logits, *caches = program(**inputs)   # in ExecuTorch's runtime
    """

    def __init__(
        self,
        core: ExecutorchModel,
        input_names: list[str],
        output_names: list[str],
        exported_program: torch.export.ExportedProgram,
        weights: list[torch.Tensor],
        notes: list[str],
        dims: Mapping[str, Sequence[int | str]],
    ) -> None:
        self._core = core
        self._dims = dims  # of inputs: sizes, or names of those that vary
        self._weights = weights  # the core holds addresses only
        self._call: Callable[[Sequence[Any]], list[Any]] | None = None
        self._folder: tempfile.TemporaryDirectory | None = None
        #: Of the method, in order. A tensor inside a cache or another container has a dotted name.
        self.input_names = input_names
        self.output_names = output_names
        #: The method's, by its name.
        self.exported_programs = {METHOD: exported_program}
        #: What was left out or fixed, a line each.
        self.notes = notes

    @property
    def methods(self) -> set[str]:
        """Names of what the program can run."""
        return {METHOD}

    def exported_program(self, method: str = METHOD) -> torch.export.ExportedProgram:
        """What a method was made from."""
        return self.exported_programs[method]

    @property
    def arenas(self) -> list[int]:
        """Bytes that the method needs besides its weights: what one call computes, and states that it keeps."""
        return list(self._core.arenas)

    @property
    def buffer(self) -> bytes:
        """The whole file, made anew each time."""
        with tempfile.TemporaryDirectory(prefix="argosy-executorch-") as folder:
            path = Path(folder) / "model.pte"
            self.save(path)
            return path.read_bytes()

    @property
    def executorch_program(self) -> Any:
        """The program as ExecuTorch's own package reads it: ``executorch.exir.schema.Program``."""
        from executorch.exir._serialize._program import deserialize_pte_binary

        return deserialize_pte_binary(self.buffer).program

    def dump_executorch_program(self, verbose: bool = False, out: TextIO | None = None) -> None:
        """Prints the instructions of the program, with `verbose` all of it."""
        from executorch.exir.print_program import pretty_print, print_program

        (pretty_print if verbose else print_program)(self.executorch_program, out=out)

    def write_tensor_data_to_file(self, outdir: str | os.PathLike) -> None:
        """Writes nothing: all weights are in the program itself."""

    def save(self, path: str | os.PathLike) -> None:
        """Writes the program; its name should end in ``.pte``."""
        self._core.save(os.fspath(path))

    def write_to_file(self, file: BinaryIO | str | os.PathLike) -> None:
        """Writes the program to an open file, or as `save` does."""
        if isinstance(file, (str, os.PathLike)):
            self.save(file)
            return
        with tempfile.TemporaryDirectory(prefix="argosy-executorch-") as folder:
            path = Path(folder) / "model.pte"
            self.save(path)
            with path.open("rb") as source:
                while block := source.read(1 << 24):
                    file.write(block)

    def release(self) -> None:
        """Closes the program in the runtime, if it was run."""
        self._call = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the program on the arguments that the module takes; returns its tensors in order."""
        given = widened(get_leaf_tensors({**dict(zip(self._arguments(), args, strict=False)), **kwargs}))
        self._check(given)
        if self._call is None:
            self._folder = tempfile.TemporaryDirectory(prefix="argosy-executorch-")
            path = Path(self._folder.name) / "model.pte"
            self.save(path)
            try:
                self._call = executorch_worker.open_method(executorch_worker.open_program(path), METHOD)
            except ModuleNotFoundError as error:
                raise ExportError("ExecuTorch's runtime is not there", code="not-found", hint="pip install executorch") from error
        try:
            return tuple(self._call([given[name] for name in self.input_names]))
        except RuntimeError as error:
            raise ExportError(f"the program does not run: {error}", code="engine-failed",
                              hint="sizes beyond the bounds that memory is reserved for need an export with larger ones") from error  # fmt: skip

    def outputs_by_name(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """What a call gives, by the names that the module's outputs have."""
        return dict(zip(self.output_names, self(**inputs), strict=True))

    def _arguments(self) -> list[str]:
        """The arguments of the module that have tensors, in order."""
        return list(dict.fromkeys(name.split(".")[0] for name in self.input_names))

    def _check(self, given: Mapping[str, torch.Tensor]) -> None:
        missing = [name for name in self.input_names if name not in given]
        unknown = [name for name in given if name not in self.input_names]
        if missing or unknown:
            texts = [f"it also takes {', '.join(missing)}"] if missing else []
            texts += [f"it has no input {', '.join(unknown)}"] if unknown else []
            raise ExportError(
                f"the program cannot be called like that: {'; '.join(texts)}",
                code="invalid-input",
                hint="give what the model was exported with; prepare_for_export adds what it computes from inputs",
            )
        try:
            for name, dims in self._dims.items():  # the runtime takes a tensor of any size that fits into memory
                sizes = given[name].shape
                if other := [f"{size} where it takes {dim}" for size, dim in zip(sizes, dims, strict=False) if isinstance(dim, int) and size != dim]:
                    raise ValueError(f"{name} has {', '.join(other)}")
            executorch_worker.check_sizes(given, self._dims)
        except ValueError as error:
            raise ExportError(f"the program cannot be called like that: {error}", code="invalid-input",
                              hint="give inputs whose sizes go together, as those of the export did") from error  # fmt: skip

    def __repr__(self) -> str:
        return f"ExecutorchProgram(inputs={self.input_names}, outputs={self.output_names})"
