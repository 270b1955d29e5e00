"""Sizes that stay symbols where the code of a model makes Python numbers of them."""

from __future__ import annotations

import builtins
import contextlib
import math
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...patching import register_patch
from ..swap import replaced


@contextlib.contextmanager
def sizes_as_symbols(model: torch.nn.Module) -> Iterator[None]:
    """``int`` of a size and ``len`` of a tensor are symbols in the modules that define the classes of ``model``, and position
    encodings are interpolated at every size.

    Reason: Python's own give a number, which fixes the axis at what it was while the model was traced. The stand-in is no
    dtype (``dtype=int``), so callers have to be ready for a trace that fails. Interpolation has a shortcut for the size that
    the encodings were made for, which is not taken where ``torch.jit`` traces: a graph without it is right at that size too.
    """
    names = sorted({type(module).__module__ for module in model.modules()})
    homes = [sys.modules[name] for name in names if not name.startswith("torch.") and name in sys.modules]
    changed = []
    for home in homes:
        for name, replacement in (("int", _Integer), ("len", _length)):
            if name not in vars(home):
                setattr(home, name, replacement)
                changed.append((home, name))
    try:
        with replaced(torch.jit, "is_tracing", _is_tracing_of(torch.jit.is_tracing)):
            yield
    finally:
        for home, name in changed:
            delattr(home, name)


#: Methods that interpolate position encodings. Elsewhere such questions are about code of torch.jit, so they are left alone.
_INTERPOLATING = ("interpolate_pos_encoding", "get_absolute_positions")


def _is_tracing_of(original: Callable[[], bool]) -> Callable[[], bool]:
    def is_tracing() -> bool:
        return sys._getframe(1).f_code.co_name in _INTERPOLATING or original()

    return is_tracing


#: Operations of a formula of a size. Models whose sizes follow from those before have up to a dozen.
_LONGEST_FORMULA = 24


class ShortFormulas(TorchFunctionMode):
    """Raises where the size of a tensor takes a long formula of the sizes of inputs.

    Reason: code that pads pictures to windows and cuts them, layer after layer, makes formulas that grow with each; torch
    takes minutes and more to compare them.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        for size in result.shape if isinstance(result, torch.Tensor) else ():
            if isinstance(size, torch.SymInt) and size.node.expr.count_ops() > _LONGEST_FORMULA:
                raise ValueError(f"a size is a long formula: {size}")
        return result


@contextlib.contextmanager
def ends_of_any_length() -> Iterator[None]:
    """The last ``n`` of a tensor have a formula for a size, for a with block: as many as there are where it is shorter.

    Reason: torch takes it for granted that a tensor is as long as it is in the sample, and refuses shorter ones, also where
    nothing in the graph needs to know, as of a cache that keeps a window's worth of tokens.
    """
    import torch._subclasses.fake_impls as fake
    from torch.fx.experimental.symbolic_shapes import statically_known_true

    original = fake._compute_slice_index

    def index_of(size: Any, index: Any) -> Any:
        is_open = isinstance(index, builtins.int) and index < 0 and isinstance(size, torch.SymInt)
        if is_open and not statically_known_true(size >= -index):
            return torch.sym_max(size + index, 0)
        return original(size, index)

    with replaced(fake, "_compute_slice_index", index_of):
        yield


class _Like(type):
    """A stand-in for a built-in type: what is an instance of that is one of this."""

    def __instancecheck__(cls, value: Any) -> bool:
        return isinstance(value, builtins.int)

    def __subclasscheck__(cls, other: type) -> bool:
        return issubclass(other, builtins.int)


class _Integer(int, metaclass=_Like):
    def __new__(cls, value: Any = 0, *base: Any) -> Any:
        if isinstance(value, torch.SymInt):
            return value
        return math.trunc(value) if isinstance(value, torch.SymFloat) else builtins.int(value, *base)


def _length(value: Any) -> Any:
    if isinstance(value, torch.Tensor) and value.dim():
        return value.shape[0]
    return builtins.len(value)


@register_patch(
    "capture",
    "*.modeling_*.torch_int",
    reason="made for another tracer, it makes a number of a size, which fixes the axis",
)
def _symbol_or_integer(original: Callable) -> Callable:
    return lambda value: original(value) if not isinstance(value, (torch.SymInt, torch.SymFloat)) else _Integer(value)


@register_patch(
    "capture",
    "*.modeling_*.apply_tf_padding",
    reason="it asks whether a stride divides a size, so that a trace is right only for sizes of the same answer",
)
def _padding_by_arithmetic(original: Callable) -> Callable:
    def pad(features: torch.Tensor, conv_layer: torch.nn.Conv2d) -> torch.Tensor:
        padding: list[Any] = []
        for axis in (-1, -2):
            size, stride, kernel = features.shape[axis], conv_layer.stride[axis], conv_layer.kernel_size[axis]
            # Written so that what comes out has a short size, (size - 1) // stride + 1: layers follow on layers.
            missing = (size - 1) // stride * stride + kernel - size
            if kernel < stride:
                missing = torch.sym_max(missing, 0)
            before = missing // 2
            padding += [before * conv_layer.dilation[axis], (missing - before) * conv_layer.dilation[axis]]
        return torch.nn.functional.pad(features, padding, "constant", 0.0)

    return pad
