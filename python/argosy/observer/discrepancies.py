"""Runs recorded calls through an exported program and measures how far its outputs are from the recorded ones."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from ..structures import identifier
from ..compare import difference
from ..errors import ExportError
from .alignment import Alignment
from .calls import Call, copy_value, named_tensors, output_tensors

Runner = Callable[[Call], Any]


def check_calls(
    program: Any, calls: Sequence[Call], alignment: Alignment, atol: float, rtol: float, progress_bar: bool
) -> list[dict[str, Any]]:
    run = make_runner(program, alignment)
    rows = []
    for index, call in enumerate(_progress(calls, progress_bar)):
        row: dict[str, Any] = {
            "index": index,
            "ok": False,
            "abs": None,
            "rel": None,
            ">0.1": None,
            ">0.01": None,
            "seconds_model": call.seconds,
            "seconds_program": None,
            "inputs": " ".join(f"{name}:{'x'.join(map(str, shape))}" for name, shape in call.shapes.items()),
            "error": None,
        }
        rows.append(row)
        start = time.perf_counter()
        try:
            outputs = run(call)
        except Exception as error:  # A program may fail in any way; the row says how, and the other calls still count.
            row["error"] = f"{type(error).__name__}: {error}"
            continue
        row["seconds_program"] = time.perf_counter() - start
        row.update(compare(output_tensors(call.outputs), output_tensors(outputs), atol, rtol))
    return rows


def compare(
    expected: dict[str, torch.Tensor], actual: dict[str, torch.Tensor], atol: float, rtol: float
) -> dict[str, Any]:
    """The columns of a row. Outputs are paired by their order; values below ``atol / rtol`` are judged by `atol` alone."""
    found = difference(expected, actual, by_order=True, floor=atol / rtol if rtol > 0 else 1e-12)
    if found.error:
        return {"ok": False, "error": found.error}
    return {"ok": found.abs <= atol and found.rel <= rtol, **found.columns()}


def make_runner(program: Any, alignment: Alignment) -> Runner:
    """What runs a call: a file ``.pt2`` or ``.onnx``, an ExportedProgram, a module or any other callable."""
    if isinstance(program, (str, os.PathLike)):
        path = Path(program)
        if not path.exists():
            raise ExportError(f"{path} does not exist", code="not-found", hint="export the model to this path first")
        if path.suffix == ".onnx":
            return _onnx_runner(path, alignment)
        if path.suffix != ".pt2":
            raise ExportError(f"{path.name} is neither .pt2 nor .onnx", code="invalid-input", hint="give one of these")
        program = torch.export.load(path)
    if isinstance(program, torch.export.ExportedProgram):
        return _exported_runner(program, alignment)
    if not callable(program):
        raise ExportError(
            f"a {type(program).__name__} cannot be run",
            code="invalid-input",
            hint="give a .pt2 or .onnx file, an ExportedProgram or a callable",
        )

    def run_callable(call: Call) -> Any:
        args, kwargs = copy_value((call.args, call.kwargs))
        with torch.no_grad():
            return program(*args, **kwargs)

    return run_callable


def _exported_runner(program: torch.export.ExportedProgram, alignment: Alignment) -> Runner:
    module = program.module()
    positional, named = program.call_spec.in_spec.children()
    names = list(named.context)

    def run_exported(call: Call) -> Any:
        # The program may have been exported with some arguments by position, or without a constant of the calls.
        arguments = copy_value(alignment.complete(call))
        args = [arguments.pop(name) for name in list(arguments)[: positional.num_children]]
        with torch.no_grad():
            return module(*args, **{name: arguments[name] for name in names})

    return run_exported


def split_arguments(arguments: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Those of ``*args`` as a tuple, the others by name."""
    positional = [name for name in arguments if name.split(".")[-1].isdigit()]
    rest = {name: value for name, value in arguments.items() if name not in positional}
    return tuple(arguments[name] for name in positional), rest


def _onnx_runner(path: Path, alignment: Alignment) -> Runner:
    try:
        import onnxruntime
    except ImportError as error:
        raise ExportError(
            "onnxruntime is not installed", code="not-found", hint="pip install onnxruntime, then check again"
        ) from error
    session = onnxruntime.InferenceSession(str(path), providers=["CPUExecutionProvider"])
    inputs = [item.name for item in session.get_inputs()]

    def run_onnx(call: Call) -> Any:
        tensors = named_tensors(alignment.complete(call))
        feeds = {name: _to_numpy(tensor) for name, tensor in _match_inputs(inputs, tensors).items()}
        return [torch.from_numpy(value) for value in session.run(None, feeds)]

    return run_onnx


def _match_inputs(inputs: list[str], tensors: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Tensors by the names that the graph gives them; by position where it has as many and names them otherwise."""
    by_name = {**{identifier(name): tensor for name, tensor in tensors.items()}, **tensors}
    if all(name in by_name for name in inputs):
        return {name: by_name[name] for name in inputs}
    if len(inputs) == len(tensors):
        return dict(zip(inputs, tensors.values(), strict=True))
    raise ValueError(f"the graph's inputs {inputs} do not match the observed tensors {list(tensors)}")


def _to_numpy(tensor: torch.Tensor) -> Any:
    return tensor.detach().cpu().contiguous().numpy()


def _progress(calls: Sequence[Call], wanted: bool) -> Any:
    if not wanted:
        return calls
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return calls
    return tqdm(calls, desc="calls")
