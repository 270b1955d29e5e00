"""Configurations that sweeps make models of: the defaults of each model type, completed where these are no model.

What every checkpoint says and a default leaves out is written here, as a published checkpoint has it or its class's documentation.
A model that users have brings these values with it, so that no code of the package knows them.
"""

from __future__ import annotations

from typing import Any

_SERIES = {"prediction_length": 24, "num_time_features": 2}
_EXPERTS = {"n_routed_experts": 128, "n_shared_experts": 2, "num_experts_per_tok": 6}
_INDEXER = {"indexer_n_heads": 4, "indexer_kv_heads": 1, "indexer_head_dim": 256, "indexer_budget": 2048, "indexer_compress_ratio": 8}
_HEARS_AND_SEES = {"vision_config": {}, "audio_config": {}}
_OMNI = {"vision_start_token_id": 151652, "audio_start_token_id": 151647}
_THREE_AXES = {
    "layer_types": ["sliding_attention"] * 3 + ["full_attention"], "num_hidden_layers": 4,
    "rope_parameters": {f"{kind}_attention": {"rope_type": "default", "rope_theta": 50000.0, "mrope_section": [24, 20, 20]} for kind in ("sliding", "full")},
}  # fmt: skip
_FOUR_AXES = {"rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "mrope_section": [16, 16, 16, 16]}}


def _every(period: int, count: int, special: str, usual: str) -> list[str]:
    return [special if (i + 1) % period == 0 else usual for i in range(count)]


def _strips() -> dict[str, Any]:
    """Convolutions of PP-OCR's detectors: kernel, stride and padding; along columns, along rows and of squares."""
    lengths = {"long": 7, "mid": 5, "short": 3}
    point = [1, 1, 0]
    found: dict[str, Any] = {"reduce_channel": point, "return_channel": point}
    for name, side in lengths.items():
        found[f"vertical_long_to_small_conv_{name}ratio"] = [[side, 1], [1, 1], [side // 2, 0]]
        found[f"horizontal_small_to_long_conv_{name}ratio"] = [[1, side], [1, 1], [0, side // 2]]
        found[f"symmetric_conv_long_{name}ratio"] = [[side, side], [1, 1], [side // 2, side // 2]]
    return found


#: By model type, what its default configuration lacks.
MISSING: dict[str, dict[str, Any]] = {
    "autoformer": _SERIES,
    "bamba": {"attn_layer_indices": [9, 18, 27]},
    "blip-2": {"image_token_index": 50265},
    "cohere_compass": {"text_config": _THREE_AXES},
    "cohere_compass_text": _THREE_AXES,
    "dbrx": {"attn_config": {"kv_n_heads": 8, "rope_theta": 500000.0, "clip_qkv": 8}},
    "deepseek_ocr2": {"text_config": {"mlp_layer_types": ["dense"] + ["sparse"] * 11, "num_hidden_layers": 12, "num_experts_per_tok": 6}},
    "deepseek_v2": {"num_experts_per_tok": 6},
    "diffusion_gemma": {"text_config": {"num_experts": 128, "top_k_experts": 8, "moe_intermediate_size": 704}},
    "dots1": _EXPERTS,
    "embedding_gemma2": _HEARS_AND_SEES,
    "esm": {"vocab_size": 33, "pad_token_id": 1, "mask_token_id": 32, "position_embedding_type": "rotary", "token_dropout": True},
    "gemma4": _HEARS_AND_SEES,
    "gemma4_assistant": {"text_config": {"hidden_size_per_layer_input": 0, "num_kv_shared_layers": 0, "vocab_size_per_layer_input": 0}},
    "gemma4_unified": _HEARS_AND_SEES,
    "granitemoehybrid": {"layer_types": _every(10, 40, "full_attention", "linear_attention"), "num_hidden_layers": 40},
    "granite4_vision": {"downsample_rate": "1/2", "deepstack_layer_map": [[-2, 0], [-5, 4]]},
    "hunyuan_vl": {"text_config": _FOUR_AXES},
    "hunyuan_vl_text": _FOUR_AXES,
    "informer": _SERIES,
    "instructblip": {"image_token_index": 32000},
    "instructblipvideo": {"video_token_index": 32000},
    "lfm2_moe": {"layer_types": _every(3, 32, "full_attention", "conv"), "num_hidden_layers": 32},
    "llama4": {"vision_config": {"hidden_size": 1408}},
    "lw_detr": {"projector_scale_factors": [1.0]},
    "minicpm_ocr": {"image_token_id": 151656},
    "minicpmv4_6": {"image_token_id": 151656},
    "minicpmv4_7": {"image_token_id": 151656},
    "moonshine_streaming": {"num_key_value_heads": 8},
    "nemotron_h_omni": {"image_token_id": 18},
    "pp_doclayout_v2": {"class_thresholds": [0.5] * 25, "class_order": list(range(25)), "num_labels": 25},
    "pp_ocrv5_server_det": {"intraclass_block_config": _strips(), "scale_factor_list": [1, 2, 4, 8], "kernel_list": [3, 2, 2]},
    "qwen2_5_omni_thinker": _OMNI,
    "qwen3_omni_moe_thinker": _OMNI,
    "qwen4_exp": {"text_config": _INDEXER},
    "qwen4_exp_text": _INDEXER,
    "sapiens2": {"head_config": {"upsample_out_channels": [768, 768], "conv_out_channels": [512, 512]}},
    "step3p7": {"text_config": {"sliding_window": 512, "layer_types": _every(4, 45, "full_attention", "sliding_attention")}},
    "t5gemma2_encoder": {"text_config": {"dropout_rate": 0.0}},
    "time_series_transformer": _SERIES,
    "uvdoc": {"backbone_config": {"model_type": "uvdoc_backbone", "out_features": [f"stage{i + 1}" for i in range(6)]}},
    "voxtral": {"audio_token_id": 24},
    "wav2vec2-bert": {"vocab_size": 32},
    "wav2vec2-conformer": {"vocab_size": 32},
    "xmod": {"default_language": "en_XX"},
}


def configuration(model_type: str, **changes: Any) -> Any:
    """The default configuration of a type that transformers knows, with what it lacks and with `changes`."""
    from transformers import CONFIG_MAPPING

    return CONFIG_MAPPING[model_type](**{**MISSING.get(model_type, {}), **changes})
