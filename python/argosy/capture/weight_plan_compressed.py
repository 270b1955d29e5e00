"""compressed-tensors: 8-bit floats and integers as they are, smaller integers packed into words of 32 bits.

Which weights are quantised, and how, is read from the tensors that are there; the configuration gives bits and blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from .weight_plan_headers import dtype_text
from .weight_plan_recipe import RecipeTensor, bitcast, dequantize, gather, unpack
from .weight_plan_stored import StoredTensors, as_grid, block_text, unsupported, wrong_tensor

_WORD = 32
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
_FORMATS = ("pack-quantized", "float-quantized", "int-quantized", "naive-quantized", "mixed-precision", "dense")
#: Of activations and caches, which weights do not depend on.
_OTHER = ("input_scale", "input_zero_point", "output_scale", "output_zero_point", "input_global_scale")


def compressed_tensors(stored: StoredTensors, settings: dict[str, Any]) -> None:
    groups = settings.get("config_groups")
    schemes = [group for group in groups.values() if isinstance(group, dict)] if isinstance(groups, dict) else []
    formats = {str(one.get("format")) for one in (settings, *schemes) if one.get("format")}
    if not formats <= set(_FORMATS):
        unknown = ", ".join(sorted(formats - set(_FORMATS)))
        raise unsupported(f"its format is {unknown}", "pack-quantized, float-quantized and int-quantized are read")
    weights = [scheme["weights"] for scheme in schemes if isinstance(scheme.get("weights"), dict)]
    for name in stored.names(".weight_packed"):
        _packed(stored, name.removesuffix(".weight_packed"), weights)
    for name in stored.names(".weight_scale"):
        if name in stored:
            _plain(stored, name.removesuffix(".weight_scale"), weights)


def _packed(stored: StoredTensors, base: str, schemes: Sequence[dict[str, Any]]) -> None:
    """Signed integers, stored as unsigned ones with half of their range added."""
    name, weight = f"{base}.weight_packed", f"{base}.weight"
    bits = _agreed(schemes, "num_bits", name)
    if bits not in (4, 8):
        raise unsupported(f"its values have {bits!r} bits", "4 and 8 bits are read")
    packed = stored.take(name, weight, dtypes=(torch.int32,), rank=2)
    rows, columns = packed.shape[0], packed.shape[1] * _WORD // bits
    values = _bytes(packed, bits).view([rows, columns])
    scales = stored.take(f"{base}.weight_scale", weight, dtypes=_FLOATS)
    stored.drop(f"{base}.weight_shape", *(f"{base}.{name}" for name in _OTHER))
    scales, block = as_grid(f"{base}.weight_scale", (rows, columns), scales, _block(schemes, columns))
    half = 1 << (bits - 1)
    zeros = stored.take_if_there(f"{base}.weight_zero_point", weight, dtypes=(torch.int32,), rank=2)
    if zeros is not None:
        words, groups = zeros.shape
        if words != -(-rows * bits // _WORD) or groups != scales.shape[1] or rows * bits % _WORD:
            raise wrong_tensor(f"{base}.weight_zero_point", zeros, f"zero points of {rows} rows are expected, packed")
        # Packed along rows. Half of the range was added to them too, so that it cancels out.
        zeros = _bytes(zeros, bits).permute(0, 2, 1).view([rows, groups])
        half = 0
    how = f"i{bits} {block_text((rows, columns), block)} (compressed-tensors)"
    indices = stored.take_if_there(f"{base}.weight_g_idx", weight, dtypes=(torch.int32, torch.int64), rank=1)
    if indices is not None:
        if indices.shape[0] != columns:
            raise wrong_tensor(f"{base}.weight_g_idx", indices, f"{columns} indices are expected")
        scales, block = gather(scales, indices), [block[0], 1]
        zeros = None if zeros is None else gather(zeros, indices)
    stored.put(weight, dequantize(values, scales, zeros, block=block, zero=half, dtype=stored.dtype), how)


def _plain(stored: StoredTensors, base: str, schemes: Sequence[dict[str, Any]]) -> None:
    """Values of a byte each."""
    weight = f"{base}.weight"
    if weight not in stored or stored[weight].dtype in _FLOATS:
        return  # a scale of something else
    values = stored.take(weight, weight, dtypes=(torch.float8_e4m3fn, torch.float8_e5m2, torch.int8), rank=2)
    scales = stored.take(f"{base}.weight_scale", weight, dtypes=_FLOATS)
    stored.drop(*(f"{base}.{name}" for name in _OTHER))
    scales, block = as_grid(f"{base}.weight_scale", values.shape, scales, _block(schemes, values.shape[1]))
    zeros = stored.take_if_there(f"{base}.weight_zero_point", weight, dtypes=(torch.int8, *_FLOATS))
    if zeros is not None:
        if zeros.numel() != scales.numel():
            raise wrong_tensor(f"{base}.weight_zero_point", zeros, f"{scales.numel()} zero points are expected")
        zeros = zeros.view(list(scales.shape))
    how = f"{dtype_text(values.dtype)} {block_text(values.shape, block)} (compressed-tensors)"
    stored.put(weight, dequantize(values, scales, zeros, block=block, dtype=stored.dtype), how)


def _bytes(words: RecipeTensor, bits: int) -> RecipeTensor:
    return bitcast(words, torch.uint8) if bits == 8 else unpack(bitcast(words, "u4", 4), torch.uint8)


def _block(schemes: Sequence[dict[str, Any]], columns: int) -> list[int] | None:
    """The blocks that all schemes agree on; none where the number of scales has to tell."""
    found = set()
    for scheme in schemes:
        structure, group = scheme.get("block_structure"), scheme.get("group_size")
        if isinstance(structure, (list, tuple)) and len(structure) == 2 and all(isinstance(n, int) and n > 0 for n in structure):
            found.add(tuple(structure))
        elif isinstance(group, int) and group > 0:
            found.add((1, group))
        else:
            found.add((1, max(columns, 1)))
    return list(found.pop()) if len(found) == 1 else None


def _agreed(schemes: Sequence[dict[str, Any]], key: str, name: str) -> Any:
    """What all schemes of packed integers say."""
    values = {scheme.get(key) for scheme in schemes if scheme.get("type", "int") == "int"}
    if len(values) != 1:
        raise unsupported(f"its groups have {sorted(map(str, values))} as {key}, and {name!r} does not say which", "one is read")
    return values.pop()
