"""The graph of a call whose inputs and outputs are tensors by name, whatever containers the model takes and returns."""

from __future__ import annotations

import inspect
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram

from .keeping import unchanged
from .own_ops import taken_apart
from .patches.overflow import overflow_taken
from ..structures import Path, flatten, identifier, leaf_name
from .swap import replaced


@dataclass
class FlatProgram:
    program: ExportedProgram
    #: graph input to dotted name: {"past_key_values_0_key": "past_key_values.0.key"}
    input_paths: dict[str, str]
    output_names: list[str]
    cpu_seconds: float


def export_flat(
    model: torch.nn.Module,
    run: Callable[[torch.nn.Module, Callable, dict[str, Any]], Any],
    inputs: Mapping[str, Any],
    shapes: Mapping[str, Any],
    *,
    name: Callable[[Path], str] = leaf_name,
    is_input: Callable[[Path], bool] = lambda path: True,
    **options: Any,
) -> FlatProgram:
    """``run(model, the model's own forward, inputs)`` as a graph. ``name`` says how callers know a tensor by its path; those that
    are not ``is_input`` are constants on both sides. ``shapes`` has the axes that vary by graph input; ``options`` go to ``torch.export``. Nothing of the model is changed."""
    leaves, structure = flatten(dict(inputs))
    paths = {identifier(name(path)): name(path) for path, _ in leaves if is_input(path)}
    tensors = {identifier(name(path)): tensor.contiguous() for path, tensor in leaves if is_input(path)}
    output_names: list[str] = []
    original = model.forward

    def forward(**given: torch.Tensor) -> dict[str, torch.Tensor]:
        arguments = structure.rebuild(iter([given.get(identifier(name(path)), tensor) for path, tensor in leaves]))
        with overflow_taken(model):
            results = [(name(path), tensor) for path, tensor in flatten(run(model, original, arguments))[0] if is_input(path)]
        output_names[:] = [each for each, _ in results]
        return {identifier(each): tensor for each, tensor in results}

    kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
    signature = inspect.Signature([inspect.Parameter(each, kind) for each in tensors])
    forward.__signature__ = signature  # type: ignore[attr-defined]  # what inspect looks for
    with torch.no_grad(), replaced(model, "forward", forward), unchanged(model), without_fake_cache():
        start = time.process_time()
        program = torch.export.export(model, (), tensors, dynamic_shapes=shapes, **{"strict": False, **options})
        program = taken_apart(program)
        seconds = time.process_time() - start
    program._example_inputs = None  # torch would serialise them, caches of full size and all
    return FlatProgram(program, paths, output_names, seconds)


def without_fake_cache() -> AbstractContextManager[None]:
    """torch remembers what each op does to tensors without data. Where sizes are symbols, to remember and to look up takes
    longer than to compute: a trace of two layers of Llama takes 4.4 s with and 2.8 s without, of 24 layers as long."""
    import torch._dynamo  # late: it is not needed to import argosy

    return torch._dynamo.config.patch(fake_tensor_cache_enabled=False)
