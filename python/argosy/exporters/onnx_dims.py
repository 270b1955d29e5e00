"""Names and ranges of the axes that vary, for the inputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..capture.structures import identifier
from .tensors import get_leaf_tensors

Range = tuple[int | None, int | None]


def dims_of(
    exported: torch.export.ExportedProgram,
    inputs: Mapping[str, Any],
    paths: Mapping[str, str],
    dynamic_shapes: Any,
) -> tuple[dict[str, dict[int, str]], dict[str, Range]]:
    """For each graph input the names of its axes that vary, and the ranges of these names.

    An axis for which `dynamic_shapes` has a `Dim` of a name has that one; any other is named by the first input that has its
    size.
    """
    given = dict(_named_dims(inputs, dynamic_shapes))
    symbols: dict[str, str] = {}
    ranges: dict[str, Range] = {}
    found: dict[str, dict[int, str]] = {}
    for node in exported.graph.nodes:
        value = node.meta.get("val")
        if node.op != "placeholder" or node.name not in paths or not isinstance(value, torch.Tensor):
            continue
        for axis, size in enumerate(value.shape):
            if not isinstance(size, torch.SymInt) or not size.node.expr.is_symbol:
                continue
            symbol = str(size.node.expr)
            dim = given.get((paths[node.name], axis))
            if symbol not in symbols:
                symbols[symbol] = dim[0] if dim else f"{identifier(paths[node.name])}_dim_{axis}"
                ranges[symbols[symbol]] = dim[1] if dim else (0, None)
            found.setdefault(node.name, {})[axis] = symbols[symbol]
    return found, ranges


def _named_dims(inputs: Mapping[str, Any], dynamic_shapes: Any) -> Iterator[tuple[tuple[str, int], tuple[str, Range]]]:
    if isinstance(dynamic_shapes, (list, tuple)):
        dynamic_shapes = dict(zip(inputs, dynamic_shapes, strict=False))
    for name, spec in (dynamic_shapes or {}).items():
        if name not in inputs:
            continue
        leaves = get_leaf_tensors({name: inputs[name]})
        specs = list(_leaf_specs(spec)) if len(leaves) != 1 else [spec]
        if len(specs) != len(leaves):
            continue
        for path, each in zip(leaves, specs, strict=True):
            axes = each.items() if isinstance(each, Mapping) else enumerate(each) if isinstance(each, (list, tuple)) else ()
            for axis, dim in axes:
                if hasattr(dim, "min") and hasattr(dim, "__name__"):
                    yield (path, axis), (dim.__name__, (dim.min, dim.max if dim.max < 2**62 else None))


def _leaf_specs(spec: Any) -> Iterator[Any]:
    """What stands for each tensor in the shapes of a container."""
    is_leaf = isinstance(spec, Mapping) and all(isinstance(key, int) for key in spec)
    if spec is None or is_leaf:
        yield spec
    elif isinstance(spec, Mapping):
        for part in spec.values():
            yield from _leaf_specs(part)
    elif isinstance(spec, (list, tuple)):
        for part in spec:
            yield from _leaf_specs(part)
