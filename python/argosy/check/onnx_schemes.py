"""Weights in few bits as ONNX Runtime's MatMulNBits, MatMulBnb4, GatherBlockQuantized and MatMulInteger have them, with NumPy: the same bits."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial

import numpy as np
import torch

from ..weight_schemes import WeightScheme, quantize_rows, weight_scheme

_VALUES_AT_ONCE = 1 << 20

#: Of k_quant: how many scales are tried.
_TRIES = 20

#: What integers of NF4 stand for: sixteenths of a normal distribution, from -1 to 1.
_NORMAL = (-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
           -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
           0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0)  # fmt: skip
#: Where the engine's quantizer goes on to the next one: halfway, though three are a bit off as floats round.
_NORMAL_STEPS = (-0.84809643, -0.610632896, -0.45999527, -0.33967942, -0.234607399, -0.137911737, -0.0455250181, 0.0397901498,
                 0.120255254, 0.203521252, 0.292013764, 0.389312536, 0.501663387, 0.64278692, 0.861478388)  # fmt: skip


def onnx_blocks(encoding: str) -> Callable[[torch.Tensor, int], torch.Tensor] | None:
    """What comes back of a weight [rows, width], for "int4", "uint8-k_quant", "nf4" and the like."""
    if encoding == "nf4":
        return normal_floats
    if re.fullmatch(r"u?int[48]-kept", encoding):
        return lambda weight, _group: weight  # the checkpoint's own integers: it is stored so already
    match = re.fullmatch(r"(u?)int([48])(?:-(rtn|k_quant))?", encoding)
    if match is None:
        scheme = weight_scheme(encoding)
        return partial(_registered, scheme=scheme) if scheme else None
    method = {None: _largest, "rtn": _nearest, "k_quant": _weighted}[match[3]]
    return partial(_stored, method=partial(method, bits=int(match[2]), is_symmetric=not match[1]))


def rounded_blocks(x: torch.Tensor, group: int) -> torch.Tensor:
    """Activations in eight bits, a scale for each block of a row."""
    width = x.shape[-1]
    blocks = torch.nn.functional.pad(x.float(), (0, -width % group)).unflatten(-1, (-1, group))
    scale = blocks.abs().amax(-1, keepdim=True) / 127
    integers = torch.where(scale > 0, blocks / scale, 0).round()
    return (integers * scale).flatten(-2)[..., :width].to(x.dtype)


def normal_floats(weight: torch.Tensor, group: int) -> torch.Tensor:
    """What comes back of a weight [rows, width] in NF4: blocks go on from row to row."""
    values = weight.detach().float().numpy().reshape(-1, group)
    largest = np.abs(values).max(1, keepdims=True)
    with np.errstate(all="ignore"):
        parts = values * np.where(largest != 0, np.float32(1) / largest, np.float32(0))
    integers = np.zeros(values.shape, np.uint8)
    for step in np.array(_NORMAL_STEPS, np.float32):
        integers += parts > step
    return torch.from_numpy((np.array(_NORMAL, np.float32)[integers] * largest).reshape(weight.shape)).to(weight.dtype)


def rows_of_bytes(weight: torch.Tensor, _group: int, *, is_signed: bool) -> torch.Tensor:
    """What comes back of a weight [rows, width] that has a scale for each row, as quantize_dynamic has it by channel."""
    values = weight.detach().float().numpy()
    least = np.minimum(values.min(1, keepdims=True), 0).astype(np.float64)
    most = np.maximum(values.max(1, keepdims=True), 0).astype(np.float64)
    step = 2 * np.maximum(-least, most) / 254 if is_signed else (most - least) / 255
    is_tiny = step < np.finfo(np.float32).tiny
    zeros = np.zeros_like(step) if is_signed else np.where(is_tiny, 0, np.round(-least / np.where(is_tiny, 1, step)))
    scale = np.where(is_tiny, 1, step).astype(np.float32)
    integers = np.clip(np.round(values / scale) + zeros, *((-128, 127) if is_signed else (0, 255)))
    return torch.from_numpy((integers - zeros).astype(np.float32) * scale).to(weight.dtype)


def rounded_whole(x: torch.Tensor, _group: int) -> torch.Tensor:
    """Activations in eight bits, one scale and zero point for all of them: DynamicQuantizeLinear."""
    wide = x.float()
    low, high = wide.amin().clamp(max=0), wide.amax().clamp(min=0)
    scale = (high - low) / 255
    if scale == 0:
        return x
    zero = (-low / scale).clamp(0, 255).round()
    return ((((wide / scale).round() + zero).clamp(0, 255) - zero) * scale).to(x.dtype)


def _stored(weight: torch.Tensor, group: int, *, method: Callable[..., np.ndarray]) -> torch.Tensor:
    rows, width = weight.shape
    values = np.pad(weight.detach().float().numpy(), ((0, 0), (0, -width % group))).reshape(-1, group)
    scales = np.float16 if weight.dtype == torch.float16 else np.float32
    with np.errstate(all="ignore"):
        back = method(values, scales=scales)
    return torch.from_numpy(back.reshape(rows, -1)[:, :width].copy()).to(weight.dtype)


def _registered(weight: torch.Tensor, group: int, *, scheme: WeightScheme) -> torch.Tensor:
    """By a scheme of a package: some rows at a time, since its function may take a multiple of their memory."""
    width = weight.shape[1]
    scale_type = np.float16 if weight.dtype == torch.float16 else np.float32
    parts = []
    for some in weight.detach().split(max(1, _VALUES_AT_ONCE // width)):
        blocks = np.pad(some.float().numpy(), ((0, 0), (0, -width % group))).reshape(len(some), -1, group)
        integers, scales, zeros = quantize_rows(scheme, blocks)
        steps = integers.astype(np.float32) - zeros[..., None]
        back = steps * scales.astype(scale_type).astype(np.float32)[..., None]
        parts.append(torch.from_numpy(back.reshape(len(some), -1)[:, :width].copy()))
    return torch.cat(parts).to(weight.dtype)


def _largest(values: np.ndarray, *, bits: int, is_symmetric: bool, scales: type) -> np.ndarray:
    """The value farthest from zero is exact; halves are rounded away from zero."""
    highest, middle = np.float32(2**bits - 1), np.float32(2 ** (bits - 1))
    least, most = values.min(1, keepdims=True), values.max(1, keepdims=True)
    zeros: np.ndarray | np.float32 = middle
    if is_symmetric:
        scale = np.where(np.abs(most) > np.abs(least), most, least) / -middle
    else:
        least, most = np.minimum(least, np.float32(0)), np.maximum(most, np.float32(0))
        scale = (most - least) / highest
        zeros = _away(np.clip(np.where(scale != 0, np.float32(0) - least / scale, least), 0, highest))
    scale = scale.astype(scales).astype(np.float32)
    inverse = np.where(scale != 0, np.float32(1) / scale, np.float32(0)).astype(np.float32)
    integers = _away(np.clip(values * inverse + zeros, 0, highest))
    return (integers - zeros) * scale


def _away(values: np.ndarray) -> np.ndarray:
    whole = np.trunc(values)
    return whole + (values - whole >= 0.5)


def _nearest(values: np.ndarray, *, bits: int, is_symmetric: bool, scales: type) -> np.ndarray:
    """The range of values is the range of integers."""
    highest = 2**bits - 1
    least, most = values.min(1, keepdims=True), values.max(1, keepdims=True)
    zeros: np.ndarray | float = float(2 ** (bits - 1))
    if is_symmetric:
        largest = np.maximum(np.abs(least), np.abs(most))
        scale = np.where(largest > 0, (largest * np.float32(2)).astype(np.float64) / highest, 1.0)
    else:
        scale = np.where(least != most, (most - least).astype(np.float64) / highest, 1.0)
        zeros = np.clip(np.round((0.0 - least) / scale), 0, highest)
    integers = np.clip(np.round(values / scale + zeros), 0, highest)
    return (integers - zeros).astype(np.float32) * scale.astype(np.float32).astype(scales).astype(np.float32)


def _weighted(values: np.ndarray, *, bits: int, is_symmetric: bool, scales: type) -> np.ndarray:
    """Scale and least value are searched for, so that the error is small where values are large."""
    assert not is_symmetric
    highest = np.float32(2**bits - 1)

    def total(x: np.ndarray) -> np.ndarray:
        return np.sum(x, axis=1, keepdims=True)

    def rounded(inverse: np.ndarray) -> np.ndarray:
        return np.clip(np.round(inverse * (values - least)), 0, highest)

    weights = np.sqrt(total(values**2) / values.shape[1]) + np.abs(values)
    least, most = values.min(1, keepdims=True), values.max(1, keepdims=True)
    sum_w, sum_x = total(weights), total(weights * values)
    inverse = np.where(least != most, highest / (most - least), np.float32(1))
    scale = 1 / inverse
    best = total(weights * (scale * rounded(inverse) + least - values) ** 2)
    for attempt in range(_TRIES):
        factor = np.float32(-1 + 0.1 * attempt + (2**bits - 1))
        integers = rounded(np.where(least != most, factor / (most - least), np.float32(1)))
        products = weights * integers
        sum_l, sum_l2, sum_xl = total(products), total(products * integers), total(products * values)
        determinant = sum_w * sum_l2 - sum_l**2
        new_scale = (sum_w * sum_xl - sum_x * sum_l) / determinant
        new_least = (sum_l2 * sum_x - sum_l * sum_xl) / determinant
        error = total(weights * (new_scale * integers + new_least - values) ** 2)
        better = error < best
        best, scale, least = (np.where(better, new, old) for new, old in ((error, best), (new_scale, scale), (new_least, least)))
    zeros = np.clip(np.round(-least / scale), 0, highest)
    integers = np.clip(np.round(values / scale.astype(np.float64) + zeros), 0, highest)
    return (integers - zeros).astype(np.float32) * scale.astype(scales).astype(np.float32)
