"""GGUF files of the Llama family: their tensors under the names, and in the order of rows, that transformers has.

llama.cpp's names are short, and its converter of Llama and Mistral puts the rows of queries and keys in another order, for its own
rotary embedding. Blocks are decoded by C++ (``src/io/gguf_file.cpp``), so that a plan sees floats.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .weight_plan_gguf_file import GgufTensor, read_gguf
from .weight_plan_recipe import RecipeTensor, source
from .weight_plan_stored import read_note

#: ``general.architecture`` and the model types that it is read for.
_ARCHITECTURES = {"llama": ("llama", "mistral"), "qwen2": ("qwen2",), "qwen3": ("qwen3",)}
#: Whose queries and keys llama.cpp's converter reorders.
_REORDERED = ("llama",)
_NAMES = {"token_embd": "model.embed_tokens", "output_norm": "model.norm", "output": "lm_head"}
_OF_LAYER = {
    "attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm", "attn_q": "self_attn.q_proj", "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj", "attn_output": "self_attn.o_proj", "attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm",
    "ffn_gate": "mlp.gate_proj", "ffn_up": "mlp.up_proj", "ffn_down": "mlp.down_proj",
}  # fmt: skip
#: What the model computes from its configuration.
_DROPPED = ("rope_freqs.weight",)


def gguf_state(path: Path, config: Any, dtype: torch.dtype) -> tuple[dict[str, RecipeTensor], list[str]]:
    """The tensors of a GGUF file by the names of the float model's checkpoint, and what there is to say of them."""
    header = read_gguf(path)
    known = _ARCHITECTURES.get(header.architecture, ())
    if config.model_type not in known:
        raise _unsupported(
            f"{path} is of the architecture {header.architecture!r}, the configuration of the model type {config.model_type!r}",
            "llama, mistral, qwen2 and qwen3 are read; give the model's safetensors",
        )
    state: dict[str, RecipeTensor] = {}
    counts: Counter[str] = Counter()
    for tensor in header.tensors:
        if tensor.name in _DROPPED:
            continue
        name = _name_of(path, tensor.name)
        weight = source(tensor.name, tensor.dtype, tensor.shape)
        if header.architecture in _REORDERED and (match := re.search(r"\.(q|k)_proj\.(weight|bias)$", name)):
            heads = config.num_attention_heads if match[1] == "q" else config.num_key_value_heads
            weight = _in_order(path, tensor, weight, heads)
        state[name] = weight
        if tensor.is_blocks:
            counts[tensor.kind] += 1
    return state, [read_note(count, f"{kind} (gguf)", dtype) for kind, count in sorted(counts.items())]


def _name_of(path: Path, name: str) -> str:
    stem, _, end = name.rpartition(".")
    layer = re.fullmatch(r"blk\.(\d+)\.(\w+)", stem)
    known = _OF_LAYER.get(layer[2]) if layer else _NAMES.get(stem)
    if known is None or end not in ("weight", "bias"):
        raise _unsupported(f"{path}: nothing is known of its tensor {name!r}", "give the model's safetensors")
    return f"model.layers.{int(layer[1])}.{known}.{end}" if layer else f"{known}.{end}"


def _in_order(path: Path, tensor: GgufTensor, weight: RecipeTensor, heads: int) -> RecipeTensor:
    """Rows come in pairs, of which transformers has the first halves, then the second ones."""
    rows, rest = tensor.shape[0], tensor.shape[1:]
    if rows % (2 * heads):
        raise ExportError(
            f"{path}: {tensor.name!r} has {rows} rows, for {heads} heads",
            code="invalid-input",
            hint="the file and config.json may not belong together",
        )
    return weight.view([heads, rows // heads // 2, 2, *rest]).transpose(1, 2).reshape([rows, *rest])


def _unsupported(what: str, hint: str) -> ExportError:
    return ExportError(what, code="unsupported-feature", hint=hint)
