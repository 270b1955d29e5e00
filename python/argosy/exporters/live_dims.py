"""Names and ranges of the axes that vary, for the inputs of a model."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import torch

from ..capture.dims import Dims
from ..capture.guards import Guard, kept_guards, within_guards
from ..capture.structures import flatten, identifier
from ..errors import ExportError
from ..observer.calls import is_setting
from .tensors import get_leaf_tensors

Range = tuple[int | None, int | None]


def dims_and_guards(
    exported: torch.export.ExportedProgram, inputs: Mapping[str, Any], paths: Mapping[str, str], dynamic_shapes: Any
) -> tuple[Dims, list[Guard]]:
    """Names and ranges of the axes that vary, and what else the graph needs of their sizes."""
    names, ranges = _dims_of(exported, inputs, paths, dynamic_shapes)
    dims = Dims(names, ranges)
    guards = kept_guards(exported, dims)
    return within_guards(dims, guards), guards


def guard_notes(guards: list[Guard]) -> list[str]:
    """A line for each condition that the graph needs."""
    return [f"the model is right where {guard.condition}{f' ({guard.where})' if guard.where else ''}" for guard in guards]


def _dims_of(
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
    for path, spec in specs_by_path(inputs, dynamic_shapes).items():
        axes = spec.items() if isinstance(spec, Mapping) else enumerate(spec) if isinstance(spec, (list, tuple)) else ()
        for axis, dim in axes:
            if hasattr(dim, "min") and hasattr(dim, "__name__"):
                yield (path, axis), (dim.__name__, (dim.min, dim.max if dim.max < 2**62 else None))


def specs_by_path(inputs: Mapping[str, Any], dynamic_shapes: Any) -> dict[str, Any]:
    """What ``dynamic_shapes``, as torch.export takes it, says of each tensor."""
    found: dict[str, Any] = {}
    for name, spec in shapes_by_argument(inputs, dynamic_shapes).items():
        if spec is not None:
            found.update(_specs(name, inputs[name], spec))
    return found


def shapes_by_argument(inputs: Mapping[str, Any], dynamic_shapes: Any) -> dict[str, Any]:
    """What ``dynamic_shapes`` says of each of ``inputs``. Arguments that came by ``**kwargs`` may be nested under its name; what
    is no input, like a flag, has no shape."""
    if isinstance(dynamic_shapes, (list, tuple)):
        dynamic_shapes = dict(zip(inputs, dynamic_shapes, strict=False))
    given = dict(dynamic_shapes or {})
    for name, spec in (dynamic_shapes or {}).items():
        if name not in inputs and isinstance(spec, Mapping):
            given.update(spec)
    return {name: given.get(name) for name in inputs}


def _specs(path: str, value: Any, spec: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, torch.Tensor):
        yield path, spec
    elif isinstance(value, Mapping) and isinstance(spec, Mapping):
        for key, part in value.items():
            if spec.get(key) is not None:
                yield from _specs(f"{path}.{key}", part, spec[key])
    elif isinstance(value, (list, tuple)) and isinstance(spec, (list, tuple)) and len(value) == len(spec):
        for i, (part, each) in enumerate(zip(value, spec, strict=True)):
            if each is not None:
                yield from _specs(f"{path}.{i}", part, each)
    else:  # a cache: shapes are those of its tensors in order
        leaves, specs = list(get_leaf_tensors({path: value})), list(_leaf_specs(spec))
        everything = [each for each, _ in flatten(value)[0]]
        if len(specs) == len(everything):  # also those that merely describe a layer
            specs = [each for each, place in zip(specs, everything, strict=True) if not is_setting((path, *place))]
        if len(leaves) != len(specs):
            raise ExportError(
                f"dynamic_shapes has {len(specs)} shapes for {path}, which has {len(leaves)} tensors",
                code="invalid-input",
                hint=f"give one for each of {', '.join(leaves[:4])}{', …' if len(leaves) > 4 else ''}",
            )
        yield from zip(leaves, specs, strict=True)


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
