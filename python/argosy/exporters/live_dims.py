"""Names and ranges of the axes that vary, for the inputs of a model."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch

from ..capture.dims import Dims, may_be_empty
from ..capture.guards import Guard, equal_sizes, kept_guards, within_guards
from ..structures import flatten, identifier
from ..errors import ExportError
from ..observer.calls import is_setting
from .tensors import get_leaf_tensors

Range = tuple[int, int | None]
#: What masks have a place for each element of.
_MASKED = ("input_ids", "inputs_embeds", "input_values", "input_features")


def dims_and_guards(
    exported: torch.export.ExportedProgram, inputs: Mapping[str, Any], paths: Mapping[str, str], dynamic_shapes: Any
) -> tuple[Dims, list[Guard]]:
    """Names and ranges of the axes that vary, and what else the graph needs of their sizes."""
    dims = _dims_of(exported, inputs, paths, dynamic_shapes)
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
) -> Dims:
    """For each graph input the names of its axes that vary, the ranges of these names, and which are sums of others.

    An axis for which `dynamic_shapes` has a `Dim` of a name has that one; any other is named by the first input that has its
    size.
    """
    given = dict(_named_dims(inputs, dynamic_shapes))
    axes = _free_axes(exported, paths)
    order = [size.node.expr for size in axes.values()]
    equal = equal_sizes(exported, order, _alike({(paths[node], axis): size for (node, axis), size in axes.items()}))
    names: dict[sympy.Expr, str] = {}
    dims = Dims()
    for (node, axis), symbol in zip(axes, order, strict=True):
        dim = given.get((paths[node], axis))
        size = equal.get(symbol, symbol)
        if size not in names:
            names[size] = dim[0] if dim else f"{identifier(paths[node])}_dim_{axis}"
            dims.ranges[names[size]] = dim[1] if dim else (0 if axis and may_be_empty(paths[node]) else 1, None)
        dims.names.setdefault(node, {})[axis] = names[size]
    dims.sums = {name: tuple(names[part] for part in size.args) for size, name in names.items() if size.is_Add}
    return dims


def _free_axes(exported: torch.export.ExportedProgram, paths: Mapping[str, str]) -> dict[tuple[str, int], torch.SymInt]:
    """The sizes that vary, by input and axis."""
    return {
        (node.name, axis): size
        for node in exported.graph.nodes
        if node.op == "placeholder" and node.name in paths and isinstance(node.meta.get("val"), torch.Tensor)
        for axis, size in enumerate(node.meta["val"].shape)
        if isinstance(size, torch.SymInt) and size.node.expr.is_symbol
    }


def _alike(sizes: Mapping[tuple[str, int], torch.SymInt]) -> Iterator[sympy.Expr]:
    """Differences of sizes that are none by what callers know of inputs, though no op may compare them: keys and values of a
    layer are equally long; masks have as many rows as their texts, and a place for each token, those of a past too."""

    def compare(place: tuple[str, int], *others: tuple[str, int]) -> Iterator[sympy.Expr]:
        if not sizes.keys() >= {place, *others}:
            return
        parts = [sizes[other].node for other in others]
        if sizes[place].node.hint == sum(part.hint for part in parts):
            yield sizes[place].node.expr - sum(part.expr for part in parts)

    past = next((path for path, _ in sizes if path.endswith(".keys") and "cross_attention" not in path), "")
    for path, axis in sizes:
        owner, _, last = path.rpartition(".")
        if last == "values":
            yield from compare((path, axis), (f"{owner}.keys", axis))
    for decoder, name in itertools.product(("", "decoder_"), _MASKED):
        text, mask = decoder + name, f"{decoder}attention_mask"
        yield from compare((mask, 0), (text, 0))
        yield from compare((f"{decoder}token_type_ids", 0), (text, 0))
        yield from compare((mask, 1), (text, 1))
        yield from compare((mask, 1), (past, 2), (text, 1))


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
