"""Eager models from quantised checkpoints, without the libraries that made these: the steps of the weight plan in PyTorch.

What the export streams is compared with this, so that it shares nothing with it but the plan.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError

#: Of ``f4e2m1``, by its four bits.
_QUARTERS = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0)
#: Dtypes that torch has no tensors of: their bits are held as bytes.
_PACKED = {"u2": 2, "u4": 4, "f4e2m1": 4}


def is_quantized(folder: Path) -> bool:
    from ..capture.configuration import quantization_settings, read_configuration

    return quantization_settings(read_configuration(folder)) is not None


def load_dequantized(cls: Any, folder: Path, dtype: str, trust_remote_code: bool) -> torch.nn.Module:
    """The float model of a quantised checkpoint, with its weights in memory."""
    from ..capture.configuration import load_config
    from ..capture.weight_plan import make_weight_plan

    plan = make_weight_plan(folder, dtype=dtype, trust_remote_code=trust_remote_code, cls=cls)
    if plan["missing"]:
        raise ExportError(f"the checkpoint has no tensor for {plan['missing'][0]}", code="not-found")
    config = load_config(folder, trust_remote_code=trust_remote_code)
    state = weights_of(plan, folder)
    return cls.from_pretrained(None, config=config, state_dict=state, dtype=getattr(torch, dtype))


def weights_of(plan: dict[str, Any], folder: Path) -> dict[str, torch.Tensor]:
    """Every weight of a plan by its name, from the checkpoint in ``folder``; tied ones only once."""
    from safetensors import safe_open

    from ..capture.weight_plan_headers import checkpoint_files, dtype_of_text

    files = [safe_open(path, "pt") for path in checkpoint_files(folder)]
    holder = {name: file for file in files for name in file.keys()}
    state: dict[str, torch.Tensor] = {}
    for weight in plan["weights"]:
        if "sources" in weight:
            values = [holder[name].get_tensor(name) for name in weight["sources"]]
            packing: dict[int, str] = {}
            for step in weight.get("steps", ()):
                values.append(_run(step, values, packing))
            state[weight["name"]] = values[-1]
        elif "tied_to" not in weight:
            dtype, shape = dtype_of_text(weight["dtype"]), weight["shape"]
            stored = torch.frombuffer(bytearray.fromhex(weight.get("fill") or weight["bytes"]), dtype=dtype)
            state[weight["name"]] = stored.expand(shape).clone() if "fill" in weight else stored.view(shape)
    return state


def _run(step: dict[str, Any], values: list[torch.Tensor], packing: dict[int, str]) -> torch.Tensor:
    """One step. ``packing`` has what the bytes of packed values stand for, by the number of the value."""
    from ..capture.weight_plan_headers import dtype_of_text

    numbers: list[int] = step["inputs"]
    first, op = values[numbers[0]], step["op"]
    kind = packing.get(numbers[0])
    if kind is not None and op in ("transpose", "reshape"):
        packing[len(values)] = kind
    if op == "bitcast" and step["dtype"] in _PACKED:
        packing[len(values)] = step["dtype"]
        return _codes(first, _PACKED[step["dtype"]])
    if op == "cast" and kind is not None:
        return torch.tensor(_QUARTERS)[first.long()].to(torch.float8_e4m3fn) if kind == "f4e2m1" else first
    run: dict[str, Callable[[], torch.Tensor]] = {
        "stack": lambda: torch.stack([values[n] for n in numbers], step["dim"]),
        "concat": lambda: torch.cat([values[n] for n in numbers], step["dim"]),
        "slice": lambda: first.narrow(step["dim"], step["start"], step["length"]),
        "transpose": lambda: first.permute(step["order"]),
        "reshape": lambda: first.reshape(step["shape"]),
        "cast": lambda: first.to(dtype_of_text(step["dtype"])),
        "bitcast": lambda: _parts(first, dtype_of_text(step["dtype"])),
        "affine": lambda: (first * step["scale"] + step["offset"]).to(dtype_of_text(step["dtype"])),
        "gather": lambda: first.index_select(-1, values[numbers[1]].long()),
        "dequantize": lambda: _dequantize(step, [values[n] for n in numbers]).to(dtype_of_text(step["dtype"])),
    }
    if op not in run:
        raise ExportError(f"the step {op} of a weight plan is not known here", code="unsupported-op")
    return run[op]()


def _codes(words: torch.Tensor, bits: int) -> torch.Tensor:
    """The values of each word, low bits first, in a dim of their own."""
    single = words.contiguous().view(torch.uint8).view(*words.shape, words.dtype.itemsize)
    shifts = torch.arange(0, 8, bits, dtype=torch.uint8)
    return ((single[..., None] >> shifts) & ((1 << bits) - 1)).flatten(-2)


def _parts(words: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    parts = words.dtype.itemsize // dtype.itemsize
    flat = words.contiguous().view(dtype)
    return flat if parts == 1 else flat.view(*words.shape, parts)


def _dequantize(step: dict[str, Any], inputs: list[torch.Tensor]) -> torch.Tensor:
    values, scales = inputs[0].float(), inputs[1].float()
    zeros = torch.tensor(float(step.get("zero", 0)))
    if len(inputs) > 2:
        zeros = inputs[2].float() + zeros
        zeros = zeros % step["modulus"] if step.get("modulus") else zeros
        zeros = _spread(zeros, step["block"], values.shape)
    return (values - zeros) * _spread(scales, step["block"], values.shape)


def _spread(grid: torch.Tensor, block: list[int], shape: torch.Size) -> torch.Tensor:
    """An element for each of its block."""
    for dim, (size, whole) in enumerate(zip(block, shape, strict=True)):
        grid = grid.repeat_interleave(size, dim).narrow(dim, 0, whole)
    return grid
