"""Quantised weights in PyTorch: an eager model that computes as a quantised export does.

A file is right if it agrees with eager whose weights and activations went through the same scheme. How good the scheme is for a
model is another question, and compares with the model as it is (``quality.py``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

#: How often a scale is fitted to its integers.
_FITS = 20
_LEAST_SCALE = 2.0**-23


@dataclass(frozen=True)
class Scheme:
    """How weights of one encoding are stored and used."""

    bits: int
    #: activations are rounded to eight bits too, row by row
    rounds_rows: bool = False
    #: scales of groups are bfloat16
    short_scales: bool = False


SCHEMES = {
    ("linear", "8da4w"): Scheme(4, rounds_rows=True, short_scales=True),
    ("linear", "8da8w"): Scheme(8, rounds_rows=True),
    ("linear", "4w"): Scheme(4),
    ("linear", "8w"): Scheme(8),
    ("embedding", "8w"): Scheme(8),
    ("embedding", "4w"): Scheme(4),
}


def stored_weight(weight: torch.Tensor, scheme: Scheme, group: int) -> torch.Tensor:
    """What comes back of a weight that was stored as integers, with a scale for ``group`` values of a row (0: for a row):
    the scale that is best for the integers, integers for it, and so on."""
    least, most = -(1 << (scheme.bits - 1)), (1 << (scheme.bits - 1)) - 1
    values = weight.detach().float().reshape(weight.shape[0], -1, group or weight.shape[1])
    scale = (values.abs().amax(2) / -least).clamp_min(_LEAST_SCALE)
    for _ in range(_FITS):
        integers = (values / scale[..., None]).round().clamp(least, most)
        products, squares = (values * integers).sum(2), (integers * integers).sum(2)
        scale = torch.where(squares > 0, products / squares, scale).clamp_min(_LEAST_SCALE)
    integers = (values / scale[..., None]).round().clamp(least, most)
    if scheme.short_scales and group:
        scale = scale.bfloat16().float()
    return (integers * scale[..., None]).reshape(weight.shape).to(weight.dtype)


def rounded_rows(x: torch.Tensor) -> torch.Tensor:
    """Activations in eight bits, a scale and a zero point for each row, as XNNPACK rounds them."""
    wide = x.float()
    low, high = wide.amin(-1, keepdim=True).clamp(max=0), wide.amax(-1, keepdim=True).clamp(min=0)
    scale = torch.where(high == low, 1.0, 255 / (high - low))
    below = low * scale + high * scale - 1 > 0
    zero = torch.where(below, -128 - low * scale, 127 - high * scale).clamp(-128, 127).round()
    return ((((wide * scale).round() + zero).clamp(-128, 127) - zero) / scale).to(x.dtype)


@dataclass(frozen=True)
class _Stored:
    weight: torch.Tensor
    scheme: Scheme


class QuantizedModel(TorchFunctionMode):
    """While it is entered, layers of ``model`` compute as an export does whose manifest lists ``quantized`` weights. Raises
    ``LookupError`` for what is not known here, so that nothing is compared that cannot be. With ``in_place`` weights are
    overwritten, so that memory holds them once; what they were is lost."""

    def __init__(self, model: torch.nn.Module, quantized: Sequence[Mapping[str, Any]], *, in_place: bool = False) -> None:
        super().__init__()
        weights = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
        names = Counter(id(weight) for weight in weights.values())
        is_tied = {key: count > 1 for key, count in names.items()}  # another layer may want it as it was
        self._stored: dict[tuple[str, int], _Stored] = {}
        self._kept = []  # an id is of use only while its tensor is there
        for each in quantized:
            scheme = SCHEMES.get((each["use"], each["encoding"]))
            weight = weights.get(each["weight"])
            if scheme is None or weight is None or weight.dim() != 2:
                raise LookupError(f"{each['weight']} is stored as {each['encoding']}, which PyTorch is not taught here")
            self._kept.append(weight)
            stored = stored_weight(weight, scheme, int(each["group"]))
            if in_place and sum(other["weight"] == each["weight"] for other in quantized) == 1 and not is_tied[id(weight)]:
                stored = weight.data.copy_(stored)
            self._stored[each["use"], id(weight)] = _Stored(stored, scheme)

    @property
    def rounds_rows(self) -> bool:
        return any(each.scheme.rounds_rows for each in self._stored.values())

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        kwargs = kwargs or {}
        if func is torch.nn.functional.linear:
            x, weight, bias = _arguments(("input", "weight", "bias"), args, kwargs)
            if (stored := self._stored.get(("linear", id(weight)))) is not None:
                x = rounded_rows(x) if stored.scheme.rounds_rows else x
                return func(x, stored.weight, bias)
        elif func is torch.nn.functional.embedding:
            stored = self._stored.get(("embedding", id(args[1] if len(args) > 1 else kwargs["weight"])))
            if stored is not None:
                ids = args[0] if args else kwargs["input"]
                return func(ids, stored.weight)
        return func(*args, **kwargs)


def _arguments(names: tuple[str, ...], args: tuple, kwargs: Mapping[str, Any]) -> list[Any]:
    return [args[i] if i < len(args) else kwargs.get(name) for i, name in enumerate(names)]
