"""Twins for engines that prepare pictures and sounds themselves: they look for tokens by their names and have sizes of their
own, which other twins lack."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .configurations import configuration

#: Sizes of the text decoder.
_TEXT = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
         "num_key_value_heads": 2, "vocab_size": 256, "max_position_embeddings": 1024}  # fmt: skip
_VISION = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4}
_MROPE = {"rope_type": "default", "mrope_section": [2, 3, 3], "rope_theta": 10000.0}
_QWEN = {"text_config": _TEXT | {"rope_parameters": _MROPE, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
         "image_token_id": 250, "video_token_id": 251, "vision_start_token_id": 252, "vision_end_token_id": 253}  # fmt: skip
_QWEN_VISION = {
    "depth": 2,
    "num_heads": 4,
    "hidden_size": 64,
    "patch_size": 4,
    "spatial_merge_size": 2,
    "temporal_patch_size": 2,
}
_QWEN_TOKENS = {"<image>": "<|image_pad|>", "<video>": "<|video_pad|>", "<vision_start>": "<|vision_start|>",
                "<vision_end>": "<|vision_end|>"}  # fmt: skip

#: Configurations that are small already, by model type. Others are shrunk as all twins are.
CONFIGURATIONS: dict[str, dict[str, Any]] = {
    "whisper": {
        "vocab_size": 256, "num_mel_bins": 80, "d_model": 64, "max_source_positions": 1500, "max_target_positions": 128,
        "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 96, "decoder_ffn_dim": 96, "pad_token_id": 250, "bos_token_id": 250, "eos_token_id": 250,
        "decoder_start_token_id": 251, "suppress_tokens": None, "begin_suppress_tokens": None,
    },
    "gemma3": {
        "text_config": _TEXT | {"head_dim": 16, "num_hidden_layers": 3, "sliding_window": 64, "query_pre_attn_scalar": 16,
                                "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
                                "bos_token_id": 2, "eos_token_id": 1, "pad_token_id": 0, "tie_word_embeddings": False},
        "vision_config": _VISION | {"image_size": 64, "patch_size": 4, "model_type": "siglip_vision_model"},
        "mm_tokens_per_image": 256, "boi_token_index": 250, "eoi_token_index": 251, "image_token_index": 252,
        "eos_token_id": 1, "tie_word_embeddings": False,
    },
    "qwen2_vl": _QWEN | {"vision_config": _QWEN_VISION | {"embed_dim": 64, "mlp_ratio": 2}},
    "qwen2_5_vl": _QWEN | {"vision_config": _QWEN_VISION | {"intermediate_size": 96, "window_size": 16, "out_hidden_size": 64,
                                                            "fullatt_block_indexes": [1]}},
    "qwen3_vl": _QWEN | {
        "text_config": _QWEN["text_config"] | {"head_dim": 16, "num_hidden_layers": 4},
        "vision_config": _QWEN_VISION | {"depth": 4, "intermediate_size": 96, "out_hidden_size": 64, "num_position_embeddings": 64,
                                         "deepstack_visual_indexes": [0, 1, 2]},
    },
    "qwen3_5": _QWEN | {
        "text_config": _QWEN["text_config"] | {
            "head_dim": 16, "layer_types": ["linear_attention", "full_attention"], "linear_conv_kernel_dim": 4,
            "linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2, "linear_num_value_heads": 4,
            "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5,
                                "mrope_section": [2, 1, 1], "mrope_interleaved": True}},
        "vision_config": _QWEN_VISION | {"intermediate_size": 96, "out_hidden_size": 64, "num_position_embeddings": 64},
    },
}  # fmt: skip

_EXPERTS = {
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 48,
    "shared_expert_intermediate_size": 48,
}
for _dense, _sparse in (("qwen3_vl", "qwen3_vl_moe"), ("qwen3_5", "qwen3_5_moe")):
    CONFIGURATIONS[_sparse] = CONFIGURATIONS[_dense] | {"text_config": CONFIGURATIONS[_dense]["text_config"] | _EXPERTS}

#: What tokens of these types are called in their own tokenizers, and in those of twins.
_TOKENS = {
    "whisper": {"<decoder_start>": "<|startoftranscript|>"},
    "gemma3": {"<boi>": "<start_of_image>", "<eoi>": "<end_of_image>", "<image>": "<image_soft_token>"},
    "qwen2_vl": _QWEN_TOKENS,
    "qwen2_5_vl": _QWEN_TOKENS,
    "qwen3_vl": _QWEN_TOKENS,
    "qwen3_vl_moe": _QWEN_TOKENS,
    "qwen3_5_moe": _QWEN_TOKENS,
    "qwen3_5": _QWEN_TOKENS,
}
#: Of Whisper's feature extractor, whatever the model's size.
_SPECTROGRAMS = {"chunk_length": 30, "feature_extractor_type": "WhisperFeatureExtractor", "feature_size": 80, "hop_length": 160,
                 "n_fft": 400, "n_samples": 480000, "nb_max_frames": 3000, "padding_value": 0.0, "sampling_rate": 16000}  # fmt: skip


#: Of Qwen's image processors, for types that transformers lists without one.
_PATCHES = {"image_processor_type": "Qwen2VLImageProcessor", "image_mean": [0.5] * 3, "image_std": [0.5] * 3, "min_pixels": 64,
            "max_pixels": 4096, "patch_size": 4, "merge_size": 2, "temporal_patch_size": 2}  # fmt: skip


def media_twin(model_type: str, seed: int = 0) -> Any:
    """A twin of an architecture that takes pictures or sounds, in sizes that engines know."""
    from argosy.capture.twin import build, shrink

    own = CONFIGURATIONS.get(model_type)
    config = configuration(model_type, **own) if own is not None else shrink(configuration(model_type))
    return build(config, seed=seed)


def save_media_twin(model: Any, folder: Path) -> Path:
    from argosy.capture.twin import save

    save(model, folder)
    rename_tokens(folder, _TOKENS.get(model.config.model_type, {}))
    if model.config.model_type.startswith("qwen") and not (folder / "preprocessor_config.json").is_file():
        (folder / "preprocessor_config.json").write_text(json.dumps(_PATCHES, indent=2, sort_keys=True) + "\n")
    if model.config.model_type == "whisper":
        (folder / "preprocessor_config.json").write_text(json.dumps(_SPECTROGRAMS, indent=2, sort_keys=True) + "\n")
    return folder


def rename_tokens(folder: Path, names: dict[str, str]) -> None:
    """Special tokens get other names. White space is written as tokenizers of bytes write it, the only way in which engines
    know a tokenizer without merges."""
    file = folder / "tokenizer.json"
    tokenizer = json.loads(file.read_text(encoding="utf-8"))
    written = {**names, " ": "\u0120", "\n": "\u010a"}
    vocabulary = tokenizer["model"]["vocab"]
    tokenizer["model"]["vocab"] = {written.get(text, text): id_ for text, id_ in vocabulary.items()}
    for token in tokenizer["added_tokens"]:
        token["content"] = names.get(token["content"], token["content"])
    tokenizer["pre_tokenizer"] = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": True,
        "use_regex": False,
    }
    tokenizer["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    file.write_text(json.dumps(tokenizer), encoding="utf-8")
    for other in ("tokenizer_config.json", "chat_template.jinja"):
        if (folder / other).is_file():
            text = (folder / other).read_text(encoding="utf-8")
            for old, new in names.items():
                text = text.replace(old, new)
            (folder / other).write_text(text, encoding="utf-8")
