"""A run on the meta device in which small tensors whose values follow from sizes and inputs have these values.

Models read grids, lengths and counts as Python numbers. Without weights most tensors have no values; but these do not depend on
weights, so they are computed beside the run, on the CPU.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from .remembered_shapes import WHOLE

#: Calls an op with arguments and keyword arguments.
Run = Callable[[Any, tuple, dict[str, Any]], Any]
#: Tensors of more elements have no values.
_MOST_ELEMENTS = 1 << 16


class ShapesOnly(TorchDispatchMode):
    """While it is active, a call on the meta device knows the values of small tensors that depend on no weight. Code that asks
    any other for values is told ones (or true), so that a call whose shapes do not depend on them runs to its end.

    ``run`` calls ops in another way, functions that are ``WHOLE`` among them; it sees what is called, but not how values are
    computed."""

    def __init__(self, run: Run | None = None) -> None:
        super().__init__()
        self._run = run or _call
        #: by the identity of a storage on meta: the storage, which keeps the identity from being used again, and its values
        self._values: dict[int, tuple[Any, torch.Tensor]] = {}
        self._made = _MadeOnMeta(self._run_whole if run else None)

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
            return self._run(function, (value, *args[1:]), kwargs)
        if not _is_mutable(function) and self._has_no_values(_tensors(args, kwargs)):
            return self._run(function, args, kwargs)
        args, kwargs = self._all_on_meta(function, args, kwargs)
        values = self._compute(function, args, kwargs)
        if values is not None and torch.Tag.dynamic_output_shape in function.tags:
            result = pytree.tree_map_only(torch.Tensor, lambda value: torch.empty_like(value, device="meta"), values)
        else:
            result = self._run(function, args, kwargs)
        if _is_mutable(function):
            if values is None:
                self._forget_written(function, args, kwargs)
        elif values is not None:
            for made, value in zip(_tensors(result), _tensors(values), strict=True):
                self._remember(made, value)
        return result

    def _run_whole(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """A function of several ops as one; ``NotImplemented`` where its values may be known."""
        if not self._has_no_values(_tensors(args, kwargs)):
            return NotImplemented
        with torch._C._DisableTorchDispatch():
            return self._run(function, args, kwargs)

    def _has_no_values(self, given: list[torch.Tensor]) -> bool:
        """Whether all are on meta and one has no values, as in most calls."""
        if not all([tensor.is_meta for tensor in given]):
            return False
        values = self._values
        return any(tensor.untyped_storage()._cdata not in values for tensor in given)

    def _all_on_meta(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments on one device: descriptions of media are on the CPU, for code that reads them, and meet tensors on meta."""
        given = _tensors(args, kwargs)
        if _is_mutable(function) or not any(tensor.is_meta for tensor in given):
            return args, kwargs
        moved = {id(tensor): self._on_meta(tensor) for tensor in given if tensor.dim() and type(tensor) is torch.Tensor and not tensor.is_meta}
        if not moved:
            return args, kwargs
        return _replaced(args, kwargs, lambda tensor: moved.get(id(tensor), tensor))

    def _on_meta(self, tensor: torch.Tensor) -> torch.Tensor:
        made = torch.empty_like(tensor, device="meta")
        self._remember(made, tensor)
        return made

    def _compute(self, function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
        """What ``function`` gives for the values of its arguments; None where one has none, or the result is not on meta."""
        if torch.Tag.nondeterministic_seeded in function.tags or function._schema.name.startswith("aten::empty"):
            return None
        device = kwargs.get("device")
        given = _tensors(args, kwargs)
        to_meta = device is not None and torch.device(device).type == "meta"
        if not to_meta and not any(tensor.is_meta for tensor in given):
            return None
        known = {id(tensor): self._value_of(tensor) for tensor in given}
        if any(value is None for value in known.values()) or _is_large(function, args):
            return None
        args, kwargs = _replaced(args, kwargs, lambda tensor: known[id(tensor)])
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


def _call(function: Any, args: tuple, kwargs: dict[str, Any]) -> Any:
    return function(*args, **kwargs)


#: By op. To ask its schema, or for its hash, takes longer than to look here by identity.
_mutable: dict[int, tuple[bool, Any]] = {}


def _is_mutable(function: Any) -> bool:
    found = _mutable.get(id(function))
    if found is None:
        found = _mutable[id(function)] = (function._schema.is_mutable, function)
    return found[0]


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


def _tensors(*values: Any) -> list[torch.Tensor]:
    """The tensors in arguments or results of an op. Every op of a run comes by several times: pytree would take ten times as long."""
    found: list[torch.Tensor] = []
    for value in values:
        if isinstance(value, torch.Tensor):
            found.append(value)
        elif isinstance(value, (list, tuple)):
            found += _tensors(*value)
        elif isinstance(value, dict) and value:
            found += _tensors(*value.values())
    return found


def _replaced(args: tuple, kwargs: dict[str, Any], other: Callable[[torch.Tensor], torch.Tensor]) -> tuple[tuple, dict[str, Any]]:
    def replaced(value: Any) -> Any:
        if isinstance(value, torch.Tensor):
            return other(value)
        return [replaced(each) for each in value] if isinstance(value, (list, tuple)) else value

    return tuple([replaced(each) for each in args]), {name: replaced(each) for name, each in kwargs.items()}


class _MadeOnMeta(TorchFunctionMode):
    """Tensors that are made of Python numbers are made on the CPU first: torch makes them on meta without values. And functions
    that are ``WHOLE`` are called by ``run_whole``, where there is one."""

    def __init__(self, run_whole: Run | None) -> None:
        super().__init__()
        self._run_whole = run_whole

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if self._run_whole and function in WHOLE and "out" not in kwargs:
            result = self._run_whole(function, args, kwargs)
            if result is not NotImplemented:
                return result
        if function is torch.Tensor.new_tensor and args[0].is_meta and "device" not in kwargs:
            values = torch.tensor(args[1], **{"dtype": args[0].dtype, **kwargs})
            return values.to("meta")
        device = kwargs.get("device")
        if function in (torch.tensor, torch.as_tensor) and device is not None and torch.device(device).type == "meta":
            if not isinstance(args[0], torch.Tensor):
                numbers = args[0]
                if not isinstance(numbers, (list, tuple)) or numbers:
                    numbers = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.item(), numbers)
                return function(numbers, *args[1:], **{**kwargs, "device": "cpu"}).to("meta")
        return function(*args, **kwargs)
