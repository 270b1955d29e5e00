"""Quantised checkpoints: what C++ streams of them is what each format's definition gives, written out here in PyTorch (or what
transformers' own code gives where it runs on a CPU), bit for bit in the dtype that is asked for.

Packed tensors are random: every word is a valid one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
transformers = pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from safetensors.torch import save_file  # noqa: E402
from sweeps import PROGRAM  # noqa: E402
from sweeps.weight_plans import stream  # noqa: E402
from tiny_checkpoints import DTYPES, Tensors, assert_streams, llama, quantise, save_model, write  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

def spread(grid: Any, block: tuple[int, int], shape: Any) -> Any:
    """One element for each of its block."""
    return grid.repeat_interleave(block[0], 0).repeat_interleave(block[1], 1)[: shape[0], : shape[1]]


# ---- fp8 ----


def fp8_block(block: tuple[int, int], target: Any, scale_dtype: Any = torch.float32) -> Callable[[str, Any], tuple[Tensors, Any]]:
    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        rows, columns = weight.shape
        grid = torch.rand(-(-rows // block[0]), -(-columns // block[1])) + 0.01
        if scale_dtype == torch.float8_e8m0fnu:
            grid = torch.exp2(torch.randint(-12, 3, grid.shape).float())
        values = (torch.randn(rows, columns) * 60).to(torch.float8_e4m3fn)
        dense = values.float() * spread(grid, block, weight.shape)
        return {f"{name}.weight": values, f"{name}.weight_scale_inv": grid.to(scale_dtype)}, dense.to(target)

    return make


@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_of_fp8_may_be_cut_short(dtype: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder, dtype), fp8_block((32, 32), DTYPES[dtype]))
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [32, 32], "activation_scheme": "dynamic"})
    plan = assert_streams(folder, expected)
    short = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[dtype]
    assert plan["notes"] == [
        f"14 weights are stored as f8e4m3fn in blocks of 32x32 (fp8): read as {short} while streaming"
    ]


def test_fp8_is_what_transformers_makes_of_it(tmp_path: Path) -> None:
    from transformers.integrations.finegrained_fp8 import Fp8Dequantize

    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder), fp8_block((16, 16), torch.bfloat16))
    for name in expected:
        if name.endswith("_proj.weight"):
            own = Fp8Dequantize(None)._dequantize_one(stored[name], stored[f"{name}_scale_inv"], torch.bfloat16)
            expected[name] = own
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [16, 16]})
    assert_streams(folder, expected)


def test_every_value_of_fp8_and_of_its_exponents_is_torch_s(tmp_path: Path) -> None:
    """All 256 of each: rows of one value, columns of one scale."""
    folder = tmp_path / "m"
    tensors = llama(folder, "float32", hidden_size=256, intermediate_size=256, num_hidden_layers=1)
    every = torch.arange(256, dtype=torch.uint8)
    finite = every[(every & 0x7F) != 0x7F]
    values = torch.cat([finite, finite[:2]]).view(torch.float8_e4m3fn)
    scales = torch.cat([every[:255], every[:1]])

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        matrix = values.view(torch.uint8)[:, None].expand(256, 256).contiguous().view(torch.float8_e4m3fn)
        grid = scales[None, :].expand(256, 256).contiguous().view(torch.float8_e8m0fnu)
        return {f"{name}.weight": matrix, f"{name}.weight_scale_inv": grid}, matrix.float() * grid.float()

    stored, expected = quantise(tensors, make)
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [1, 1]})
    plan = make_weight_plan(folder)
    found, message = stream(plan, folder, PROGRAM)
    assert not message
    name = "model.layers.0.self_attn.q_proj.weight"
    assert torch.equal(found[name].view(torch.int32), expected[name].view(torch.int32))


def test_fp8_scales_may_be_exponents_or_one_for_the_tensor(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    exponents = fp8_block((16, 16), torch.bfloat16, torch.float8_e8m0fnu)

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        if "self_attn" in name:
            stored, dense = exponents(name, weight)
            if "q_proj" in name:  # the same as plain bytes
                stored[f"{name}.weight_scale_inv"] = stored[f"{name}.weight_scale_inv"].view(torch.uint8)
            return stored, dense
        values, scale = torch.randn(weight.shape).to(torch.float8_e5m2), torch.rand(()) * 0.01
        scales = {f"{name}.weight_scale_inv": scale, f"{name}.activation_scale": torch.ones(())}
        return {f"{name}.weight": values, **scales}, (values.float() * scale).bfloat16()

    stored, expected = quantise(llama(folder), make)
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [16, 16]})
    plan = assert_streams(folder, expected)
    assert [note.partition(":")[0] for note in plan["notes"]] == [
        "8 weights are stored as f8e4m3fn in blocks of 16x16 (fp8)",
        "6 weights are stored as f8e5m2 with one scale each (fp8)",
    ]


def test_experts_are_dequantised_before_they_are_stacked(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    torch.manual_seed(0)
    config = transformers.MixtralConfig(hidden_size=16, intermediate_size=24, num_hidden_layers=1, num_attention_heads=2,
                                        num_key_value_heads=2, num_local_experts=3, vocab_size=32)  # fmt: skip
    tensors = save_model(folder, transformers.MixtralForCausalLM(config))
    make = fp8_block((16, 16), torch.bfloat16)
    stored, dense = {}, {}
    for name, tensor in tensors.items():
        if ".experts." in name:
            made, dense[name] = make(name.removesuffix(".weight"), tensor)
            stored.update(made)
        else:
            stored[name] = tensor
    assert len(dense) == 9
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [16, 16]})
    # what the float model's own loading makes of the dequantised tensors
    other = tmp_path / "float"
    transformers.MixtralForCausalLM(config).bfloat16().save_pretrained(other)
    save_file({**{name: stored[name] for name in tensors if name not in dense}, **dense}, other / "model.safetensors",
              {"format": "pt"})  # fmt: skip
    loaded = transformers.MixtralForCausalLM.from_pretrained(other, dtype="auto").state_dict()
    assert_streams(folder, loaded)


def test_fp8_without_its_scales_is_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder), fp8_block((16, 16), torch.bfloat16))
    del stored["model.layers.1.mlp.up_proj.weight_scale_inv"]
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [16, 16]})
    with pytest.raises(ExportError, match="no 'model.layers.1.mlp.up_proj.weight_scale_inv', without which"):
        make_weight_plan(folder)


@pytest.mark.parametrize(
    ("scale", "message"),
    [
        (torch.rand(2, 5), r"'model.layers.0.self_attn.q_proj.weight_scale_inv' is f32\[2, 5\]: scales of a tensor of shape \[48, 48\]"),
        (torch.rand(3, 3, 1), r"is f32\[3, 3, 1\]: scales of a tensor"),
        (torch.ones(3, 3, dtype=torch.int64), r"is i64\[3, 3\]: f32 or bf16 or f16"),
    ],
)  # fmt: skip
def test_fp8_scales_of_another_shape_or_dtype_are_refused(scale: Any, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder), fp8_block((16, 16), torch.bfloat16))
    stored["model.layers.0.self_attn.q_proj.weight_scale_inv"] = scale
    write(folder, stored, {"quant_method": "fp8", "weight_block_size": [16, 16]})
    with pytest.raises(ExportError, match=message):
        make_weight_plan(folder)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"quant_method": "aqlm"}, "its quant_method is 'aqlm'"),
        ({"quant_method": "fp8", "weight_block_size": [0, 16]}, r"its weight_block_size is \[0, 16\]"),
        ({"quant_method": "gptq", "bits": 3}, "its values have 3 bits"),
        ({"quant_method": "gptq", "bits": 4, "checkpoint_format": "marlin"}, "its checkpoint_format is marlin"),
        ({"quant_method": "awq", "bits": 4, "version": "gemv"}, "its version is gemv"),
        ({"quant_method": "compressed-tensors", "format": "nvfp4-pack-quantized"}, "its format is nvfp4-pack-quantized"),
    ],
)
def test_what_is_not_read_is_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    write(folder, llama(folder), settings)
    with pytest.raises(ExportError, match=message):
        make_weight_plan(folder)


# ---- mxfp4 ----


def test_mxfp4_is_what_transformers_makes_of_it(tmp_path: Path) -> None:
    from transformers.integrations.mxfp4 import convert_moe_packed_tensors

    folder = tmp_path / "m"
    torch.manual_seed(0)
    config = transformers.GptOssConfig(hidden_size=64, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2,
                                       num_key_value_heads=2, head_dim=32, num_local_experts=3, vocab_size=32)  # fmt: skip
    tensors = save_model(folder, transformers.GptOssForCausalLM(config))
    stored, expected = {}, {}
    for name, tensor in tensors.items():
        if not name.endswith(("gate_up_proj", "down_proj")):
            stored[name] = expected[name] = tensor
            continue
        experts, columns, rows = tensor.shape
        blocks = torch.randint(0, 256, (experts, rows, columns // 32, 16), dtype=torch.uint8)
        scales = torch.randint(100, 140, (experts, rows, columns // 32), dtype=torch.uint8)
        stored[f"{name}_blocks"], stored[f"{name}_scales"] = blocks, scales
        expected[name] = convert_moe_packed_tensors(blocks, scales)
    assert len(stored) == len(expected) + 4
    write(folder, stored, {"quant_method": "mxfp4", "modules_to_not_convert": ["lm_head"]})
    plan = assert_streams(folder, expected)
    assert plan["notes"] == ["4 weights are stored as f4e2m1 in blocks of 32 (mxfp4): read as bf16 while streaming"]
    stored["model.layers.0.mlp.experts.down_proj_scales"] = torch.zeros(3, 64, 2, dtype=torch.uint8)
    write(folder, stored, {"quant_method": "mxfp4"})
    with pytest.raises(ExportError, match=r"down_proj_scales' is u8\[3, 64, 2\]: 3x64x1 scales are expected"):
        make_weight_plan(folder)


# ---- gptq and awq ----


def words(*shape: int) -> Any:
    return torch.randint(-(2**31), 2**31 - 1, shape, dtype=torch.int64).to(torch.int32)


def unpack_words(packed: Any, bits: int) -> Any:
    """A further dim with the values of each word, low bits first."""
    shifts = torch.arange(0, 32, bits, dtype=torch.int32)
    return (packed[..., None] >> shifts) & (2**bits - 1)


def gptq(bits: int, group: int, *, version: int, g_idx: bool) -> Callable[[str, Any], tuple[Tensors, Any]]:
    """A linear layer as AutoGPTQ stores it, and its matrix as that computes it, in float16."""

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        rows, columns = weight.shape
        size = columns if group == -1 else group
        groups = -(-columns // size)
        packed, zeros = words(columns * bits // 32, rows), words(groups, rows * bits // 32)
        scales = (torch.rand(groups, rows) * 0.1).half()
        order = torch.arange(columns, dtype=torch.int32) // size
        if g_idx:
            order = order[torch.randperm(columns)]
        values = unpack_words(packed, bits).permute(0, 2, 1).reshape(columns, rows)
        points = unpack_words(zeros, bits).reshape(groups, rows)
        if version == 1:
            points = (points + 1) & (2**bits - 1)
        dense = scales[order] * (values - points[order]).half()
        stored = {"qweight": packed, "qzeros": zeros, "scales": scales, "g_idx": order}
        return {f"{name}.{key}": tensor for key, tensor in stored.items()}, dense.t().contiguous()

    return make


@pytest.mark.parametrize("bits", [2, 4, 8])
@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize(("group", "desc_act"), [(16, False), (16, True), (-1, False), (32, True), (32, False)])
def test_gptq_is_what_its_definition_gives(bits: int, version: int, group: int, desc_act: bool, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder, "float16"), gptq(bits, group, version=version, g_idx=desc_act))
    settings = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": desc_act, "sym": False}
    write(folder, stored, {**settings, **({"checkpoint_format": "gptq_v2"} if version == 2 else {})})
    assert_streams(folder, expected)


def test_gptq_in_other_dtypes_is_rounded_once(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder, "float16"), gptq(4, 16, version=2, g_idx=False))
    write(folder, stored, {"quant_method": "gptq", "bits": 4, "group_size": 16, "checkpoint_format": "gptq_v2"})
    name = "model.layers.0.mlp.up_proj"
    values = unpack_words(stored[f"{name}.qweight"], 4).permute(0, 2, 1).reshape(48, 80)
    points = unpack_words(stored[f"{name}.qzeros"], 4).reshape(3, 80).repeat_interleave(16, 0)
    exact = ((values - points).double() * stored[f"{name}.scales"].double().repeat_interleave(16, 0)).t()
    for dtype in ("bfloat16", "float32"):
        found, message = stream(make_weight_plan(folder, dtype=dtype), folder, PROGRAM)
        assert not message
        assert torch.equal(found[f"{name}.weight"], exact.to(DTYPES[dtype]))


@pytest.mark.parametrize(
    ("key", "tensor", "message"),
    [
        ("qzeros", torch.zeros(3, 5, dtype=torch.int32), r"qzeros' is i32\[3, 5\]: \[3, 6\] is expected, for groups of 16"),
        ("scales", torch.zeros(2, 48).half(), r"scales' is f16\[2, 48\]: \[3, 48\] is expected"),
        ("qweight", torch.zeros(6, 48), r"qweight' is f32\[6, 48\]: i32 is expected"),
        ("g_idx", torch.zeros(47, dtype=torch.int32), r"g_idx' is i32\[47\]: 48 indices are expected"),
        ("g_idx", None, r"g_idx' is expected beside it"),
        ("scales", None, r"no 'model.layers.0.self_attn.q_proj.scales'"),
    ],
)
def test_gptq_that_does_not_fit_is_refused_by_name(key: str, tensor: Any, message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder, "float16"), gptq(4, 16, version=1, g_idx=True))
    del stored[f"model.layers.0.self_attn.q_proj.{key}"]
    if tensor is not None:
        stored[f"model.layers.0.self_attn.q_proj.{key}"] = tensor
    write(folder, stored, {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": True})
    with pytest.raises(ExportError, match=message):
        make_weight_plan(folder)


def test_an_index_out_of_range_is_refused_when_it_is_read(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, _ = quantise(llama(folder, "float16"), gptq(4, 16, version=1, g_idx=True))
    stored["model.layers.0.self_attn.q_proj.g_idx"][5] = 3
    write(folder, stored, {"quant_method": "gptq", "bits": 4, "group_size": 16, "desc_act": True})
    _, message = stream(make_weight_plan(folder), folder, PROGRAM)
    assert message.startswith("error[corrupt-file]: index 3 of ")


def awq(group: int) -> Callable[[str, Any], tuple[Tensors, Any]]:
    """A linear layer as AutoAWQ stores it (gemm), and its matrix as that computes it."""

    def in_order(packed: Any) -> Any:
        return unpack_words(packed, 4)[..., [0, 4, 1, 5, 2, 6, 3, 7]].flatten(1)

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        rows, columns = weight.shape
        packed, zeros = words(columns, rows // 8), words(columns // group, rows // 8)
        scales = (torch.rand(columns // group, rows) * 0.1).half()
        points = in_order(zeros).repeat_interleave(group, 0)
        dense = (in_order(packed) - points).half() * scales.repeat_interleave(group, 0)
        stored = {"qweight": packed, "qzeros": zeros, "scales": scales}
        return {f"{name}.{key}": tensor for key, tensor in stored.items()}, dense.t().contiguous()

    return make


def test_awq_is_what_its_definition_gives(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder, "float16"), awq(16))
    write(folder, stored, {"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm", "zero_point": True})
    plan = assert_streams(folder, expected)
    assert plan["notes"] == ["14 weights are stored as u4 in groups of 16 (awq): read as f16 while streaming"]


def test_layers_that_lie_the_other_way_round_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    config = transformers.GPT2Config(n_embd=32, n_layer=1, n_head=2, vocab_size=32, n_positions=16)
    write(folder, save_model(folder, transformers.GPT2LMHeadModel(config), "float16"), {"quant_method": "gptq", "bits": 4})
    with pytest.raises(ExportError, match="Conv1D"):
        make_weight_plan(folder)


# ---- compressed-tensors ----


def scheme(**weights: Any) -> dict[str, Any]:
    return {"config_groups": {"group_0": {"targets": ["Linear"], "weights": weights}}, "ignore": ["lm_head"],
            "quant_method": "compressed-tensors"}  # fmt: skip


def pack(values: Any, bits: int, dim: int) -> Any:
    """compressed-tensors' pack_to_int32: half of the range is added, then words are filled from their low bits."""
    values = (values + (1 << (bits - 1))).to(torch.int64)
    values = values.movedim(dim, -1).unflatten(-1, (-1, 32 // bits))
    shifted = (values << torch.arange(0, 32, bits)).sum(-1)
    return torch.where(shifted >= 2**31, shifted - 2**32, shifted).to(torch.int32).movedim(-1, dim)


def packed_ints(bits: int, group: int, *, zeros: bool, g_idx: bool = False) -> Callable[[str, Any], tuple[Tensors, Any]]:
    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        rows, columns = weight.shape
        low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
        values = torch.randint(low, high + 1, (rows, columns))
        scales = (torch.rand(rows, columns // group) * 0.1).bfloat16()
        points = torch.randint(low, high + 1, (rows, columns // group)) if zeros else torch.zeros(rows, columns // group).long()
        order = torch.arange(columns) // group
        if g_idx:
            order = order[torch.randperm(columns)]
        dense = (values - points[:, order]).float() * scales.float()[:, order]
        stored = {"weight_packed": pack(values, bits, 1), "weight_scale": scales, "weight_shape": torch.tensor([rows, columns])}
        if zeros:
            stored["weight_zero_point"] = pack(points, bits, 0)
        if g_idx:
            stored["weight_g_idx"] = order.to(torch.int32)
        return {f"{name}.{key}": tensor for key, tensor in stored.items()}, dense.bfloat16()

    return make


@pytest.mark.parametrize("bits", [4, 8])
@pytest.mark.parametrize(("zeros", "g_idx"), [(False, False), (True, False), (True, True), (False, True)])
def test_packed_integers_of_compressed_tensors(bits: int, zeros: bool, g_idx: bool, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored, expected = quantise(llama(folder), packed_ints(bits, 16, zeros=zeros, g_idx=g_idx))
    settings = scheme(num_bits=bits, type="int", symmetric=not zeros, strategy="group", group_size=16)
    write(folder, stored, {**settings, "format": "pack-quantized"})
    plan = assert_streams(folder, expected)
    assert plan["notes"][0].startswith(f"14 weights are stored as i{bits} in blocks of 16 (compressed-tensors)")


@pytest.mark.parametrize("strategy", ["tensor", "channel", "block"])
@pytest.mark.parametrize("dtype", [torch.float8_e4m3fn, torch.int8])
def test_values_of_a_byte_of_compressed_tensors(strategy: str, dtype: Any, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    block = {"tensor": None, "channel": None, "block": (32, 32)}[strategy]

    def make(name: str, weight: Any) -> tuple[Tensors, Any]:
        values = (torch.randn(weight.shape) * 30).to(dtype)
        rows, columns = weight.shape
        shape = {"tensor": (1,), "channel": (rows, 1), "block": (-(-rows // 32), -(-columns // 32))}[strategy]
        scales = (torch.rand(shape) * 0.01).bfloat16()
        factors = scales.float() if block is None else spread(scales.float(), block, weight.shape)
        stored = {f"{name}.weight": values, f"{name}.weight_scale": scales, f"{name}.input_scale": torch.ones(1)}
        points = 0.0
        if dtype == torch.int8 and strategy == "channel":
            points = torch.randint(-128, 128, (rows, 1), dtype=torch.int8)
            stored[f"{name}.weight_zero_point"] = points
            points = points.float()
        return stored, ((values.float() - points) * factors).bfloat16()

    stored, expected = quantise(llama(folder), make)
    is_float = dtype == torch.float8_e4m3fn
    settings = scheme(num_bits=8, type="float" if is_float else "int", strategy=strategy, block_structure=block)
    write(folder, stored, {**settings, "format": "float-quantized" if is_float else "int-quantized"})
    assert_streams(folder, expected)


# ---- configurations ----


def test_captures_are_those_of_the_float_model(tmp_path: Path) -> None:
    from argosy.capture.configuration import canonical, load_config, read_configuration

    llama(tmp_path / "float")
    tensors = llama(tmp_path / "quantised")
    write(tmp_path / "quantised", tensors, {"quant_method": "fp8"})
    plain, quantised = (canonical(read_configuration(tmp_path / name)) for name in ("float", "quantised"))
    assert plain == quantised
    assert not hasattr(load_config(tmp_path / "quantised"), "quantization_config")
