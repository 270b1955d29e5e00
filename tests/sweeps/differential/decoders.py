"""Draws of decoders: a function for each family, which returns the fields of its configuration."""

from __future__ import annotations

import random
from typing import Any

from .fields import (
    WINDOWS,
    chance,
    decoder,
    experts,
    heads,
    layer_types,
    rope,
    rotary_size,
    tokens,
)

Fields = dict[str, Any]
Rng = random.Random


def llama(rng: Rng) -> Fields:
    return decoder(rng) | {"attention_bias": chance(rng, 0.5), "mlp_bias": chance(rng, 0.5)}


def mistral(rng: Rng) -> Fields:
    return decoder(rng) | {"sliding_window": rng.choice((None, *WINDOWS))}


def qwen2(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    return fields | _qwen_windows(rng, fields)


def qwen3(rng: Rng) -> Fields:
    fields = decoder(rng)
    return fields | _qwen_windows(rng, fields) | {"attention_bias": chance(rng, 0.5)}


def _qwen_windows(rng: Rng, fields: Fields) -> Fields:
    if chance(rng, 0.4):
        return {}
    made: Fields = {"use_sliding_window": True, "sliding_window": rng.choice(WINDOWS)}
    if chance(rng, 0.5):
        return made | {"max_window_layers": rng.randrange(fields["num_hidden_layers"] + 1)}
    return made | {"layer_types": layer_types(rng, fields["num_hidden_layers"])}


def gemma(rng: Rng) -> Fields:
    return decoder(rng) | {"hidden_activation": rng.choice(("gelu_pytorch_tanh", "gelu")), "attention_bias": chance(rng, 0.3)}


def gemma2(rng: Rng) -> Fields:
    fields = decoder(rng)
    fields.pop("hidden_act")
    return fields | {
        "layer_types": layer_types(rng, fields["num_hidden_layers"]),
        "sliding_window": rng.choice(WINDOWS),
        "final_logit_softcapping": rng.choice((None, 0.5, 30.0)),
        "attn_logit_softcapping": rng.choice((None, 0.3, 50.0)),
        "query_pre_attn_scalar": rng.choice((8, 16, 24, 256)),
        "hidden_activation": "gelu_pytorch_tanh",
        "attention_bias": chance(rng, 0.3),
    }


def gemma3_text(rng: Rng) -> Fields:
    fields = gemma2(rng)
    rope_parameters = fields.pop("rope_parameters")
    return fields | {"rope_parameters": {"full_attention": rope_parameters,
                                         "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0}}}  # fmt: skip


def phi3(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    partial = rng.choice((1.0, 1.0, 0.5))
    fields |= rope(rng, int(rotary_size(fields) * partial), ("default", "longrope"))
    fields["rope_parameters"]["partial_rotary_factor"] = partial
    limit = fields["rope_parameters"].get("original_max_position_embeddings", fields["max_position_embeddings"])
    return fields | {"sliding_window": rng.choice((None, *WINDOWS)), "original_max_position_embeddings": limit}


def phi(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    fields["rope_parameters"]["partial_rotary_factor"] = rng.choice((0.5, 0.25) if rotary_size(fields) != 12 else (0.5,))
    return fields | {"qk_layernorm": chance(rng, 0.4), "hidden_act": rng.choice(("gelu_new", "gelu")), "layer_norm_eps": 1e-5}


def gpt2(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    return tokens(rng) | {
        "n_embd": sizes["hidden_size"], "n_head": sizes["num_attention_heads"], "n_layer": rng.choice((2, 3)),
        "n_positions": rng.choice((64, 96)), "n_inner": rng.choice((None, 56)), "activation_function": rng.choice(("gelu_new", "relu", "silu")),
        "scale_attn_weights": chance(rng, 0.8), "scale_attn_by_inverse_layer_idx": chance(rng, 0.3),
        "reorder_and_upcast_attn": chance(rng, 0.2), "tie_word_embeddings": chance(rng, 0.7), "layer_norm_epsilon": rng.choice((1e-5, 1e-3)),
    }  # fmt: skip


def gpt_neo(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    return tokens(rng) | {
        "hidden_size": sizes["hidden_size"], "num_heads": sizes["num_attention_heads"], "num_layers": 2,
        "attention_types": [[rng.choice((["global", "local"], ["local", "global"], ["local", "local"])), 1]],
        "window_size": rng.choice(WINDOWS), "max_position_embeddings": 64, "intermediate_size": rng.choice((None, 56)),
        "tie_word_embeddings": chance(rng, 0.7),
    }  # fmt: skip


def gptj(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    return tokens(rng) | {
        "n_embd": sizes["hidden_size"], "n_head": sizes["num_attention_heads"], "n_layer": 2, "n_positions": rng.choice((64, 128)),
        "rotary_dim": rng.choice((4, 8)), "n_inner": rng.choice((None, 56)), "activation_function": rng.choice(("gelu_new", "gelu")),
        "tie_word_embeddings": chance(rng, 0.3),
    }  # fmt: skip


def gpt_neox(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False, equal_heads=True)
    fields["rope_parameters"]["partial_rotary_factor"] = rng.choice((0.25, 0.5, 1.0) if rotary_size(fields) != 12 else (0.5, 1.0))
    return fields | {"use_parallel_residual": chance(rng, 0.5), "attention_bias": chance(rng, 0.6),
                     "hidden_act": rng.choice(("gelu", "gelu_new", "gelu_fast")), "layer_norm_eps": 1e-5}  # fmt: skip


def gpt_bigcode(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    return tokens(rng) | {
        "n_embd": sizes["hidden_size"], "n_head": sizes["num_attention_heads"], "n_layer": 2, "n_positions": 64,
        "multi_query": chance(rng, 0.6), "activation_function": rng.choice(("gelu_pytorch_tanh", "gelu")),
        "attention_softmax_in_fp32": chance(rng, 0.5), "scale_attention_softmax_in_fp32": chance(rng, 0.5),
        "tie_word_embeddings": chance(rng, 0.7),
    }  # fmt: skip


def falcon(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False, ropes=("default", "linear", "dynamic"))
    groups = fields.pop("num_key_value_heads")
    new = chance(rng, 0.4)
    return fields | {
        "new_decoder_architecture": new, "num_kv_heads": groups if new else None, "multi_query": chance(rng, 0.5),
        "parallel_attn": new or chance(rng, 0.6), "bias": chance(rng, 0.5), "alibi": chance(rng, 0.3),
        "num_ln_in_parallel_attn": rng.choice((None, 1, 2)) if new else None, "activation": "gelu", "ffn_hidden_size": 64,
        "layer_norm_epsilon": 1e-5,
    }  # fmt: skip


def bloom(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    return tokens(rng) | {
        "hidden_size": sizes["hidden_size"], "n_head": sizes["num_attention_heads"], "n_layer": rng.choice((2, 3)),
        "apply_residual_connection_post_layernorm": chance(rng, 0.4), "layer_norm_epsilon": 1e-5,
        "tie_word_embeddings": chance(rng, 0.8),
    }  # fmt: skip


def opt(rng: Rng) -> Fields:
    sizes = heads(rng, own_size=False, equal=True)
    width = sizes["hidden_size"]
    before = chance(rng, 0.7)
    made = tokens(rng)
    made["pad_token_id"] = rng.choice((1, 0))
    return made | {
        "hidden_size": width, "num_attention_heads": sizes["num_attention_heads"], "num_hidden_layers": 2, "ffn_dim": 56,
        "do_layer_norm_before": before, "word_embed_proj_dim": width if before else rng.choice((width, 24)),
        "max_position_embeddings": rng.choice((64, 100)), "enable_bias": chance(rng, 0.7), "activation_function": rng.choice(("relu", "gelu")),
        "layer_norm_elementwise_affine": chance(rng, 0.8), "tie_word_embeddings": chance(rng, 0.7),
    }  # fmt: skip


def starcoder2(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | {"sliding_window": rng.choice((None, *WINDOWS)), "use_bias": chance(rng, 0.6),
                                                "hidden_act": "gelu_pytorch_tanh", "norm_epsilon": 1e-5}  # fmt: skip


def olmo(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | {"clip_qkv": rng.choice((None, 0.5, 8.0)), "attention_bias": chance(rng, 0.5)}


def olmo2(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | {"attention_bias": chance(rng, 0.5)}


def olmo3(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    return fields | {"layer_types": layer_types(rng, fields["num_hidden_layers"]), "sliding_window": rng.choice(WINDOWS)}


def cohere(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | {"use_qk_norm": chance(rng, 0.5), "attention_bias": chance(rng, 0.5),
                                                "logit_scale": rng.choice((0.0625, 0.25, 1.0)), "layer_norm_eps": 1e-5}  # fmt: skip


def cohere2(rng: Rng) -> Fields:
    fields = decoder(rng)
    return fields | {"layer_types": layer_types(rng, fields["num_hidden_layers"]), "sliding_window": rng.choice(WINDOWS),
                     "attention_bias": chance(rng, 0.5), "logit_scale": rng.choice((0.0625, 0.25, 1.0))}  # fmt: skip


def glm(rng: Rng) -> Fields:
    fields = decoder(rng)
    fields["rope_parameters"]["partial_rotary_factor"] = rng.choice((0.5, 1.0))
    return fields | {"attention_bias": chance(rng, 0.5)}


def granite(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | {
        "attention_bias": chance(rng, 0.5), "mlp_bias": chance(rng, 0.3), "embedding_multiplier": rng.choice((1.0, 12.0)),
        "logits_scaling": rng.choice((1.0, 8.0)), "residual_multiplier": rng.choice((1.0, 0.22)),
        "attention_multiplier": rng.choice((1.0, 0.25, 0.0625)),
    }  # fmt: skip


def mixtral(rng: Rng) -> Fields:
    return decoder(rng) | experts(rng, "num_local_experts") | {"sliding_window": rng.choice((None, *WINDOWS))}


def qwen2_moe(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    return fields | experts(rng) | _qwen_windows(rng, fields) | _expert_layers(rng) | {
        "shared_expert_intermediate_size": rng.choice((24, 40)), "qkv_bias": chance(rng, 0.7)}  # fmt: skip


def qwen3_moe(rng: Rng) -> Fields:
    fields = decoder(rng)
    return fields | experts(rng) | _expert_layers(rng) | {"attention_bias": chance(rng, 0.5)}


def _expert_layers(rng: Rng) -> Fields:
    return {"moe_intermediate_size": rng.choice((16, 24)), "norm_topk_prob": chance(rng, 0.5),
            "decoder_sparse_step": rng.choice((1, 1, 2)), "mlp_only_layers": rng.choice(([], [], [0]))}  # fmt: skip


def olmoe(rng: Rng) -> Fields:
    return decoder(rng, own_head_size=False) | experts(rng) | {"norm_topk_prob": chance(rng, 0.5), "clip_qkv": rng.choice((None, 0.7))}


def granitemoe(rng: Rng) -> Fields:
    return granite(rng) | experts(rng, "num_local_experts")


def gpt_oss(rng: Rng) -> Fields:
    fields = decoder(rng)
    return fields | experts(rng, "num_local_experts") | {
        "layer_types": layer_types(rng, fields["num_hidden_layers"]), "sliding_window": rng.choice(WINDOWS),
        "attention_bias": chance(rng, 0.7), "hidden_act": "silu"}  # fmt: skip


def deepseek_v2(rng: Rng) -> Fields:
    fields = _latent(rng)
    return fields | {"topk_method": rng.choice(("greedy", "group_limited_greedy")), "n_group": 2, "topk_group": rng.choice((1, 2))}


def deepseek_v3(rng: Rng) -> Fields:
    return _latent(rng) | {"n_group": 2, "topk_group": rng.choice((1, 2)), "norm_topk_prob": chance(rng, 0.7),
                           "rope_interleave": chance(rng, 0.6)}  # fmt: skip


def _latent(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False, equal_heads=True)
    rotated = rng.choice((4, 8))
    fields |= rope(rng, rotated, ("default", "yarn", "linear"))
    return fields | {
        "num_key_value_heads": fields["num_attention_heads"], "q_lora_rank": rng.choice((None, 12)), "kv_lora_rank": rng.choice((8, 16)),
        "qk_rope_head_dim": rotated, "head_dim": rotated, "qk_nope_head_dim": rng.choice((8, 6)), "v_head_dim": rng.choice((8, 12)),
        "n_routed_experts": 4, "num_experts_per_tok": 2, "n_shared_experts": rng.choice((1, 2)), "moe_intermediate_size": 16,
        "first_k_dense_replace": rng.choice((0, 1, 1)), "routed_scaling_factor": rng.choice((1.0, 2.5)),
        "attention_bias": chance(rng, 0.4),
    }  # fmt: skip


def stablelm(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    fields["rope_parameters"]["partial_rotary_factor"] = rng.choice((0.25, 0.5, 1.0) if rotary_size(fields) != 12 else (0.5, 1.0))
    return fields | {"use_qkv_bias": chance(rng, 0.5), "qk_layernorm": chance(rng, 0.5), "use_parallel_residual": chance(rng, 0.5),
                     "layer_norm_eps": 1e-5}  # fmt: skip


def exaone4(rng: Rng) -> Fields:
    fields = decoder(rng)
    window = rng.choice((None, *WINDOWS))
    types = layer_types(rng, fields["num_hidden_layers"]) if window else ["full_attention"] * fields["num_hidden_layers"]
    return fields | {"sliding_window": window, "layer_types": types}


def smollm3(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    count = fields["num_hidden_layers"]
    made = fields | {"no_rope_layers": [rng.choice((0, 1)) for _ in range(count)], "attention_bias": chance(rng, 0.4),
                     "mlp_bias": chance(rng, 0.3)}  # fmt: skip
    if chance(rng, 0.5):
        made |= {"use_sliding_window": True, "sliding_window": rng.choice(WINDOWS), "layer_types": layer_types(rng, count)}
    return made


def helium(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    return fields | {"head_dim": rotary_size(fields), "attention_bias": chance(rng, 0.4), "mlp_bias": chance(rng, 0.3)}


def nemotron(rng: Rng) -> Fields:
    fields = decoder(rng)
    fields["rope_parameters"]["partial_rotary_factor"] = rng.choice((0.5, 1.0))
    return fields | {"hidden_act": "relu2", "attention_bias": chance(rng, 0.4), "mlp_bias": chance(rng, 0.3), "norm_eps": 1e-5}


def ministral(rng: Rng) -> Fields:
    fields = decoder(rng)
    return fields | {"sliding_window": rng.choice(WINDOWS), "layer_types": layer_types(rng, fields["num_hidden_layers"])}


def mamba(rng: Rng) -> Fields:
    return tokens(rng) | {
        "hidden_size": rng.choice((24, 32)), "state_size": rng.choice((4, 8)), "num_hidden_layers": 2, "expand": rng.choice((1, 2)),
        "conv_kernel": rng.choice((3, 4)), "use_bias": chance(rng, 0.5), "use_conv_bias": chance(rng, 0.7),
        "time_step_rank": rng.choice(("auto", 3)), "residual_in_fp32": chance(rng, 0.5), "tie_word_embeddings": chance(rng, 0.7),
    }  # fmt: skip


def mamba2(rng: Rng) -> Fields:
    return tokens(rng) | {
        "hidden_size": 32, "expand": 2, "num_heads": 4, "head_dim": 16, "state_size": rng.choice((4, 8)), "n_groups": rng.choice((1, 2)),
        "num_hidden_layers": 2, "chunk_size": rng.choice((4, 8, 16)), "conv_kernel": 4, "use_bias": chance(rng, 0.5),
        "tie_word_embeddings": chance(rng, 0.5), "rms_norm": True,
    }  # fmt: skip


def jamba(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    for name in ("rope_parameters", "max_position_embeddings"):
        fields.pop(name)
    return fields | experts(rng) | {
        "num_hidden_layers": 4, "attn_layer_period": 2, "attn_layer_offset": rng.choice((0, 1)), "expert_layer_period": 2,
        "expert_layer_offset": rng.choice((0, 1)), "mamba_d_state": 4, "mamba_d_conv": rng.choice((3, 4)), "mamba_expand": 2,
        "mamba_dt_rank": 3, "mamba_conv_bias": chance(rng, 0.7), "mamba_proj_bias": chance(rng, 0.4), "use_mamba_kernels": False,
    }  # fmt: skip


def bamba(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    fields |= {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": rng.choice((1, 2, 4))}
    fields |= rope(rng, 8, ("default", "linear"))
    fields["rope_parameters"]["partial_rotary_factor"] = 0.5
    return fields | {
        "num_hidden_layers": 3, "attn_layer_indices": rng.choice(([1], [0, 2])), "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_n_groups": 1,
        "mamba_d_state": 8, "mamba_expand": 2, "mamba_chunk_size": rng.choice((4, 8, 16)), "mamba_conv_bias": chance(rng, 0.7),
        "attention_bias": chance(rng, 0.4), "mlp_bias": chance(rng, 0.3), "z_loss_coefficient": 0.0,
    }  # fmt: skip


def lfm2(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False)
    count = fields["num_hidden_layers"]
    kinds = [rng.choice(("conv", "full_attention")) for _ in range(count - 2)] + ["conv", "full_attention"]
    rng.shuffle(kinds)
    return fields | {"layer_types": kinds, "conv_bias": chance(rng, 0.5), "conv_L_cache": rng.choice((3, 4)),
                     "block_auto_adjust_ff_dim": chance(rng, 0.5), "block_multiple_of": 8, "block_ff_dim": fields["intermediate_size"]}  # fmt: skip


def falcon_h1(rng: Rng) -> Fields:
    fields = decoder(rng, own_head_size=False, ropes=("default", "linear"))
    fields |= {"hidden_size": 32, "num_attention_heads": 4, "num_key_value_heads": rng.choice((1, 2)), "head_dim": 8}
    return fields | {
        "mamba_n_heads": 4, "mamba_d_head": 8, "mamba_d_ssm": 32, "mamba_n_groups": 1, "mamba_d_state": 8, "mamba_expand": 1,
        "mamba_chunk_size": rng.choice((4, 8)), "mamba_rms_norm": chance(rng, 0.5), "mamba_norm_before_gate": chance(rng, 0.5),
        "key_multiplier": rng.choice((1.0, 0.5)), "lm_head_multiplier": rng.choice((1.0, 0.5)), "attention_bias": chance(rng, 0.4),
    }  # fmt: skip


#: By family: what draws it. Of a class of their own: see ``draw.HEADS``.
DECODERS = {
    function.__name__: function
    for function in (llama, mistral, qwen2, qwen3, gemma, gemma2, gemma3_text, phi3, phi, gpt2, gpt_neo, gptj, gpt_neox, gpt_bigcode,
                     falcon, bloom, opt, starcoder2, olmo, olmo2, olmo3, cohere, cohere2, granite, mixtral, qwen2_moe, qwen3_moe,
                     olmoe, granitemoe, gpt_oss, deepseek_v2, deepseek_v3, stablelm, exaone4, smollm3, helium, nemotron, ministral,
                     mamba, mamba2, jamba, bamba, lfm2, falcon_h1)
} | {"glm": glm, "glm4": glm}  # fmt: skip
