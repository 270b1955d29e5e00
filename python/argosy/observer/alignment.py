"""Arguments of calls that did not all have the same ones, brought to one form."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import torch

from ..errors import ExportError
from .calls import Call, named_tensors, with_tensors
from .dims import DimExpr, dim_sizes, infer_dims

Dims = dict[str, dict[int, DimExpr]]


class Alignment:
    """What the calls have in common: one list of arguments and tensors, and how a call without some of them is completed.

    The fullest call gives the structure (of the cache, say). A tensor that a call lacks is taken from `missing`, else it
    is an empty one: of past length zero in a cache, of size zero in its first axis elsewhere. Recurrent states begin with
    zeros.
    """

    def __init__(self, calls: Sequence[Call], missing: Mapping[str, Any], batched: bool | Iterable[str] | None = None):
        if not calls:
            raise ExportError(
                "no call was observed",
                code="invalid-input",
                hint="call the module inside the with block of the observer, and check that it is the module that runs",
            )
        self.calls = calls
        self.missing = dict(missing)
        self.base = max(calls, key=lambda call: (len(call.leaves), -sum(0 in t.shape for t in call.leaves.values())))
        self.arguments = self._union()
        self.names = list(named_tensors(self.arguments))
        self.dims = self._infer(batched)

    def _union(self) -> dict[str, Any]:
        """The base call's arguments, then those that only others have."""
        arguments = dict(self.base.arguments)
        for call in self.calls:
            for name, value in call.arguments.items():
                if name not in arguments and any(_belongs(leaf, name) for leaf in call.leaves):
                    arguments[name] = value
        for name, value in self.missing.items():
            if name not in arguments:
                arguments[name] = value
        return arguments

    def _infer(self, batched: bool | Iterable[str] | None) -> Dims:
        given = {name: tuple(value.shape) for name, value in self.missing.items() if _is_tensor(value)}
        shapes = [{**given, **call.shapes} for call in self.calls]
        self.dims = _infer_dims(shapes)
        for call, known in zip(self.calls, shapes, strict=True):
            # A call without its cache has a past of length zero. What other absent tensors mean is not known.
            absent = [name for name in self.names if name.startswith("past") and name not in known]
            known.update({name: self._empty_shape(name, self._sizes(call)) for name in absent})
        dims = _infer_dims(shapes)
        for name in self._batched_names(dims, batched):
            if dims[name][0].is_fixed:
                dims[name][0] = DimExpr.symbol("batch")
        return dims

    def _batched_names(self, dims: Dims, batched: bool | Iterable[str] | None) -> list[str]:
        if not batched:
            return []
        if batched is True:
            # Position tables and the like have a first axis of their own: only sizes equal to the batch's count.
            sizes = [shape[0] for shape in self.base.shapes.values() if shape]
            batch = max(set(sizes), key=lambda size: (sizes.count(size), -sizes.index(size))) if sizes else None
            return [name for name in dims if self.base.shapes.get(name, (None,))[:1] == (batch,)]
        chosen = {batched} if isinstance(batched, str) else set(batched)
        unknown = sorted(name for name in chosen if not any(_belongs(leaf, name) for leaf in dims))
        if unknown:
            raise ExportError(
                f"set_batch_dimension_for names {', '.join(unknown)}, which no call had",
                code="invalid-input",
                hint="the arguments are " + ", ".join(self.arguments),
            )
        return [leaf for leaf in dims if dims[leaf] and any(_belongs(leaf, name) for name in chosen)]

    # ---- completed calls ----

    def complete(self, call: Call) -> dict[str, Any]:
        """All arguments for this call, tensors that it lacks filled in. Constants are the base call's."""
        sizes = self._sizes(call)
        template = named_tensors(self.arguments)
        tensors = {}
        for name, tensor in template.items():
            own = call.leaves.get(name)
            # A tensor of another rank is one that was not filled yet.
            has = own is not None and own.dim() == tensor.dim()
            tensors[name] = own if has else self._filled(name, tensor, sizes)
        return with_tensors(self.arguments, tensors)

    def _sizes(self, call: Call) -> dict[str, int]:
        """Sizes of all dimensions: this call's, for those that it does not show those of others."""
        sizes: dict[str, int] = {}
        for other in (*self.calls, self.base, call):
            sizes.update(dim_sizes(self.dims, other.shapes))
        return sizes

    def _filled(self, name: str, like: torch.Tensor, sizes: Mapping[str, int]) -> torch.Tensor:
        value = self.missing.get(name)
        return value if _is_tensor(value) else like.new_zeros(self._empty_shape(name, sizes))

    def _empty_shape(self, name: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
        shape = [dim.evaluate(sizes) for dim in self.dims[name].values()]
        axis = self._length_axis(name)
        if shape and axis is not None:
            shape[axis] = 0
        return tuple(shape)

    def _length_axis(self, name: str) -> int | None:
        """The axis that is zero where nothing is there yet. None: a recurrent state, which begins with zeros."""
        if not name.startswith("past"):
            return 0
        axes = self.dims[name]
        varying = [axis for axis, dim in axes.items() if axis > 0 and not dim.is_fixed]
        if varying:
            return varying[0]
        part = name.split(".")[-1]
        return 2 if len(axes) == 4 and (part in ("key", "value") or part.isdigit()) and "state" not in name else None

    def sample(self) -> dict[str, Any]:
        """Arguments for tracing: the base call's, completed, every axis that varies with a size of 2 or more.

        torch.export takes sizes 0 and 1 for constants. An axis is made longer by repeating what is there.
        """
        completed = self.complete(self.base)
        tensors = named_tensors(completed)
        sizes = dim_sizes(self.dims, {name: tuple(tensor.shape) for name, tensor in tensors.items()})
        for symbol in sorted(symbol for symbol, size in sizes.items() if size < 2):
            taken = set(sizes.values())
            sizes[symbol] = next(size for size in range(2, 2 + len(sizes) + 1) if size not in taken)
        for name, tensor in tensors.items():
            for axis, dim in self.dims.get(name, {}).items():
                if not dim.is_fixed and set(dim.symbols) <= sizes.keys():
                    tensor = _resized(tensor, axis, dim.evaluate(sizes))
            tensors[name] = tensor
        return with_tensors(completed, tensors)


def _infer_dims(shapes: list[dict[str, tuple[int, ...]]]) -> Dims:
    try:
        return infer_dims(shapes)
    except ValueError as error:
        raise ExportError(
            f"the observed calls cannot share one graph: {error}",
            code="invalid-input",
            hint="observe calls whose arguments have the same ranks, or use one observer for each kind of call",
        ) from error


def _resized(tensor: torch.Tensor, axis: int, size: int) -> torch.Tensor:
    have = tensor.shape[axis]
    if have == size:
        return tensor
    if have == 0:
        shape = list(tensor.shape)
        shape[axis] = size
        return tensor.new_zeros(shape)
    return tensor.index_select(axis, torch.arange(size, device=tensor.device) % have)


def _belongs(leaf: str, argument: str) -> bool:
    return leaf == argument or leaf.startswith(argument + ".")


def _is_tensor(value: Any) -> bool:
    return isinstance(value, torch.Tensor)
