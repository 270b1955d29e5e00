"""Code that computes with values of grids and lengths, traced for the values that it is given.

What is computed from them alone is computed at once, outside the trace, and is a constant of the graph where it meets what is traced.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

#: Larger results are computed by the graph.
_MOST_ELEMENTS = 1 << 16
#: Functions of numbers alone whose results code reads again.
_MAKERS = (torch.arange, torch.zeros, torch.ones, torch.full, torch.tensor, torch.linspace)
#: Functions of a traced tensor, to which single numbers are sizes and places.
_TAKES_SIZES = (
    torch.Tensor.view, torch.Tensor.reshape, torch.Tensor.expand, torch.Tensor.repeat, torch.Tensor.split, torch.Tensor.narrow,
    torch.Tensor.unflatten, torch.split, torch.reshape, torch.narrow, torch.nn.functional.interpolate, torch.nn.functional.pad,
    torch.nn.functional.adaptive_avg_pool2d,
)  # fmt: skip


class FixedValues(TorchFunctionMode):
    """While it is active, tensors with values keep theirs in a trace, and their sizes are numbers."""

    def __torch_function__(self, function: Any, types: Any, args: tuple = (), kwargs: dict[str, Any] | None = None) -> Any:
        kwargs = kwargs or {}
        given = list(_tensors((args, kwargs)))
        if all(_has_values(tensor) for tensor in given) and (given or function in _MAKERS):
            if not any(isinstance(leaf, torch.SymInt) for leaf in pytree.tree_leaves((args, kwargs))):
                with _disable_current_modes():
                    result = function(*args, **kwargs)
                if given and _is_in_place(function) or _may_be_constant(result, made_of_numbers=not given):
                    return result
            return function(*args, **kwargs)
        if function is torch.Tensor.__getitem__:
            return function(args[0], _as_numbers(args[1]))
        if function in (torch.repeat_interleave, torch.Tensor.repeat_interleave):
            return _repeated(function, *args, **kwargs)
        if function in _TAKES_SIZES:
            args, kwargs = pytree.tree_map_only(torch.Tensor, _number, (args, kwargs))
        return function(*args, **kwargs)


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, torch.Tensor):
            yield leaf
        elif isinstance(leaf, slice):
            yield from (each for each in (leaf.start, leaf.stop, leaf.step) if isinstance(each, torch.Tensor))


def _has_values(tensor: torch.Tensor) -> bool:
    return type(tensor) is torch.Tensor and tensor.device.type == "cpu"


def _is_in_place(function: Any) -> bool:
    name = getattr(function, "__name__", "")
    return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))


def _may_be_constant(result: Any, made_of_numbers: bool) -> bool:
    """Floats made of numbers alone are often filled with what is traced."""
    return all(
        tensor.numel() <= _MOST_ELEMENTS and not (made_of_numbers and tensor.is_floating_point()) for tensor in _tensors(result)
    )


def _number(tensor: torch.Tensor) -> Any:
    """A single whole number as one of Python's."""
    single = _has_values(tensor) and tensor.dim() == 0 and not tensor.is_floating_point() and tensor.dtype != torch.bool
    return _outside(tensor.item) if single else tensor


def _outside(function: Callable, *args: Any) -> Any:
    with _disable_current_modes():
        return function(*args)


def _as_numbers(index: Any) -> Any:
    """The index with numbers as bounds of slices, and places instead of a mask with values."""
    if isinstance(index, tuple):
        found: list[Any] = []
        for each in index:
            part = _as_numbers(each)
            found.extend(part if isinstance(part, tuple) else [part])
        return tuple(found)
    if isinstance(index, slice):
        return slice(*(_number(each) if isinstance(each, torch.Tensor) else each for each in (index.start, index.stop, index.step)))
    if isinstance(index, torch.Tensor) and _has_values(index) and index.dtype == torch.bool and index.dim():
        return tuple(_outside(index.nonzero).unbind(1))
    return index


def _repeated(function: Any, tensor: Any, repeats: Any, dim: int | None = None, **kwargs: Any) -> Any:
    """As many rows as ``repeats``, if it has values, says: a choice of rows."""
    if not isinstance(repeats, torch.Tensor) or not _has_values(repeats) or dim is None:
        return function(tensor, repeats, dim, **kwargs)
    rows = _outside(lambda: torch.arange(len(repeats) if repeats.dim() else tensor.shape[dim]).repeat_interleave(repeats))
    return tensor.index_select(dim, rows)
