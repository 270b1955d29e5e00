"""Decoder-only language models: dense, mixture of experts, state-space and hybrids."""

from __future__ import annotations

import torch
from transformers import AutoConfig, AutoModelForCausalLM, DynamicCache

from .case import BATCH, BATCH_SEQ, DYNAMIC, VOCAB, Inputs, ModelCase, Sample, make_distinct, padding_mask, tokens
from .pytrees import register_caches

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GPT2_SIZES = {"vocab_size": VOCAB, "n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}


def causal_lm(model_type: str, settings: dict) -> torch.nn.Module:
    config = AutoConfig.for_model(model_type, **settings)
    return make_distinct(AutoModelForCausalLM.from_config(config))


def text_inputs(batch: int, length: int) -> Inputs:
    return Inputs(
        kwargs={
            "input_ids": tokens(batch, length),
            "attention_mask": padding_mask(batch, length),
            "use_cache": False,
        }
    )


TEXT_SHAPES = {"input_ids": BATCH_SEQ, "attention_mask": BATCH_SEQ, "use_cache": None}


def decoder(model_type: str, kind: str = "decoder", name: str = "", sizes: dict = SIZES, **settings) -> ModelCase:
    def build() -> Sample:
        module = causal_lm(model_type, {**sizes, **settings})
        return Sample(module, text_inputs(2, 7), TEXT_SHAPES, text_inputs(3, 11))

    return ModelCase(name or model_type, kind, build)


def fixed_length_decoder(model_type: str, kind: str, settings: dict) -> ModelCase:
    """For models that loop over positions in Python: the length is part of the graph."""

    def build() -> Sample:
        module = causal_lm(model_type, settings)
        shapes = {"input_ids": BATCH, "attention_mask": BATCH, "use_cache": None}
        return Sample(module, text_inputs(2, 5), shapes, text_inputs(3, 5))

    return ModelCase(model_type, kind, build)


def filled_cache(module: torch.nn.Module, batch: int, past: int) -> DynamicCache:
    cache = DynamicCache(config=module.config)
    with torch.no_grad():
        module(input_ids=tokens(batch, past), past_key_values=cache, use_cache=True)
    return cache


def decoder_with_past(model_type: str, name: str, **settings) -> ModelCase:
    """One decoding step: the cache comes in as two tensors per layer, grows, and goes out."""

    def build() -> Sample:
        register_caches()
        module = causal_lm(model_type, {**SIZES, **settings})

        def step(batch: int, past: int, new: int) -> Inputs:
            kwargs = {
                "input_ids": tokens(batch, new),
                "attention_mask": padding_mask(batch, past + new),
                "past_key_values": filled_cache(module, batch, past),
                "use_cache": True,
            }
            return Inputs(kwargs=kwargs)

        shapes = {
            "input_ids": BATCH_SEQ,
            "attention_mask": BATCH_SEQ,
            "past_key_values": [{0: DYNAMIC, 2: DYNAMIC}] * (2 * module.config.num_hidden_layers),
            "use_cache": None,
        }
        return Sample(module, step(2, 5, 3), shapes, step(3, 9, 2))

    return ModelCase(name, "decoder", build)


DENSE = [
    decoder("llama"),
    decoder("mistral", sliding_window=4),
    decoder("ministral", sliding_window=4, head_dim=8),
    decoder("qwen2"),
    decoder("qwen3", head_dim=8),
    decoder("gemma", head_dim=8),
    decoder("gemma2", head_dim=8, sliding_window=4, query_pre_attn_scalar=8),
    decoder("gemma3_text", head_dim=8, sliding_window=4, query_pre_attn_scalar=8),
    decoder("phi", partial_rotary_factor=0.5),
    decoder("phi3", sliding_window=4),
    decoder("gpt2", sizes=GPT2_SIZES),
    decoder(
        "gpt_neo",
        sizes={
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_layers": 2,
            "num_heads": 4,
            "intermediate_size": 48,
            "max_position_embeddings": 64,
            "attention_types": [[["global", "local"], 1]],
            "window_size": 4,
        },
    ),
    decoder("gpt_neox", rotary_pct=0.5),
    decoder("gptj", sizes={**GPT2_SIZES, "rotary_dim": 4}),
    decoder("opt", ffn_dim=48, word_embed_proj_dim=32),
    decoder("bloom", sizes={"vocab_size": VOCAB, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    decoder("mpt", sizes={"vocab_size": VOCAB, "d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    decoder("falcon", num_kv_heads=2, new_decoder_architecture=True),
    decoder("olmo2"),
    decoder(
        "granite", embedding_multiplier=2.0, logits_scaling=3.0, residual_multiplier=0.5, attention_multiplier=0.25
    ),
    decoder("cohere2", sliding_window=4, head_dim=8),
    decoder("stablelm", partial_rotary_factor=0.5, use_parallel_residual=True),
    decoder("starcoder2", sliding_window=4),
    decoder("glm4", head_dim=8),
    decoder("nemotron"),
]
EXPERTS = [
    decoder(
        "mixtral", "mixture-of-experts", num_local_experts=4, num_experts_per_tok=2, experts_implementation="batched_mm"
    ),
    decoder(
        "qwen2_moe",
        "mixture-of-experts",
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        shared_expert_intermediate_size=24,
        decoder_sparse_step=1,
        experts_implementation="batched_mm",
    ),
    decoder(
        "qwen3_moe",
        "mixture-of-experts",
        head_dim=8,
        num_experts=4,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        experts_implementation="grouped_mm",
    ),
    decoder(
        "deepseek_v3",
        "mixture-of-experts",
        num_key_value_heads=4,
        n_routed_experts=4,
        n_group=2,
        topk_group=1,
        num_experts_per_tok=2,
        moe_intermediate_size=16,
        n_shared_experts=1,
        first_k_dense_replace=1,
        q_lora_rank=16,
        kv_lora_rank=16,
        qk_rope_head_dim=4,
        qk_nope_head_dim=8,
        v_head_dim=8,
        experts_implementation="batched_mm",
    ),
    decoder(
        "gpt_oss",
        "mixture-of-experts",
        head_dim=8,
        num_local_experts=4,
        num_experts_per_tok=2,
        sliding_window=4,
        experts_implementation="batched_mm",
    ),
]
RECURRENT = [
    fixed_length_decoder(
        "mamba",
        "state-space",
        {"vocab_size": VOCAB, "hidden_size": 32, "num_hidden_layers": 2, "state_size": 4, "pad_token_id": 0},
    ),
    decoder(
        "mamba2",
        "state-space",
        sizes={
            "vocab_size": VOCAB,
            "hidden_size": 32,
            "num_hidden_layers": 2,
            "state_size": 8,
            "num_heads": 8,
            "head_dim": 8,
            "n_groups": 1,
            "chunk_size": 4,
            "pad_token_id": 0,
            "bos_token_id": 1,
            "eos_token_id": 2,
        },
    ),
    decoder("lfm2", "hybrid", layer_types=["conv", "full_attention"]),
    decoder(
        "falcon_h1",
        "hybrid",
        head_dim=8,
        mamba_d_ssm=32,
        mamba_n_heads=4,
        mamba_d_head=8,
        mamba_d_state=8,
        mamba_chunk_size=4,
    ),
]
CACHED = [
    decoder_with_past(
        "llama",
        "llama_with_past",
        rope_parameters={
            "rope_type": "yarn",
            "factor": 2.0,
            "rope_theta": 10000.0,
            "original_max_position_embeddings": 32,
        },
    ),
    decoder_with_past("qwen3", "qwen3_with_past", head_dim=8),
]


def olmo_traced_with_grad() -> ModelCase:
    case = decoder("olmo")
    return ModelCase("olmo_with_grad", case.kind, case.build, with_grad=True)


def bfloat16_decoder() -> ModelCase:
    def build() -> Sample:
        module = causal_lm("smollm3", SIZES).to(torch.bfloat16)
        return Sample(module, text_inputs(2, 7), TEXT_SHAPES, text_inputs(3, 11))

    return ModelCase("smollm3_bfloat16", "decoder", build)


CASES = [*DENSE, *EXPERTS, *RECURRENT, *CACHED, olmo_traced_with_grad(), bfloat16_decoder()]
