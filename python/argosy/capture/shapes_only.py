"""A run on the meta device in which small tensors whose values follow from sizes and inputs have these values.

Models read grids, lengths and counts as Python numbers. Without weights most tensors have no values; but these do not depend on
weights, so they are computed beside the run, on the CPU.
"""

from __future__ import annotations

import contextlib
import functools
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

#: Tensors of more elements have no values.
_MOST_ELEMENTS = 1 << 16


class ShapesOnly(TorchDispatchMode):
    """While it is active, a call on the meta device knows the values of small tensors that depend on no weight. Code that asks
    any other for values is told ones (or true), so that a call whose shapes do not depend on them runs to its end."""

    def __init__(self) -> None:
        super().__init__()
        #: by the identity of a storage on meta: the storage, which keeps the identity from being used again, and its values
        self._values: dict[int, tuple[Any, torch.Tensor]] = {}
        self._made = _MadeOnMeta()

    def __enter__(self):
        self._autocast = torch.autocast
        # Code of transformers 4 switches autocast off for the device of its input, which torch has none of for meta.
        torch.autocast = lambda device_type, *args, **kwargs: (
            contextlib.nullcontext() if device_type == "meta" else self._autocast(device_type, *args, **kwargs)
        )
        self._made.__enter__()
        return super().__enter__()

    def __exit__(self, *error):
        super().__exit__(*error)
        self._made.__exit__(*error)
        torch.autocast = self._autocast
        self._values.clear()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # nothing here is compiled, and to keep the compiler away takes longer than most calls

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if _leaves_meta(function, args, kwargs):
            known = self._value_of(args[0])
            value = torch.ones((), dtype=args[0].dtype).expand(args[0].shape) if known is None else known
            return function(value, *args[1:], **kwargs)
        if not _is_mutable(function) and self._has_no_values(_tensors((args, kwargs))):
            return function(*args, **kwargs)
        args, kwargs = self._all_on_meta(function, args, kwargs)
        values = self._compute(function, args, kwargs)
        if values is not None and torch.Tag.dynamic_output_shape in function.tags:
            result = pytree.tree_map_only(torch.Tensor, lambda value: torch.empty_like(value, device="meta"), values)
        else:
            result = function(*args, **kwargs)
        if function._schema.is_mutable:
            if values is None:
                self._forget_written(function, args, kwargs)
        elif values is not None:
            for made, value in zip(_tensors(result), _tensors(values), strict=True):
                self._remember(made, value)
        return result

    def _has_no_values(self, given: list[torch.Tensor]) -> bool:
        """Whether all are on meta and one has no values, as in most calls."""
        return all(tensor.is_meta for tensor in given) and any(tensor.untyped_storage()._cdata not in self._values for tensor in given)

    def _all_on_meta(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments on one device: descriptions of media are on the CPU, for code that reads them, and meet tensors on meta."""
        given = _tensors((args, kwargs))
        if function._schema.is_mutable or not any(tensor.is_meta for tensor in given):
            return args, kwargs
        moved = {id(tensor): self._on_meta(tensor) for tensor in given if tensor.dim() and type(tensor) is torch.Tensor and not tensor.is_meta}
        if not moved:
            return args, kwargs
        return pytree.tree_map_only(torch.Tensor, lambda tensor: moved.get(id(tensor), tensor), (args, kwargs))

    def _on_meta(self, tensor: torch.Tensor) -> torch.Tensor:
        made = torch.empty_like(tensor, device="meta")
        self._remember(made, tensor)
        return made

    def _compute(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What ``function`` gives for the values of its arguments; None where one has none, or the result is not on meta."""
        if torch.Tag.nondeterministic_seeded in function.tags or function._schema.name.startswith("aten::empty"):
            return None
        device = kwargs.get("device")
        given = _tensors((args, kwargs))
        to_meta = device is not None and torch.device(device).type == "meta"
        if not to_meta and not any(tensor.is_meta for tensor in given):
            return None
        known = {id(tensor): self._value_of(tensor) for tensor in given}
        if any(value is None for value in known.values()) or _is_large(function, args):
            return None
        args, kwargs = pytree.tree_map_only(torch.Tensor, lambda tensor: known[id(tensor)], (args, kwargs))
        if to_meta:
            kwargs["device"] = torch.device("cpu")
        try:
            return function(*args, **kwargs)
        except (RuntimeError, IndexError):
            return None  # there is no such kernel, or the run itself says what is wrong

    def _value_of(self, tensor: torch.Tensor) -> torch.Tensor | None:
        if not tensor.is_meta:
            return tensor if type(tensor) is torch.Tensor and tensor.numel() <= _MOST_ELEMENTS else None
        _, flat = self._values.get(tensor.untyped_storage()._cdata, (None, None))
        if flat is None or flat.dtype != tensor.dtype:
            return None
        return flat.as_strided(tensor.shape, tensor.stride(), tensor.storage_offset())

    def _remember(self, made: torch.Tensor, value: torch.Tensor) -> None:
        if not made.is_meta or made.shape != value.shape or made.dtype != value.dtype or value.numel() > _MOST_ELEMENTS:
            return
        storage = made.untyped_storage()
        if storage._cdata not in self._values:  # a view has the values of what it is a view of
            flat = torch.zeros(storage.nbytes() // made.element_size(), dtype=made.dtype)
            flat.as_strided(made.shape, made.stride(), made.storage_offset()).copy_(value)
            self._values[storage._cdata] = storage, flat

    def _forget_written(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> None:
        for index, argument in enumerate(function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                written = args[index] if index < len(args) else kwargs.get(argument.name)
                for tensor in _tensors(written):
                    self._values.pop(tensor.untyped_storage()._cdata, None)


@functools.cache
def _is_mutable(function: Any) -> bool:
    return function._schema.is_mutable


def _leaves_meta(function: Any, args: tuple, kwargs: dict[str, Any]) -> bool:
    if not args or not isinstance(args[0], torch.Tensor) or not args[0].is_meta:
        return False
    if function is torch.ops.aten._local_scalar_dense.default:
        return True
    device = kwargs.get("device")
    return function is torch.ops.aten._to_copy.default and device is not None and torch.device(device).type == "cpu"


def _is_large(function: Any, args: tuple) -> bool:
    """Whether a tensor that is made of nothing but its size, or repeated, is large."""
    sizes = [argument for argument in args if isinstance(argument, (list, tuple)) and all(isinstance(each, int) for each in argument)]
    if any(torch.Size(size).numel() > _MOST_ELEMENTS for size in sizes if all(each >= 0 for each in size)):
        return True
    is_range = function._schema.name == "aten::arange"
    return is_range and any(isinstance(number, (int, float)) and abs(number) > _MOST_ELEMENTS for number in args)


def _tensors(value: Any) -> list[torch.Tensor]:
    """The tensors in arguments or results of an op. Every op of a run comes by several times: pytree would take ten times as long."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, (list, tuple)) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


class _MadeOnMeta(TorchFunctionMode):
    """Tensors that are made of Python numbers are made on the CPU first: torch makes them on meta without values."""

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function is torch.Tensor.new_tensor and args[0].is_meta and "device" not in kwargs:
            values = torch.tensor(args[1], **{"dtype": args[0].dtype, **kwargs})
            return values.to("meta")
        device = kwargs.get("device")
        if function in (torch.tensor, torch.as_tensor) and device is not None and torch.device(device).type == "meta":
            if not isinstance(args[0], torch.Tensor):
                numbers = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.item(), args[0])
                return function(numbers, *args[1:], **{**kwargs, "device": "cpu"}).to("meta")
        return function(*args, **kwargs)
