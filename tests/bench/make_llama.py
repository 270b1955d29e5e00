"""Writes a random checkpoint of the Llama architecture, as the Hub has them: config.json and safetensors shards of up to 5 GB.

    python tests/bench/make_llama.py 17m|134m|135m|1.1b|7b FOLDER [--seed 0]

Weights are small numbers from a fixed seed; a block of them is repeated, which makes them as fast as the disk. 7b is bfloat16
(13.5 GB), the others are float32 (0.07, 0.5 and 4.4 GB).
"""

from __future__ import annotations

import argparse
import json
import struct
import sys
from pathlib import Path

import numpy as np

SHARD_BYTES = 5_000_000_000
BLOCK = 16 << 20  # numbers that repeat
SIZES = {
    "17m": {"hidden_size": 256, "intermediate_size": 512, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 32000, "tie_word_embeddings": False, "dtype": "float32"},
    "134m": {"hidden_size": 768, "intermediate_size": 2048, "num_hidden_layers": 12, "num_attention_heads": 12,
             "num_key_value_heads": 12, "vocab_size": 32000, "tie_word_embeddings": False, "dtype": "float32",
             "max_position_embeddings": 512},
    "135m": {"hidden_size": 576, "intermediate_size": 1536, "num_hidden_layers": 30, "num_attention_heads": 9,
             "num_key_value_heads": 3, "vocab_size": 49152, "tie_word_embeddings": True, "dtype": "float32"},
    "1.1b": {"hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
             "num_key_value_heads": 4, "vocab_size": 32000, "tie_word_embeddings": False, "dtype": "float32"},
    "7b": {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32,
           "num_key_value_heads": 32, "vocab_size": 32000, "tie_word_embeddings": False, "dtype": "bfloat16"},
}  # fmt: skip


def configuration(size: str) -> dict:
    common = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_act": "silu",
        "max_position_embeddings": 4096,
        "rms_norm_eps": 1e-5,
        "rope_theta": 10000.0,
        "bos_token_id": 1,
        "eos_token_id": 2,
    }
    return {**common, **SIZES[size]}


def tensors(config: dict) -> list[tuple[str, list[int]]]:
    """Names and shapes, in the order of the model."""
    hidden, inner, vocabulary = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    keys = hidden // config["num_attention_heads"] * config["num_key_value_heads"]
    found = [("model.embed_tokens.weight", [vocabulary, hidden])]
    for layer in range(config["num_hidden_layers"]):
        parts = {
            "input_layernorm": [hidden],
            "mlp.down_proj": [hidden, inner],
            "mlp.gate_proj": [inner, hidden],
            "mlp.up_proj": [inner, hidden],
            "post_attention_layernorm": [hidden],
            "self_attn.k_proj": [keys, hidden],
            "self_attn.o_proj": [hidden, hidden],
            "self_attn.q_proj": [hidden, hidden],
            "self_attn.v_proj": [keys, hidden],
        }
        found += [(f"model.layers.{layer}.{name}.weight", shape) for name, shape in parts.items()]
    found.append(("model.norm.weight", [hidden]))
    if not config["tie_word_embeddings"]:
        found.append(("lm_head.weight", [vocabulary, hidden]))
    return found


def shards(entries: list[tuple[str, list[int]]], item_bytes: int) -> list[list[tuple[str, list[int], int]]]:
    found: list[list[tuple[str, list[int], int]]] = [[]]
    used = 0
    for name, shape in entries:
        size = int(np.prod(shape)) * item_bytes
        if found[-1] and used + size > SHARD_BYTES:
            found.append([])
            used = 0
        found[-1].append((name, shape, size))
        used += size
    return found


def random_block(dtype: str, seed: int) -> memoryview:
    values = np.random.default_rng(seed).standard_normal(BLOCK, dtype=np.float32) * np.float32(0.02)
    if dtype == "bfloat16":
        values = (values.view(np.uint32) >> 16).astype(np.uint16)  # cut off, not rounded: random all the same
    return memoryview(values).cast("B")


def write_shard(path: Path, entries: list[tuple[str, list[int], int]], dtype: str, block: memoryview) -> None:
    header, end = {"__metadata__": {"format": "pt"}}, 0
    for name, shape, size in entries:
        code = {"float32": "F32", "bfloat16": "BF16"}[dtype]
        header[name] = {"dtype": code, "shape": shape, "data_offsets": [end, end + size]}
        end += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb", buffering=0) as file:
        file.write(struct.pack("<Q", len(text)) + text)
        start = 0
        for _, _, size in entries:
            while size > 0:
                size -= (count := file.write(block[start : start + min(size, 64 << 20)]))
                start = (start + count) % len(block)
            start = start // 8 * 8


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    config = configuration(options.size)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "config.json").write_text(json.dumps(config, indent=2) + "\n")
    item_bytes = 4 if config["dtype"] == "float32" else 2
    parts = shards(tensors(config), item_bytes)
    block = random_block(config["dtype"], options.seed)
    index = {}
    for number, part in enumerate(parts, 1):
        name = "model.safetensors" if len(parts) == 1 else f"model-{number:05}-of-{len(parts):05}.safetensors"
        write_shard(options.folder / name, part, config["dtype"], block)
        index.update({tensor: name for tensor, _, _ in part})
    if len(parts) > 1:
        total = sum(size for part in parts for _, _, size in part)
        document = {"metadata": {"total_size": total}, "weight_map": index}
        (options.folder / "model.safetensors.index.json").write_text(json.dumps(document, indent=2) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
