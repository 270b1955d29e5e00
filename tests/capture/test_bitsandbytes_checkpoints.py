"""Checkpoints of bitsandbytes: what C++ streams of them is what the format's definition gives, written out here, bit for bit.

bitsandbytes 0.50 computes the same on a CPU, if the columns of a matrix are a multiple of the block. (Else its CPU kernel begins a block with
each row, which is not how it quantises.)
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from sweeps import PROGRAM  # noqa: E402
from sweeps.weight_plans import stream  # noqa: E402
from tiny_checkpoints import DTYPES, Tensors, assert_streams, llama, quantise, write  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

#: Of NF4, as bitsandbytes stores them with each weight.
NF4 = [-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635, -0.18477343022823334,
       -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725, 0.24611230194568634, 0.33791524171829224,
       0.44070982933044434, 0.5626170039176941, 0.7229568362236023, 1.0]  # fmt: skip
FP4 = [value / 12 for value in (0, 0.0625, 8, 12, 4, 6, 2, 3, -0.0, -0.0625, -8, -12, -4, -6, -2, -3)]
SETTINGS = {"quant_method": "bitsandbytes", "load_in_4bit": True, "bnb_4bit_quant_type": "nf4"}
Q = "model.layers.0.self_attn.q_proj.weight"


def as_bytes(settings: dict[str, Any]) -> Any:
    return torch.tensor(list(json.dumps(settings).encode()), dtype=torch.uint8)


def four_bits(kind: str, block: int, *, nested: int = 0, target: Any = torch.bfloat16) -> Callable[[str, Any], tuple[Tensors, Any]]:
    """A linear layer as bitsandbytes stores it, and its matrix. ``nested``: how many scales share one of their own."""

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        count = weight.numel()
        blocks = -(-count // block)
        packed = torch.randint(0, 256, (count // 2, 1), dtype=torch.uint8)
        table = torch.tensor(NF4 if kind == "nf4" else FP4)
        state: dict[str, Any] = {"quant_type": kind, "blocksize": block, "dtype": "bfloat16", "shape": list(weight.shape)}
        stored = {"weight": packed, "weight.quant_map": table}
        if nested:
            codes = torch.randint(0, 256, (blocks,), dtype=torch.uint8)
            inner, outer = torch.linspace(-1, 1, 256), torch.rand(-(-blocks // nested)) + 0.01
            state |= {"nested_blocksize": nested, "nested_dtype": "float32", "nested_offset": 1.7361389398574829}
            scales = inner[codes.long()] * outer.repeat_interleave(nested)[:blocks] + torch.tensor(state["nested_offset"])
            stored |= {"weight.absmax": codes, "weight.nested_absmax": outer, "weight.nested_quant_map": inner}
        else:
            stored["weight.absmax"] = scales = torch.rand(blocks) + 0.01
        stored[f"weight.quant_state.bitsandbytes__{kind}"] = as_bytes(state)
        flat = packed.flatten()
        codes = torch.stack([flat >> 4, flat & 15], 1).flatten()
        dense = table[codes.long()] * scales.repeat_interleave(block)[:count]
        return {f"{name}.{key}": tensor for key, tensor in stored.items()}, dense.view(weight.shape).to(target)

    return make


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("block", [64, 128])
def test_four_bits_are_what_their_definition_gives(kind: str, block: int, dtype: str, tmp_path: Path) -> None:
    """Blocks go over the ends of rows, and the last one is cut short."""
    folder = tmp_path / "m"
    sizes = {"hidden_size": 44, "intermediate_size": 90}
    stored, expected = quantise(llama(folder, dtype, **sizes), four_bits(kind, block, target=DTYPES[dtype]))
    assert 44 * 90 % block
    write(folder, stored, {**SETTINGS, "bnb_4bit_quant_type": kind})
    plan = assert_streams(folder, expected)
    short = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[dtype]
    assert plan["notes"] == [
        f"14 weights are stored as {kind} in blocks of {block} (bitsandbytes): read as {short} while streaming"
    ]


@pytest.mark.parametrize("kind", ["nf4", "fp4"])
@pytest.mark.parametrize("nested", [256, 7])
def test_scales_may_be_quantised_themselves(kind: str, nested: int, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder), four_bits(kind, 64, nested=nested))
    write(folder, stored, {**SETTINGS, "bnb_4bit_use_double_quant": True})
    plan = assert_streams(folder, expected)
    assert "with quantised scales (bitsandbytes)" in plan["notes"][0]


def test_eight_bits_are_what_their_definition_gives(tmp_path: Path) -> None:
    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        values = torch.randint(-127, 128, weight.shape, dtype=torch.int8)
        scales = torch.rand(weight.shape[0]) + 0.01
        stored = {"weight": values, "SCB": scales, "weight_format": torch.zeros((), dtype=torch.uint8)}
        dense = values * scales.view(-1, 1) * 7.874015718698502e-3
        return {f"{name}.{key}": tensor for key, tensor in stored.items()}, dense.half()

    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder, "float16"), make)
    settings = {"quant_method": "bitsandbytes", "load_in_8bit": True}
    write(folder, stored, settings)
    plan = assert_streams(folder, expected)
    assert plan["notes"] == ["14 weights are stored as i8 with a scale for each row (bitsandbytes): read as f16 while streaming"]
    stored["model.layers.0.self_attn.q_proj.weight_format"] = torch.ones((), dtype=torch.uint8)
    write(folder, stored, settings)
    with pytest.raises(ExportError, match="q_proj.weight_format' is b'.x01'"):
        make_weight_plan(folder)


def test_a_plan_is_for_the_settings_that_it_was_made_from(tmp_path: Path) -> None:
    """Numbers of the arithmetic are in the bytes of a tensor: another checkpoint of the same names and shapes may have others."""
    folder = tmp_path / "m"
    make = four_bits("nf4", 64, nested=256)
    stored, _ = quantise(llama(folder), make)
    write(folder, stored, SETTINGS)
    plan = make_weight_plan(folder)
    assert not stream(plan, folder, PROGRAM)[1]
    name = f"{Q}.quant_state.bitsandbytes__nf4"
    text = bytes(stored[name].tolist())
    assert b'"nested_offset": 1.7361' in text
    stored[name] = torch.tensor(list(text.replace(b": 1.7361", b": 1.7362")), dtype=torch.uint8)
    write(folder, stored, SETTINGS)
    assert make_weight_plan(folder)["checkpoint_hash"] != plan["checkpoint_hash"]
    assert "was made for a checkpoint of other names" in stream(plan, folder, PROGRAM)[1]


def changed(**changes: Any) -> Any:
    return as_bytes({"quant_type": "nf4", "blocksize": 64, "dtype": "bfloat16", "shape": [48, 48], **changes})


@pytest.mark.parametrize(
    ("key", "tensor", "message"),
    [
        (".absmax", None, r"no 'model.layers.0.self_attn.q_proj.weight.absmax', without which"),
        (".absmax", torch.rand(35), r"absmax' is f32\[35\]: 36 scales are expected, for blocks of 64"),
        (".absmax", torch.zeros(36, dtype=torch.uint8), r"absmax' is u8\[36\]: f32 is expected"),
        (".quant_map", torch.rand(8), r"quant_map' is f32\[8\]: 16 values are expected"),
        ("", torch.zeros(1151, 1, dtype=torch.uint8), r"q_proj.weight' is u8\[1151, 1\]: two values in a byte are expected"),
        (".quant_state.bitsandbytes__nf4", None, r"q_proj.weight' is u8\[1152, 1\]: '.*quant_state.* is expected beside it"),
        (".quant_state.bitsandbytes__nf4", torch.zeros(3, dtype=torch.uint8), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(blocksize=0), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(blocksize=[1]), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(shape=[-48, -48]), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(nested_blocksize=256), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(nested_blocksize=256, nested_offset=float("inf")), "its settings are not usable"),
        (".quant_state.bitsandbytes__nf4", changed(nested_blocksize=256, nested_offset=1.0), "u8 is expected"),
    ],
)
def test_what_does_not_fit_is_refused_by_name(key: str, tensor: Any, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder), four_bits("nf4", 64))
    del stored[Q + key]
    if tensor is not None:
        stored[Q + key] = tensor
    write(folder, stored, SETTINGS)
    with pytest.raises(ExportError, match=message):
        make_weight_plan(folder)
