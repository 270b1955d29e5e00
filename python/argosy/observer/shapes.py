"""Dynamic shapes in the structure that torch.export wants: that of the arguments, axis to dimension at each tensor."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch.utils import _pytree

from ..structures import flatten, leaf_name
from .dims import DimExpr


def dynamic_shapes(arguments: Mapping[str, Any], dims: Mapping[str, Mapping[int, DimExpr]]) -> dict[str, Any]:
    """For each argument: ``{axis: Dim.DYNAMIC}`` for a tensor, None for a constant, lists and dicts of these for a nest.

    An object of a class that pytree knows has the form of its children, as torch.export asks for. Any other (a cache of a
    class that is not registered) has a list of all its tensors in order.
    """
    leaves, _ = flatten(dict(arguments))
    names = {id(tensor): leaf_name(path) for path, tensor in leaves}

    def axes_of(tensor: torch.Tensor) -> dict[int, Any]:
        axes = dims.get(names.get(id(tensor), ""), {})
        return {axis: torch.export.Dim.DYNAMIC for axis, dim in axes.items() if not dim.is_fixed}

    return map_tensors(dict(arguments), axes_of)


def nest_extra(method: Callable[..., Any], shapes: dict[str, Any]) -> dict[str, Any]:
    """`shapes` with those of arguments that have no parameter of their own under the name of ``**kwargs``."""
    parameters = inspect.signature(method).parameters
    extra = next((p.name for p in parameters.values() if p.kind is inspect.Parameter.VAR_KEYWORD), None)
    unknown = [name for name in shapes if name not in parameters]
    if extra is None or not unknown:
        return shapes
    known = {name: shape for name, shape in shapes.items() if name in parameters}
    return {**known, extra: {name: shapes[name] for name in unknown}}


def map_tensors(value: Any, axes_of: Callable[[torch.Tensor], Any]) -> Any:
    """`value` with ``axes_of(tensor)`` for each tensor and None for all else, in the form that torch.export wants."""
    if isinstance(value, torch.Tensor):
        return axes_of(value)
    kind = type(value)
    if kind in (list, tuple):
        return kind(map_tensors(item, axes_of) for item in value)
    if kind is dict:
        return {key: map_tensors(item, axes_of) for key, item in value.items()}
    if kind in _pytree.SUPPORTED_NODES:
        children, _ = _pytree.SUPPORTED_NODES[kind].flatten_fn(value)
        return map_tensors(children if type(children) in (list, tuple) else list(children), axes_of)
    leaves, _ = flatten(value)
    return [axes_of(tensor) for _, tensor in leaves] if leaves else None
