"""Quantised weights in PyTorch: an eager model that computes as a quantised export does.

A file is right if it agrees with eager whose weights and activations went through the same scheme. How good the scheme is for a
model is another question, and compares with the model as it is (``quality.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from .onnx_schemes import onnx_blocks, rounded_blocks, rounded_whole, rows_of_bytes

#: How often a scale is fitted to its integers, and how little it changes, of itself, where that ends.
_FITS = 20
_CLOSE = 1e-5
_LEAST_SCALE = 2.0**-23
#: Of the largest activation: an eighth of what one step of eight bits is.
_SHAKEN = 1e-3
#: As doubles they are some 100 MB.
_VALUES_AT_ONCE = 1 << 22


@dataclass(frozen=True)
class Scheme:
    """How weights of one encoding are stored and used."""

    #: the weight [rows, width] that comes back, from the weight and the number of values that share a scale (0: a row)
    stored: Callable[[torch.Tensor, int], torch.Tensor]
    #: activations are rounded to eight bits too, from a row of them and that number
    rounded: Callable[[torch.Tensor, int], torch.Tensor] | None = None


def fitted(weight: torch.Tensor, group: int, *, bits: int, short_scales: bool = False) -> torch.Tensor:
    """The scale that is best for the integers, integers for it, and so on."""
    stored = torch.empty_like(weight)
    rows = max(1, _VALUES_AT_ONCE // weight.shape[1])
    for there, part in zip(stored.split(rows), weight.detach().split(rows), strict=True):
        values = part.float().reshape(-1, group or weight.shape[1])
        integers, scale = fitted_blocks(values, bits)
        if short_scales and group:
            scale = scale.bfloat16().float()
        there.copy_((integers * scale[:, None]).reshape(part.shape))
    return stored


def fitted_blocks(values: torch.Tensor, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Integers and the scale of each row: those of an export, bit by bit, as a weight that is the next integer is seen in what a model
    computes. So it is step by step what an export does."""
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    scale = (values.abs().amax(1) / -least).clamp_min(_LEAST_SCALE)
    is_done = torch.zeros_like(scale, dtype=torch.bool)
    for _ in range(_FITS):
        integers = (values * (1 / scale)[:, None]).round().clamp(least, most)
        products, squares = _sums(values * integers), _sums(integers * integers)
        fit = torch.where(squares > 0, (products / squares).float().clamp_min(_LEAST_SCALE), scale)
        is_close = (fit - scale).abs() < _CLOSE * scale
        scale = torch.where(is_done, scale, fit)
        is_done |= is_close
        if is_done.all():
            break
    return (values / scale[:, None]).round().clamp(least, most), scale


def _sums(values: torch.Tensor) -> torch.Tensor:
    """Of rows: 16 times 8 values are added up in eight lanes of floats, and the lanes as doubles, whose order makes no difference."""
    steps = min(16, -(-values.shape[1] // 8))
    parts = torch.nn.functional.pad(values, (0, -values.shape[1] % (8 * steps))).view(values.shape[0], -1, steps, 8)
    lanes = parts[:, :, 0].clone()
    for step in range(1, steps):
        lanes += parts[:, :, step]
    return lanes.double().sum((1, 2))


def rounded_rows(x: torch.Tensor, _group: int) -> torch.Tensor:
    """Activations in eight bits, a scale and a zero point for each row, as XNNPACK rounds them."""
    wide = x.float()
    low, high = wide.amin(-1, keepdim=True).clamp(max=0), wide.amax(-1, keepdim=True).clamp(min=0)
    scale = torch.where(high == low, 1.0, 255 / (high - low))
    below = low * scale + high * scale - 1 > 0
    zero = torch.where(below, -128 - low * scale, 127 - high * scale).clamp(-128, 127).round()
    return ((((wide * scale).round() + zero).clamp(-128, 127) - zero) / scale).to(x.dtype)


def rounded_static(x: torch.Tensor, scale: float, zero: int) -> torch.Tensor:
    """In signed eight bits, by a scale and a zero point that are fixed in the file."""
    return (((x.float() / scale).round() + zero).clamp(-128, 127) - zero).mul(scale).to(x.dtype)


_SIGNED, _UNSIGNED = partial(rows_of_bytes, is_signed=True), partial(rows_of_bytes, is_signed=False)
_ROUNDED_4, _ROUNDED_8 = partial(fitted, bits=4), partial(fitted, bits=8)
SCHEMES = {
    ("linear", "8da4w"): Scheme(partial(fitted, bits=4, short_scales=True), rounded_rows),
    ("linear", "8da8w"): Scheme(_ROUNDED_8, rounded_rows),
    ("linear", "4w"): Scheme(_ROUNDED_4),
    ("linear", "8w"): Scheme(_ROUNDED_8),
    **{(use, "8a8w"): Scheme(_SIGNED) for use in ("linear", "convolution")},
    ("embedding", "8w"): Scheme(_ROUNDED_8),
    ("embedding", "4w"): Scheme(_ROUNDED_4),
    **{(use, "dynamic-int8"): Scheme(_SIGNED, rounded_whole) for use in ("linear", "product")},
    **{(use, "dynamic-uint8"): Scheme(_UNSIGNED, rounded_whole) for use in ("linear", "product")},
    ("embedding", "dynamic-int8"): Scheme(_SIGNED),
    ("embedding", "dynamic-uint8"): Scheme(_UNSIGNED),
}


def find_scheme(use: str, encoding: str) -> Scheme | None:
    if (scheme := SCHEMES.get((use, encoding))) is not None:
        return scheme
    name = encoding.removesuffix("-a8")
    stored = onnx_blocks(name)
    return Scheme(stored, rounded_blocks if name != encoding else None) if stored else None


@dataclass(frozen=True)
class _Stored:
    weight: torch.Tensor
    scheme: Scheme
    group: int
    #: scale and zero point that activations are rounded with, if these are fixed in the file
    input: tuple[float, int] | None = None
    output: tuple[float, int] | None = None

    @property
    def rounds_activations(self) -> bool:
        return self.scheme.rounded is not None or self.input is not None

    def activations(self, x: torch.Tensor) -> torch.Tensor:
        if self.input is not None:
            return rounded_static(x, *self.input)
        return self.scheme.rounded(x, self.group) if self.scheme.rounded else x

    def result(self, x: torch.Tensor) -> torch.Tensor:
        return x if self.output is None else rounded_static(x, *self.output)


#: Functions whose last argument may be a weight [in, out], with the names of their arguments.
_PRODUCTS: dict[Any, tuple[str, ...]] = {
    torch.addmm: ("input", "mat1", "mat2"),
    torch.matmul: ("input", "other"),
    torch.mm: ("input", "mat2"),
}


_CONVOLUTIONS = (torch.conv1d, torch.conv2d)


class QuantizedModel(TorchFunctionMode):
    """While it is entered, layers of ``model`` compute as an export does whose manifest lists ``quantized`` weights. Raises
    ``LookupError`` for what is not known here, so that nothing is compared that cannot be. With ``in_place`` weights are
    overwritten, so that memory holds them once; what they were is lost. ``dtype``: of the export's weights, if the model's are wider.
    ``shaken``: a seed by which what layers are given is moved by as little as rounding in other places does, which tells how steady
    the model is."""

    def __init__(
        self, model: torch.nn.Module, quantized: Sequence[Mapping[str, Any]], *, in_place: bool = False, dtype: torch.dtype | None = None,
        shaken: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        self._noise = None if shaken is None else torch.Generator().manual_seed(shaken)
        weights = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        names = Counter(id(weight) for weight in weights.values())
        is_tied = {key: count > 1 for key, count in names.items()}  # another layer may want it as it was
        self._stored: dict[tuple[str, int], _Stored] = {}
        self._replaced: list[tuple[torch.Tensor, torch.Tensor]] = []  # weights, and what they are while this is entered
        self._kept = []  # an id is of use only while its tensor is there
        for each in quantized:
            scheme = find_scheme(each["use"], each["encoding"])
            weight = weights.get(each["weight"])
            is_experts = each["use"] in ("experts", "turned-experts")
            rank = weight.dim() if weight is not None else 0
            if scheme is None or weight is None or (rank not in (3, 4) if each["use"] == "convolution" else rank != 2 + is_experts):
                raise LookupError(f"{each['weight']} is stored as {each['encoding']}, which PyTorch is not taught here")
            self._kept.append(weight)
            is_turned = each["use"] in ("product", "turned-experts")  # [in, out], as products have it
            rows = weight.mT if is_turned else weight
            matrix = rows.flatten(1) if each["use"] == "convolution" else rows.flatten(0, -2)
            stored = scheme.stored(matrix.to(dtype or weight.dtype), int(each["group"])).to(weight.dtype).reshape(rows.shape)
            stored = stored.mT if is_turned else stored
            if is_experts:  # the model takes it apart, so that it cannot be told by what functions are given
                self._replaced.append((weight, stored.contiguous()))
                continue
            if in_place and sum(other["weight"] == each["weight"] for other in quantized) == 1 and not is_tied[id(weight)]:
                stored = weight.data.copy_(stored)
            fixed = [(float(pair[0]), int(pair[1])) if (pair := each.get(key)) else None for key in ("input", "output")]
            self._stored[each["use"], id(weight)] = _Stored(stored, scheme, int(each["group"]), *fixed)

    def __enter__(self) -> QuantizedModel:
        self._exchange()
        return super().__enter__()

    def __exit__(self, *error: Any) -> None:
        super().__exit__(*error)
        self._exchange()

    def _exchange(self) -> None:
        for i, (weight, other) in enumerate(self._replaced):
            self._replaced[i] = (weight, weight.data)
            weight.data = other

    @property
    def rounds_rows(self) -> bool:
        return any(each.rounds_activations for each in self._stored.values())

    @property
    def rounds_tensors(self) -> bool:
        """With one scale for all activations of a call."""
        return any(each.scheme.rounded is rounded_whole or each.input is not None for each in self._stored.values())

    def _activations(self, x: torch.Tensor, stored: _Stored) -> torch.Tensor:
        if self._noise is not None:
            noise = torch.randn(x.shape, generator=self._noise)
            largest = x.float().abs().amax() if stored.rounds_activations else x.float().abs()
            part = _SHAKEN if stored.rounds_activations else torch.finfo(x.dtype).eps
            x = (x.float() + part * largest * noise).to(x.dtype)
        return stored.activations(x)

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear:
            x, weight, bias = _arguments(("input", "weight", "bias"), args, kwargs)
            if (stored := self._stored.get(("linear", id(weight)))) is not None:
                return stored.result(func(self._activations(x, stored), stored.weight, bias))
        elif func in _CONVOLUTIONS:
            x, weight, *more = _arguments(("input", "weight"), args[:2], kwargs) + list(args[2:])
            if (stored := self._stored.get(("convolution", id(weight)))) is not None:
                others = {name: value for name, value in kwargs.items() if name not in ("input", "weight")}
                return stored.result(func(self._activations(x, stored), stored.weight, *more, **others))
        elif func in _PRODUCTS:
            *before, x, weight = _arguments(_PRODUCTS[func], args, kwargs)
            if (stored := self._stored.get(("product", id(weight)))) is not None:
                return func(*before, self._activations(x, stored), stored.weight)
        elif func is torch.nn.functional.embedding:
            stored = self._stored.get(("embedding", id(args[1] if len(args) > 1 else kwargs["weight"])))
            if stored is not None:
                ids = args[0] if args else kwargs["input"]
                return func(ids, stored.weight)
        elif func is torch.nn.functional.multi_head_attention_forward:  # what it calls is not seen here
            args = tuple(map(self._linear_weight, args))
            kwargs = {name: self._linear_weight(each) for name, each in kwargs.items()}
        return func(*args, **kwargs)

    def _linear_weight(self, argument: Any) -> Any:
        stored = self._stored.get(("linear", id(argument)))
        return argument if stored is None else stored.weight


def _arguments(names: tuple[str, ...], args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
    return [args[i] if i < len(args) else kwargs.get(name) for i, name in enumerate(names)]
