"""Bundles use the attention, norms and rotary embeddings that their engine has: found in any graph, by what it computes."""

from __future__ import annotations

import json
import os
import subprocess
from collections import Counter
from pathlib import Path

import onnx
import pytest
import torch
import transformers
from thorough import always

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))
TOKENIZER = ROOT / "tests/fixtures/trained-decoder"

SIZES = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "vocab_size": 2048, "max_position_embeddings": 128, "bos_token_id": 0, "eos_token_id": 0, "pad_token_id": 0,
}  # fmt: skip
#: Settings besides these, and how many norms the graph has. The engine's builder does not know Helium. Phi-3 has one
#: projection for queries, keys and values; Qwen3 has norms between projections and rotary embeddings.
MODELS = {
    "llama": ({}, 5),
    "gemma2": ({"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 16}, 9),
    "gemma3_text": ({"sliding_window": 8, "layer_types": ["sliding_attention", "full_attention"], "query_pre_attn_scalar": 16}, 13),
    "helium": ({}, 5),
    "phi3": ({"original_max_position_embeddings": 128}, 5),
    "qwen3": ({}, 9),
}  # fmt: skip


def argosy(*arguments: object) -> str:
    done = subprocess.run([ARGOSY, *map(str, arguments)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return done.stderr


def save_model(model_type: str, folder: Path, settings: dict) -> None:
    config = transformers.CONFIG_MAPPING[model_type](**{**SIZES, **settings})
    torch.manual_seed(0)
    transformers.AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())


def ops_of(file: Path) -> Counter[str]:
    return Counter(node.op_type for node in onnx.load(file, load_external_data=False).graph.node)


def shares_buffers(bundle: Path) -> bool:
    return json.loads((bundle / "genai_config.json").read_text())["search"]["past_present_share_buffer"]


@pytest.mark.parametrize("model_type", always(("llama", "gemma3_text"), MODELS))
def test_an_engine_gets_its_own_ops(model_type: str, tmp_path: Path) -> None:
    """The check runs the bundle in the engine: prompts whole and in pieces, greedy tokens, padded batches."""
    save_model(model_type, tmp_path / "model", MODELS[model_type][0])
    # What is written in float16 is run so, too.
    dtypes = ["fp32", "fp16"] if model_type == "helium" else ["fp32"]
    said = argosy(
        "export", "onnx", "--model", tmp_path / "model", "--for", "genai", "--dtype", dtypes[-1], tmp_path / "bundle"
    )
    assert "agrees with PyTorch" in said and f"{4 * len(dtypes)} runs of greedy tokens in the engine" in said, said
    ops = ops_of(tmp_path / "bundle/model.onnx")
    norms = ops["SimplifiedLayerNormalization"] + ops["SkipSimplifiedLayerNormalization"]
    assert (ops["GroupQueryAttention"], norms) == (2, MODELS[model_type][1])
    # All norms but the first of a Llama are of a sum of what comes in and what a layer adds.
    if model_type in ("llama", "phi3"):
        assert ops["SkipSimplifiedLayerNormalization"] == 4 and not ops["Add"]
    # Attention does the rotary embedding itself. Queries, keys and values are one product, split where norms are in between.
    assert not ops["RotaryEmbedding"]
    assert ops["FusedMatMul"] + ops["Gemm"] == 1 + 2 * (4 if model_type == "phi3" else 5)
    if model_type != "phi3":
        assert ops["Split"] == (2 if model_type in ("gemma3_text", "qwen3") else 0)
    assert not ops["Softmax"] and not ops["ReduceMean"] and not ops["Neg"]
    assert shares_buffers(tmp_path / "bundle")


def test_a_scan_over_keys_and_values_is_one_op(tmp_path: Path) -> None:
    """The gated delta rule: one op for all tokens of a prompt, where a scan takes a step for each."""
    sizes = {"linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4}
    types = {"layer_types": ["linear_attention", "full_attention"], "mlp_only_layers": [0, 1], "num_experts": 0}
    save_model("qwen3_next", tmp_path / "model", {**sizes, **types})
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said, said
    ops = ops_of(tmp_path / "bundle/model.onnx")
    assert (ops["LinearAttention"], ops["Scan"], ops["GroupQueryAttention"]) == (1, 0, 1)


def test_a_state_space_is_a_scan(tmp_path: Path) -> None:
    """Its state is the other way round than the engine's op has it."""
    sizes = {"num_heads": 4, "head_dim": 32, "state_size": 16, "n_groups": 2, "max_position_embeddings": None}
    save_model("mamba2", tmp_path / "model", sizes)
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said, said
    ops = ops_of(tmp_path / "bundle/model.onnx")
    assert (ops["LinearAttention"], ops["Scan"]) == (0, 2)


def test_sinks_and_halves_are_part_of_attention(tmp_path: Path) -> None:
    """GPT-OSS writes out its attention, with one more score for each head, and turns heads by halves."""
    sizes = {"sliding_window": 8, "num_local_experts": 4, "num_experts_per_tok": 2}
    save_model("gpt_oss", tmp_path / "model", sizes)
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said, said
    nodes = onnx.load(tmp_path / "bundle/model.onnx", load_external_data=False).graph.node
    attention = [node for node in nodes if node.op_type == "GroupQueryAttention"]
    assert [node.input[-1].rpartition(".")[2] for node in attention] == ["sinks", "sinks"]
    assert all({"do_rotary"} <= {each.name for each in node.attribute} for node in attention)
    assert Counter(node.op_type for node in nodes)["MoE"] == 2


def test_experts_are_one_op(tmp_path: Path) -> None:
    """Weights that do not add up to 1, gates and factors as halves; with linked weights no new ones can be made."""
    sizes = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 48, "norm_topk_prob": False}
    save_model("qwen3_moe", tmp_path / "model", sizes)
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said, said
    ops = ops_of(tmp_path / "bundle/model.onnx")
    assert (ops["MoE"], ops["Loop"]) == (2, 0)
    linked = ("--weights", "link", "--check", "off", tmp_path / "linked")
    argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", *linked)
    ops = ops_of(tmp_path / "linked/model.onnx")
    assert (ops["MoE"], ops["Loop"]) == (0, 4)


def test_ops_of_onnx_alone_if_asked_for(tmp_path: Path) -> None:
    save_model("llama", tmp_path / "model", {})
    capture = ("--model", tmp_path / "model", "--check", "off")
    argosy("export", "onnx", *capture, "--for", "genai", "--optimize", "safe", tmp_path / "bundle")
    model = onnx.load(tmp_path / "bundle/model.onnx", load_external_data=False)
    assert {node.domain for node in model.graph.node} == {""}
    assert not shares_buffers(tmp_path / "bundle")
    # Newer opsets have norms and rotary embeddings of their own.
    argosy("export", "onnx", "--model", tmp_path / "model", "--opset", 23, tmp_path / "model.onnx")
    ops = ops_of(tmp_path / "model.onnx")
    assert (ops["RMSNormalization"], ops["RotaryEmbedding"]) == (5, 4)
