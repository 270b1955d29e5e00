"""bitsandbytes: weights of 4 bits (NF4 and FP4, by a table, with scales that may be quantised themselves) and of 8 (LLM.int8).

A weight of 4 bits is stored flat, two values in a byte, the first in its high bits. Shape and block size are in the JSON that the
bytes of ``….quant_state.bitsandbytes__…`` are.
"""

from __future__ import annotations

import json
import math
from math import prod
from typing import Any

import torch

from .weight_plan_recipe import RecipeTensor, affine, bitcast, dequantize, gather, unpack
from .weight_plan_stored import StoredTensors, unsupported, wrong_tensor

_STATE = ".quant_state.bitsandbytes__"
_FLOAT = (torch.float32,)
#: What bitsandbytes multiplies by instead of dividing by 127.
_INT8_SCALE = 7.874015718698502e-3


def bitsandbytes(stored: StoredTensors, settings: dict[str, Any]) -> None:
    for name in [name for name in stored.names() if _STATE in name]:
        _four_bits(stored, name)
    for name in stored.names(".SCB"):
        _eight_bits(stored, name)
    for name in stored.names(".weight"):
        if stored[name].dtype in (torch.uint8, torch.int8):
            raise wrong_tensor(name, stored[name], f"'{name}{_STATE}…' is expected beside it, or SCB")


# ---- 4 bits ----


def _four_bits(stored: StoredTensors, state_name: str) -> None:
    weight, _, kind = state_name.partition(_STATE)
    if kind not in ("nf4", "fp4"):
        raise unsupported(f"{state_name!r} is of the kind {kind}", "nf4 and fp4 are read")
    state = _state_of(stored, state_name, weight)
    shape, block = state["shape"], state["blocksize"]
    packed = stored.take(weight, weight, dtypes=(torch.uint8, torch.int8))
    table = stored.take(f"{weight}.quant_map", weight, dtypes=_FLOAT, rank=1)
    if table.shape[0] != 16:
        raise wrong_tensor(f"{weight}.quant_map", table, "16 values are expected")
    count = prod(shape)
    if packed.numel() != -(-count // 2) or count % 2:
        raise wrong_tensor(weight, packed, f"two values in a byte are expected, of a weight of shape {shape}")
    pairs = unpack(bitcast(packed.view([count // 2]), "u4", 4), torch.uint8)
    codes = torch.cat([pairs[:, 1:2], pairs[:, 0:1]], 1)  # low bits come first in a plan
    values = gather(table, codes.view([count]))
    scales = _scales(stored, weight, state, -(-count // block))
    dense = dequantize(values, scales, block=[block], dtype=stored.dtype)
    doubly = " with quantised scales" if "nested_blocksize" in state else ""
    stored.put(weight, dense.view(shape), f"{kind} in blocks of {block}{doubly} (bitsandbytes)")


def _scales(stored: StoredTensors, weight: str, state: dict[str, Any], count: int) -> RecipeTensor:
    name = f"{weight}.absmax"
    is_nested = "nested_blocksize" in state
    scales = stored.take(name, weight, dtypes=(torch.uint8,) if is_nested else _FLOAT, rank=1)
    if scales.shape[0] != count:
        raise wrong_tensor(name, scales, f"{count} scales are expected, for blocks of {state['blocksize']}")
    if not is_nested:
        return scales
    block = state["nested_blocksize"]
    table = stored.take(f"{weight}.nested_quant_map", weight, dtypes=_FLOAT, rank=1)
    if table.shape[0] != 256:
        raise wrong_tensor(f"{weight}.nested_quant_map", table, "256 values are expected")
    outer = stored.take(f"{weight}.nested_absmax", weight, dtypes=_FLOAT, rank=1)
    if outer.shape[0] != -(-count // block):
        raise wrong_tensor(f"{weight}.nested_absmax", outer, f"{-(-count // block)} scales are expected, for blocks of {block}")
    inner = dequantize(gather(table, scales), outer, block=[block], dtype=torch.float32)
    return affine(inner, 1.0, state["nested_offset"], torch.float32)


def _state_of(stored: StoredTensors, name: str, weight: str) -> dict[str, Any]:
    """The numbers of the JSON, each of the kind that it must be."""
    tensor = stored.take(name, weight, dtypes=(torch.uint8,), rank=1)
    content = stored.content(name)
    if content is None:
        raise wrong_tensor(name, tensor, "settings in JSON of a safetensors file are expected")
    try:
        state = json.loads(content)
        shape = [int(size) for size in state["shape"]]
        found: dict[str, Any] = {"shape": shape, "blocksize": int(state["blocksize"])}
        if "nested_blocksize" in state:
            found["nested_blocksize"] = int(state["nested_blocksize"])
            found["nested_offset"] = float(state["nested_offset"])
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise wrong_tensor(name, tensor, f"its settings are not usable ({error!r})") from error
    sizes = [found["blocksize"], found.get("nested_blocksize", 1)]
    if min([*sizes, *shape], default=0) <= 0 or not math.isfinite(found.get("nested_offset", 0.0)):
        raise wrong_tensor(name, tensor, f"its settings are not usable: {content[:200]!r}")
    return found


# ---- 8 bits ----


def _eight_bits(stored: StoredTensors, name: str) -> None:
    base = name.removesuffix(".SCB")
    weight = f"{base}.weight"
    values = stored.take(weight, weight, dtypes=(torch.int8,), rank=2)
    scales = stored.take(name, weight, dtypes=_FLOAT, rank=1)
    if scales.shape[0] != values.shape[0]:
        raise wrong_tensor(name, scales, f"{values.shape[0]} scales are expected, one for each row")
    if (stored.content(f"{base}.weight_format") or b"\0") != b"\0":
        raise unsupported(f"'{base}.weight_format' is {stored.content(f'{base}.weight_format')!r}", "rows (0) are read")
    stored.drop(f"{base}.weight_format")
    rows = dequantize(values, scales.view([values.shape[0], 1]), block=[1, values.shape[1]], dtype=torch.float32)
    stored.put(weight, affine(rows, _INT8_SCALE, 0.0, stored.dtype), "i8 with a scale for each row (bitsandbytes)")
