"""Ops on meta tensors whose results are known by shape: what layers do is mostly what the layer before did, and to find out a shape
takes ten times as long as to look it up."""

from __future__ import annotations

from typing import Any

import torch

#: Functions that are looked up where they are called, before torch makes ops of them: those of many ops, and the most frequent.
#: Without ``out`` they give one tensor with memory of its own, and change nothing.
WHOLE = frozenset({
    torch.nn.functional.linear, torch.nn.functional.scaled_dot_product_attention, torch.cat, torch.rsqrt,
    *(getattr(torch.Tensor, name) for name in ("add", "mul", "pow", "mean", "neg", "sin", "cos")),
})  # fmt: skip


class RememberedShapes:
    """How ``ShapesOnly`` calls ops where the same shapes come by often."""

    def __init__(self) -> None:
        self.known: dict[Any, tuple] = {}
        #: by identity of an op: whether it gives one tensor with memory of its own and changes nothing; and the op, kept alive
        self._fresh: dict[int, tuple[bool, Any]] = {}

    def _makes_one(self, function: Any) -> bool:
        found = self._fresh.get(id(function))
        if found is None:
            found = self._fresh[id(function)] = (function in WHOLE or _is_fresh(function._schema), function)
        return found[0]

    def __call__(self, function: Any, args: tuple, kwargs: dict) -> Any:
        tensors: list[torch.Tensor] = []
        key = call_key(function, args, kwargs, tensors) if self._makes_one(function) else None
        return self.call(function, args, kwargs, key, tensors)

    def call(self, function: Any, args: tuple, kwargs: dict, key: Any, tensors: list[torch.Tensor]) -> Any:
        """What the op gives; ``key`` says all that its layout depends on, or is None. ``tensors`` are those that it is given."""
        if key is None or not self._makes_one(function) or not all([each.is_meta for each in tensors]):
            return function(*args, **kwargs)
        if (known := self.known.get(key)) is not None:
            shape, stride, dtype = known
            return torch.empty_strided(shape, stride, dtype=dtype, device="meta")
        result = function(*args, **kwargs)
        if result.is_meta:
            self.known[key] = (result.shape, result.stride(), result.dtype)
        return result


def _is_fresh(schema: Any) -> bool:
    each_is_plain = all(each.alias_info is None for each in (*schema.arguments, *schema.returns))
    return each_is_plain and [str(each.type) for each in schema.returns] == ["Tensor"]


def call_key(function: Any, args: tuple, kwargs: dict, tensors: list[torch.Tensor]) -> Any:
    """An op with the layouts of its tensors, which are added to ``tensors``, and its other arguments; None if there is an
    argument that cannot be part of a key. The op is known by its identity: whoever keeps keys keeps ops."""
    try:
        key = (id(function), _layouts(args, tensors), tuple(kwargs), _layouts(kwargs.values(), tensors) if kwargs else ())
        hash(key)
    except TypeError:
        return None
    return key


def _layouts(values: Any, tensors: list[torch.Tensor]) -> tuple:
    found: list[Any] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            tensors.append(value)
            found.append((value.dtype, value.is_meta, value.shape, value.stride()))
        elif isinstance(value, (list, tuple)):
            found.append(_layouts(value, tensors))
        else:
            found.append((type(value), value))
    return tuple(found)
