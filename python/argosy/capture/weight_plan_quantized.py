"""A quantised checkpoint as the float model sees it: each weight a recipe that dequantises, under the float model's name.

Transformers' loading rules of the float model then run on these recipes as on any other. One function for each quantisation
method names the tensors and their layout; the arithmetic is one step for all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from .weight_plan_bitsandbytes import bitsandbytes
from .weight_plan_compressed import compressed_tensors
from .weight_plan_headers import HeaderTensor, dtype_text
from .weight_plan_packed import awq, gptq
from .weight_plan_recipe import RecipeTensor, bitcast, dequantize, source, unpack
from .weight_plan_stored import StoredTensors, as_grid, block_text, by_text, unsupported, wrong_tensor

_FLOAT8 = (torch.float8_e4m3fn, torch.float8_e5m2)
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)


@dataclass
class FloatState:
    """Tensors under the names that a float checkpoint has, and what there is to say of them."""

    state: dict[str, RecipeTensor]
    notes: list[str]


def float_state(
    settings: dict[str, Any] | None, tensors: Sequence[HeaderTensor], dtype: torch.dtype
) -> FloatState:
    """The checkpoint's tensors with the quantised ones dequantised to ``dtype``. ``settings`` is the configuration's
    ``quantization_config``; none: there are only floats."""
    if settings is None:
        return FloatState({each.name: source(each.name, each.dtype, each.shape) for each in tensors}, [])
    method = str(settings.get("quant_method", "")).lower()
    if method not in _METHODS:
        known = ", ".join(sorted(_METHODS))
        raise unsupported(f"its quant_method is {method!r}", f"known are {known}; or give a checkpoint of floats")
    stored = StoredTensors(tensors, dtype)
    _METHODS[method](stored, settings)
    return FloatState(stored.state(), stored.notes())


# ---- fp8: values of 8 bits (or packed ones of 4), a scale for each block of rows and columns ----

#: What a scale is called beside ``….weight``, and what tells how activations are quantised.
_SCALE_NAMES = (".weight_scale_inv", ".scale", ".qscale_weight")
_ACTIVATION_NAMES = (".activation_scale", ".input_scale", ".qscale_act")


def _fp8(stored: StoredTensors, settings: dict[str, Any]) -> None:
    block = settings.get("weight_block_size")
    if block is not None and not _is_block(block):
        raise unsupported(f"its weight_block_size is {block!r}", "two positive numbers are expected")
    for name in stored.names():
        if name not in stored or stored[name].dtype not in (*_FLOAT8, torch.int8):
            continue
        base = name.removesuffix(".weight")
        candidates = [base + suffix for suffix in _SCALE_NAMES] if base != name else [f"{name}_scale_inv"]
        scale_name = next((each for each in candidates if each in stored), candidates[0])
        values = stored.take(name, name)
        scales = stored.take(scale_name, name, dtypes=(*_FLOATS, torch.float8_e8m0fnu, torch.uint8))
        stored.drop(*(base + suffix for suffix in _ACTIVATION_NAMES))
        if scales.dtype == torch.uint8:
            scales = bitcast(scales, torch.float8_e8m0fnu)
        what = dtype_text(values.dtype)
        if values.dtype == torch.int8:  # two values of 4 bits each
            if values.dim() == 0:
                raise wrong_tensor(name, values, "packed values are expected")
            shape = (*values.shape[:-1], 2 * values.shape[-1])
            values, what = unpack(bitcast(values, "f4e2m1", 4).view(shape), torch.float8_e4m3fn), "f4e2m1"
        if values.dim() < 2:
            raise wrong_tensor(name, values, "at least two dims are expected")
        scales, sizes = as_grid(scale_name, values.shape, scales, block)
        how = f"{what} {block_text(values.shape, sizes)} (fp8)"
        stored.put(name, dequantize(values, scales, block=sizes, dtype=stored.dtype), how)


def _is_block(block: Any) -> bool:
    return isinstance(block, (list, tuple)) and len(block) == 2 and all(isinstance(n, int) and n > 0 for n in block)


# ---- mxfp4: experts of GPT-OSS; 32 values of 4 bits share an exponent ----


def _mxfp4(stored: StoredTensors, settings: dict[str, Any]) -> None:
    for name in stored.names("_blocks"):
        base = name.removesuffix("_blocks")
        if f"{base}_scales" not in stored:
            continue  # a weight of another kind that is called so
        blocks = stored.take(name, base, dtypes=(torch.uint8,), rank=4)
        scales = stored.take(f"{base}_scales", base, dtypes=(torch.uint8, torch.float8_e8m0fnu), rank=3)
        experts, rows, groups, packed = blocks.shape
        if tuple(scales.shape) != (experts, rows, groups):
            raise wrong_tensor(f"{base}_scales", scales, f"{by_text((experts, rows, groups))} scales are expected")
        block = 2 * packed
        values = unpack(bitcast(blocks, "f4e2m1", 4).view([experts, rows, groups * block]), torch.float8_e4m3fn)
        if scales.dtype == torch.uint8:
            scales = bitcast(scales, torch.float8_e8m0fnu)
        weight = dequantize(values, scales, block=[1, 1, block], dtype=stored.dtype)
        stored.put(base, weight.transpose(1, 2), f"f4e2m1 in blocks of {block} (mxfp4)")


_METHODS: dict[str, Callable[[StoredTensors, dict[str, Any]], None]] = {
    "awq": awq,
    "bitsandbytes": bitsandbytes,
    "compressed-tensors": compressed_tensors,
    "fp8": _fp8,
    "gptq": gptq,
    "mxfp4": _mxfp4,
}
