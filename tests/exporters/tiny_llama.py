"""A decoder that costs nothing."""

from __future__ import annotations

import torch
from transformers import LlamaConfig, LlamaForCausalLM

TEXT = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 50}


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**TEXT)).eval()
