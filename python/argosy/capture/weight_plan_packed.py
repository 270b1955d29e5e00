"""GPTQ and AWQ: integers packed into words of 32 bits, with scales and zero points for groups of a row's columns.

Both store matrices as (columns, rows) of the ``nn.Linear`` that they belong to.
"""

from __future__ import annotations

from typing import Any

import torch

from .weight_plan_recipe import RecipeTensor, bitcast, dequantize, gather, unpack
from .weight_plan_stored import StoredTensors, unsupported, wrong_tensor

_WORD = 32
_SCALES = (torch.float16, torch.bfloat16, torch.float32)


def gptq(stored: StoredTensors, settings: dict[str, Any]) -> None:
    """``qweight`` has the columns of a word one after another; ``g_idx`` says which group a column belongs to."""
    bits = _bits(settings, (2, 4, 8))
    formats = {str(settings[key]).lower() for key in ("checkpoint_format", "format") if settings.get(key)}
    if not formats <= {"gptq", "gptq_v2"}:
        raise unsupported(f"its checkpoint_format is {', '.join(sorted(formats))}", "gptq and gptq_v2 are read")
    # The first version of the format stores zero points less one, modulo the number of values.
    zero, modulus = (0, 0) if "gptq_v2" in formats else (1, 1 << bits)
    for name in stored.names(".qweight"):
        base = name.removesuffix(".qweight")
        weight = f"{base}.weight"
        packed = stored.take(name, weight, dtypes=(torch.int32,), rank=2)
        rows, columns = packed.shape[1], packed.shape[0] * _WORD // bits
        if rows * bits % _WORD:
            raise wrong_tensor(name, packed, f"rows in multiples of {_WORD // bits} are expected")
        words = _as_values(packed, bits).permute(1, 0, 2)
        values = _unpacked(words.view([rows, columns]), bits)
        scales, zeros, group = _groups(stored, base, settings, rows, columns, bits, awq_order=False)
        indices = stored.take_if_there(f"{base}.g_idx", weight, dtypes=(torch.int32, torch.int64), rank=1)
        if settings.get("desc_act"):
            if indices is None:
                raise wrong_tensor(name, packed, f"{base + '.g_idx'!r} is expected beside it (desc_act is true)")
            if indices.shape[0] != columns:
                raise wrong_tensor(f"{base}.g_idx", indices, f"{columns} indices are expected")
            scales, zeros, block = gather(scales, indices), gather(zeros, indices), 1
        else:
            block = group
        dense = dequantize(values, scales, zeros, block=[1, block], zero=zero, modulus=modulus, dtype=stored.dtype)
        stored.put(weight, dense, f"u{bits} in groups of {group} (gptq)")


def awq(stored: StoredTensors, settings: dict[str, Any]) -> None:
    """``qweight`` has the rows of a word in the order 0, 2, 4, 6, 1, 3, 5, 7."""
    version = str(settings.get("version") or settings.get("format") or "gemm").lower()
    if version != "gemm":
        raise unsupported(f"its version is {version}", "the version gemm is read")
    bits = _bits(settings, (4,))
    for name in stored.names(".qweight"):
        base = name.removesuffix(".qweight")
        weight = f"{base}.weight"
        packed = stored.take(name, weight, dtypes=(torch.int32,), rank=2)
        columns, rows = packed.shape[0], packed.shape[1] * _WORD // bits
        values = _rows_of_awq(packed, bits)
        scales, zeros, group = _groups(stored, base, settings, rows, columns, bits, awq_order=True)
        stored.drop(f"{base}.g_idx")
        dense = dequantize(values, scales, zeros, block=[1, group], dtype=stored.dtype)
        stored.put(weight, dense, f"u{bits} in groups of {group} (awq)")


def _groups(
    stored: StoredTensors, base: str, settings: dict[str, Any], rows: int, columns: int, bits: int, *, awq_order: bool
) -> tuple[RecipeTensor, RecipeTensor, int]:
    """Scales and zero points as (rows, groups), and how many columns a group has."""
    weight = f"{base}.weight"
    group = settings.get("group_size", settings.get("q_group_size", 128))
    if not isinstance(group, int) or group == 0 or group < -1:
        raise unsupported(f"its group_size is {group!r}", "a positive number or -1 is expected")
    group = max(columns, 1) if group == -1 else group
    count = -(-columns // group)
    scales = stored.take(f"{base}.scales", weight, dtypes=_SCALES, rank=2)
    if tuple(scales.shape) != (count, rows):
        raise wrong_tensor(f"{base}.scales", scales, f"[{count}, {rows}] is expected, for groups of {group}")
    zeros = stored.take(f"{base}.qzeros", weight, dtypes=(torch.int32,), rank=2)
    if tuple(zeros.shape) != (count, rows * bits // _WORD):
        raise wrong_tensor(f"{base}.qzeros", zeros, f"[{count}, {rows * bits // _WORD}] is expected, for groups of {group}")
    if awq_order:
        return scales.transpose(0, 1), _rows_of_awq(zeros, bits), group
    flat = _unpacked(_as_values(zeros, bits).view([count, rows]), bits)
    return scales.transpose(0, 1), flat.transpose(0, 1), group


def _as_values(words: RecipeTensor, bits: int) -> RecipeTensor:
    """The values of each word in a dim of their own, not yet in bytes."""
    return bitcast(words, torch.uint8) if bits == 8 else bitcast(words, f"u{bits}", bits)


def _unpacked(values: RecipeTensor, bits: int) -> RecipeTensor:
    return values if bits == 8 else unpack(values, torch.uint8)


def _rows_of_awq(words: RecipeTensor, bits: int) -> RecipeTensor:
    """(columns, rows / 8) words as (rows, columns): a word's first four values are its even rows."""
    columns, count = words.shape
    values = _unpacked(_as_values(words, bits), bits).view([columns, count, 2, 4])
    return values.permute(1, 3, 2, 0).view([count * 8, columns])


def _bits(settings: dict[str, Any], known: tuple[int, ...]) -> int:
    bits = settings.get("bits", settings.get("w_bit"))
    if bits not in known:
        raise unsupported(f"its values have {bits!r} bits", f"{', '.join(map(str, known))} bits are read")
    return int(bits)
