"""GGUF files: what C++ streams of them is what the definition of each type of blocks gives, written out here, bit for bit; names and the order
of rows are transformers'.

Blocks are random bytes with finite scales: every block is a valid one.
"""

from __future__ import annotations

import struct
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
transformers = pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from safetensors.torch import load_file  # noqa: E402
from sweeps import PROGRAM  # noqa: E402
from sweeps.weight_plans import stream  # noqa: E402
from tiny_checkpoints import DTYPES, Tensors, llama, save_model  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan  # noqa: E402
from argosy.capture.weight_plan_headers import headers_hash, read_checkpoint_headers  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

PLAIN = {torch.float32: 0, torch.float16: 1, torch.bfloat16: 30}


# ---- the file ----


def text(value: str) -> bytes:
    return struct.pack("<Q", len(value.encode())) + value.encode()


def write_gguf(path: Path, architecture: str, tensors: dict[str, tuple[int, list[int], bytes]]) -> None:
    """Of tensors by name: type, shape as PyTorch has it, bytes."""
    metadata = [
        text("general.architecture") + struct.pack("<I", 8) + text(architecture),
        text("tokenizer.ggml.tokens") + struct.pack("<IIQ", 9, 8, 3) + text("a") + text("") + text("ü"),
        text("x.scale") + struct.pack("<If", 6, 1.5),
    ]
    header = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata)) + b"".join(metadata)
    data = b""
    for name, (kind, shape, content) in tensors.items():
        header += text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape))
        header += struct.pack("<IQ", kind, len(data))
        data += content + bytes(-len(content) % 32)
    path.write_bytes(header + bytes(-len(header) % 32) + data)


def raw(tensor: Any) -> tuple[int, list[int], bytes]:
    return PLAIN[tensor.dtype], list(tensor.shape), tensor.contiguous().view(torch.uint8).numpy().tobytes()


# ---- llama.cpp's names and order of rows ----

PARTS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm",
         "self_attn.k_norm": "attn_k_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up", "mlp.down_proj": "ffn_down"}  # fmt: skip


def short_name(name: str) -> str:
    stem, _, end = name.rpartition(".")
    if stem.startswith("model.layers."):
        _, _, layer, part = stem.split(".", 3)
        return f"blk.{layer}.{PARTS[part]}.{end}"
    return f"{ {'model.embed_tokens': 'token_embd', 'model.norm': 'output_norm', 'lm_head': 'output'}[stem] }.{end}".replace(" ", "")


def reordered(weight: Any, heads: int) -> Any:
    """``permute`` of llama.cpp's convert_hf_to_gguf."""
    return weight.reshape(heads, 2, weight.shape[0] // heads // 2, *weight.shape[1:]).swapaxes(1, 2).reshape(weight.shape)


def as_llama_cpp(tensors: Tensors, config: Any) -> Tensors:
    made = {}
    for name, tensor in tensors.items():
        if config.model_type in ("llama", "mistral") and ".q_proj." in name:
            tensor = reordered(tensor, config.num_attention_heads)
        elif config.model_type in ("llama", "mistral") and ".k_proj." in name:
            tensor = reordered(tensor, config.num_key_value_heads)
        made[short_name(name)] = tensor
    return made


def tiny(model_type: str, **changes: Any) -> Any:
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
             "head_dim": 16, "vocab_size": 64, **changes}  # fmt: skip
    return transformers.AutoModelForCausalLM.from_config(transformers.AutoConfig.for_model(model_type, **sizes))


def streamed(folder: Path, **options: Any) -> Tensors:
    plan = make_weight_plan(folder, **options)
    assert plan["missing"] == [] and plan["unexpected"] == []
    found, message = stream(plan, folder, PROGRAM)
    assert not message
    return found


@pytest.mark.parametrize(
    ("model_type", "architecture", "changes"),
    [
        ("llama", "llama", {}),
        ("llama", "llama", {"tie_word_embeddings": True, "attention_bias": True}),
        ("mistral", "llama", {}),
        ("qwen2", "qwen2", {}),
        ("qwen3", "qwen3", {}),
    ],
)
def test_names_and_rows_are_transformers_again(model_type: str, architecture: str, changes: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / "m"
    model = tiny(model_type, **changes)
    tensors = save_model(folder, model)
    (folder / "model.safetensors").unlink()
    stored = {name: raw(tensor) for name, tensor in as_llama_cpp(tensors, model.config).items()}
    if architecture == "llama":
        stored["rope_freqs.weight"] = raw(torch.ones(8))
    write_gguf(folder / "model.gguf", architecture, stored)
    found = streamed(folder)
    assert found.keys() - {"lm_head.weight"} == tensors.keys() - {"lm_head.weight"}  # a tied one is in no file
    for name, tensor in tensors.items():
        assert torch.equal(found[name], tensor), name


# ---- blocks ----


def halves(count: int) -> Any:
    """Scales as bytes, and as numbers."""
    scales = (torch.randn(count) * 0.1).half()
    return scales.view(torch.uint8).view(count, 2), scales.float()[:, None]


def bits(packed: Any, *shifts: int, mask: int) -> Any:
    """Parts of each byte: (blocks, parts, bytes)."""
    return torch.stack([(packed >> shift) & mask for shift in shifts], 1)


def noise(blocks: int, count: int) -> Any:
    return torch.randint(0, 256, (blocks, count), dtype=torch.uint8)


def q4_0(n: int) -> tuple[Any, Any]:
    (d, scale), packed = halves(n), noise(n, 16)
    return torch.cat([d, packed], 1), (bits(packed, 0, 4, mask=15).flatten(1).float() - 8) * scale


def q4_1(n: int) -> tuple[Any, Any]:
    (d, scale), (m, least), packed = halves(n), halves(n), noise(n, 16)
    return torch.cat([d, m, packed], 1), bits(packed, 0, 4, mask=15).flatten(1).float() * scale + least


def fifth(high: Any) -> Any:
    """32 bits of four bytes."""
    return torch.stack([(high[:, i // 8] >> (i % 8)) & 1 for i in range(32)], 1) << 4


def q5_0(n: int) -> tuple[Any, Any]:
    (d, scale), high, packed = halves(n), noise(n, 4), noise(n, 16)
    values = bits(packed, 0, 4, mask=15).flatten(1) | fifth(high)
    return torch.cat([d, high, packed], 1), (values.float() - 16) * scale


def q5_1(n: int) -> tuple[Any, Any]:
    (d, scale), (m, least), high, packed = halves(n), halves(n), noise(n, 4), noise(n, 16)
    values = bits(packed, 0, 4, mask=15).flatten(1) | fifth(high)
    return torch.cat([d, m, high, packed], 1), values.float() * scale + least


def q8_0(n: int) -> tuple[Any, Any]:
    (d, scale), values = halves(n), noise(n, 32)
    return torch.cat([d, values], 1), values.view(torch.int8).float() * scale


def six_bits(packed: Any) -> tuple[Any, Any]:
    """The scales and least values of eight parts, in 12 bytes."""
    first, second, both = packed[:, :4], packed[:, 4:8], packed[:, 8:]
    scales = torch.cat([first & 63, (both & 15) | ((first >> 2) & 48)], 1)
    return scales.float(), torch.cat([second & 63, (both >> 4) | ((second >> 2) & 48)], 1).float()


def k_parts(n: int, *, five: bool) -> tuple[Any, Any]:
    (d, scale), (m, least), parts, high, packed = halves(n), halves(n), noise(n, 12), noise(n, 32), noise(n, 128)
    scales, leasts = six_bits(parts)
    values = bits(packed.view(n * 4, 32), 0, 4, mask=15).view(n, 8, 32)
    if five:
        values = values | (bits(high, *range(8), mask=1) << 4)
    dense = (scale * scales)[..., None] * values.float() - (least * leasts)[..., None]
    return torch.cat([d, m, parts, *([high] if five else []), packed], 1), dense.flatten(1)


def q6_k(n: int) -> tuple[Any, Any]:
    (d, scale), low, high, scales = halves(n), noise(n, 128), noise(n, 64), noise(n, 16)
    fours = bits(low.view(n * 2, 64), 0, 4, mask=15).view(n, 8, 32)
    twos = bits(high.view(n * 2, 32), 0, 2, 4, 6, mask=3).view(n, 8, 32)
    values = (fours | (twos << 4)).float().view(n, 16, 16) - 32
    dense = (scale * scales.view(torch.int8).float())[..., None] * values
    return torch.cat([low, high, scales, d], 1), dense.flatten(1)


BLOCKS: dict[str, tuple[int, Callable[[int], tuple[Any, Any]]]] = {
    "Q4_0": (2, q4_0),
    "Q4_1": (3, q4_1),
    "Q5_0": (6, q5_0),
    "Q5_1": (7, q5_1),
    "Q8_0": (8, q8_0),
    "Q4_K": (12, lambda n: k_parts(n, five=False)),
    "Q5_K": (13, lambda n: k_parts(n, five=True)),
    "Q6_K": (14, q6_k),
}
WIDE = {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 1, "num_attention_heads": 4, "num_key_value_heads": 2}


def quantised(kind: str, weight: Any) -> tuple[tuple[int, list[int], bytes], Any]:
    number, make = BLOCKS[kind]
    size = 256 if kind.endswith("_K") else 32
    blocks, values = make(weight.numel() // size)
    return (number, list(weight.shape), blocks.numpy().tobytes()), values.view(weight.shape)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", BLOCKS)
def test_blocks_are_what_their_definition_gives(kind: str, dtype: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tensors = llama(folder, dtype, **WIDE)
    (folder / "model.safetensors").unlink()
    stored, expected = {}, {}
    for name, tensor in tensors.items():
        if not name.endswith("_proj.weight"):
            stored[short_name(name)], expected[name] = raw(tensor), tensor
            continue
        stored[short_name(name)], values = quantised(kind, tensor)
        heads = {"q_proj": 4, "k_proj": 2}.get(name.split(".")[-2])
        if heads:  # llama.cpp's order undone
            values = values.view(heads, values.shape[0] // heads // 2, 2, -1).swapaxes(1, 2).reshape(values.shape)
        expected[name] = values.to(DTYPES[dtype])
    write_gguf(folder / "model.gguf", "llama", stored)
    found = streamed(folder)
    for name, tensor in expected.items():
        assert torch.isfinite(tensor).all() and torch.equal(found[name], tensor), name
    short = {"bfloat16": "bf16", "float16": "f16", "float32": "f32"}[dtype]
    assert make_weight_plan(folder)["notes"] == [f"7 weights are stored as {kind} (gguf): read as {short} while streaming"]


# ---- exports, and what is refused ----


def test_a_plan_is_for_blocks_of_one_kind(tmp_path: Path) -> None:
    weight = torch.zeros(4, 64)
    hashes = set()
    for kind in ("Q4_0", "Q8_0"):
        (tmp_path / kind).mkdir()
        write_gguf(tmp_path / kind / "m.gguf", "llama", {"output.weight": quantised(kind, weight)[0]})
        hashes.add(headers_hash(read_checkpoint_headers(tmp_path / kind)))
    assert len(hashes) == 2


def test_an_export_has_the_bytes_of_one_from_safetensors(tmp_path: Path) -> None:
    for name in ("a", "b"):
        llama(tmp_path / name / "model", "float16")
    folder = tmp_path / "b/model"
    tensors = load_file(folder / "model.safetensors")
    (folder / "model.safetensors").unlink()
    config = transformers.AutoConfig.from_pretrained(folder)
    write_gguf(folder / "model.gguf", "llama", {name: raw(tensor) for name, tensor in as_llama_cpp(tensors, config).items()})
    for name in ("a", "b"):
        command = [PROGRAM, "export", "onnx", "--model", "model", "--check", "off", "-o", "out"]
        subprocess.run(command, check=True, cwd=tmp_path / name, capture_output=True)
    files = {path.relative_to(tmp_path / "a") for path in (tmp_path / "a/out").rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "b") for path in (tmp_path / "b/out").rglob("*") if path.is_file()}
    different = [path for path in files if (tmp_path / "a" / path).read_bytes() != (tmp_path / "b" / path).read_bytes()]
    assert not different


@pytest.mark.parametrize(
    ("architecture", "change", "message"),
    [
        ("gemma", {}, "is of the architecture 'gemma', the configuration of the model type 'llama'"),
        ("qwen2", {}, "is of the architecture 'qwen2', the configuration of the model type 'llama'"),
        ("llama", {"blk.0.ffn_gate_exps.weight": (0, [1], bytes(4))}, "nothing is known of its tensor 'blk.0.ffn_gate_exps.weight'"),
        ("llama", {"output.scale": (0, [1], bytes(4))}, "nothing is known of its tensor 'output.scale'"),
        ("llama", {"output.weight": (10, [64, 256], bytes(64 * 84))}, "'output.weight' has the type number 10, which is not read"),
        ("llama", {"blk.0.attn_q.weight": (0, [47, 48], bytes(47 * 48 * 4))}, "'blk.0.attn_q.weight' has 47 rows, for 2 heads"),
    ],
)
def test_what_is_not_known_is_refused_by_name(architecture: str, change: dict[str, Any], message: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tensors = llama(folder)
    (folder / "model.safetensors").unlink()
    config = transformers.AutoConfig.from_pretrained(folder)
    stored = {name: raw(tensor) for name, tensor in as_llama_cpp(tensors, config).items()}
    write_gguf(folder / "model.gguf", architecture, {**stored, **change})
    with pytest.raises(ExportError, match=message):
        make_weight_plan(folder)


@pytest.mark.parametrize("length", [0, 3, 8, 23, 60, 100, 300, 900])
def test_files_that_are_cut_off_are_refused(length: int, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tensors = llama(folder)
    (folder / "model.safetensors").unlink()
    config = transformers.AutoConfig.from_pretrained(folder)
    write_gguf(folder / "model.gguf", "llama", {name: raw(tensor) for name, tensor in as_llama_cpp(tensors, config).items()})
    whole = (folder / "model.gguf").read_bytes()
    (folder / "model.gguf").write_bytes(whole[:length])
    with pytest.raises(ExportError, match="is not a usable GGUF file"):
        make_weight_plan(folder)
    done = subprocess.run([PROGRAM, "inspect", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "is not a usable GGUF file" in done.stderr
