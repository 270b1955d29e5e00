"""Draws of encoder-decoders and of models that see or hear: a function for each family."""

from __future__ import annotations

import random
from typing import Any

from .fields import VOCABULARIES, chance

Fields = dict[str, Any]
Rng = random.Random


def _marian_like(rng: Rng) -> Fields:
    """Bart and its relatives; the sides may differ."""
    count, size = rng.choice((2, 4)), rng.choice(VOCABULARIES)
    padding = rng.choice((0, 1, size - 1))
    return {
        "vocab_size": size, "d_model": count * rng.choice((8, 16)), "encoder_layers": rng.choice((1, 2)), "decoder_layers": rng.choice((1, 2)),
        "encoder_attention_heads": count, "decoder_attention_heads": rng.choice((2, count)), "encoder_ffn_dim": 48, "decoder_ffn_dim": 40,
        "max_position_embeddings": 64, "activation_function": rng.choice(("gelu", "relu", "swish")), "scale_embedding": chance(rng, 0.5),
        "pad_token_id": padding, "eos_token_id": 2, "bos_token_id": 3, "decoder_start_token_id": rng.choice((2, padding)),
        "forced_eos_token_id": None, "tie_word_embeddings": chance(rng, 0.8),
    }  # fmt: skip


def bart(rng: Rng) -> Fields:
    return _marian_like(rng)


def mbart(rng: Rng) -> Fields:
    return _marian_like(rng)


def marian(rng: Rng) -> Fields:
    fields = _marian_like(rng)
    return fields | {"share_encoder_decoder_embeddings": True, "decoder_vocab_size": fields["vocab_size"]}


def pegasus(rng: Rng) -> Fields:
    return _marian_like(rng) | {"pad_token_id": 0}


def blenderbot(rng: Rng) -> Fields:
    return _marian_like(rng)


def m2m_100(rng: Rng) -> Fields:
    return _marian_like(rng) | {"pad_token_id": 1}


def t5(rng: Rng) -> Fields:
    # not more layers than the encoder: generate counts them by that
    fields = {
        "vocab_size": rng.choice(VOCABULARIES), "d_model": 32, "num_heads": rng.choice((2, 4)), "d_kv": rng.choice((8, 12)), "d_ff": 48,
        "num_layers": rng.choice((1, 2)), "num_decoder_layers": rng.choice((None, 1)), "relative_attention_num_buckets": rng.choice((8, 32)),
        "relative_attention_max_distance": rng.choice((16, 128)), "feed_forward_proj": rng.choice(("relu", "gated-gelu", "gated-silu")),
        "tie_word_embeddings": chance(rng, 0.5), "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0,
    }  # fmt: skip
    if fields["relative_attention_max_distance"] == 16:
        fields["relative_attention_num_buckets"] = 8  # half of the buckets are for single distances, some are to be left
    return fields


def mt5(rng: Rng) -> Fields:
    return t5(rng) | {"feed_forward_proj": "gated-gelu"}


def umt5(rng: Rng) -> Fields:
    return t5(rng) | {"feed_forward_proj": "gated-gelu"}


def longt5(rng: Rng) -> Fields:
    return t5(rng) | {"encoder_attention_type": rng.choice(("local", "transient-global")), "local_radius": 4, "global_block_size": 4}


def whisper(rng: Rng) -> Fields:
    fields = _marian_like(rng)
    return fields | {
        "vocab_size": 131, "num_mel_bins": rng.choice((16, 80)), "max_source_positions": rng.choice((20, 50)), "max_target_positions": 64,
        "pad_token_id": 0, "eos_token_id": 2, "bos_token_id": 3, "decoder_start_token_id": 4, "suppress_tokens": None,
        "begin_suppress_tokens": None,
    }  # fmt: skip


def vit(rng: Rng) -> Fields:
    count = rng.choice((2, 4))
    return {"hidden_size": count * 8, "num_attention_heads": count, "num_hidden_layers": 2, "intermediate_size": 48,
            "image_size": rng.choice((16, 24, 32)), "patch_size": rng.choice((4, 8)), "num_channels": rng.choice((3, 3, 1)),
            "qkv_bias": chance(rng, 0.6), "hidden_act": rng.choice(("gelu", "quick_gelu")), "num_labels": rng.choice((2, 5, 11))}  # fmt: skip


def deit(rng: Rng) -> Fields:
    return vit(rng) | {"architectures": [rng.choice(("DeiTForImageClassification", "DeiTForImageClassificationWithTeacher"))]}


def beit(rng: Rng) -> Fields:
    return vit(rng) | {"use_relative_position_bias": chance(rng, 0.5), "use_absolute_position_embeddings": chance(rng, 0.5),
                       "use_shared_relative_position_bias": chance(rng, 0.3), "use_mean_pooling": chance(rng, 0.5)}  # fmt: skip


def dinov2(rng: Rng) -> Fields:
    fields = vit(rng)
    fields.pop("intermediate_size")
    return fields | {"use_swiglu_ffn": chance(rng, 0.4), "mlp_ratio": 2}


def convnext(rng: Rng) -> Fields:
    return {"num_channels": 3, "hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, rng.choice((1, 2)), 1], "image_size": 32,
            "layer_scale_init_value": rng.choice((1e-6, 0.5)), "num_labels": rng.choice((2, 7))}  # fmt: skip


def resnet(rng: Rng) -> Fields:
    return {"embedding_size": 8, "hidden_sizes": [8, 16, 16], "depths": [1, 1, 1], "layer_type": rng.choice(("basic", "bottleneck")),
            "downsample_in_first_stage": chance(rng, 0.4), "downsample_in_bottleneck": chance(rng, 0.4), "num_labels": rng.choice((2, 7))}  # fmt: skip


def swin(rng: Rng) -> Fields:
    return {"image_size": 32, "patch_size": rng.choice((2, 4)), "embed_dim": 8, "depths": [1, 2], "num_heads": [2, 4], "window_size": rng.choice((2, 4)),
            "qkv_bias": chance(rng, 0.6), "use_absolute_embeddings": chance(rng, 0.4), "mlp_ratio": 2.0, "num_labels": 5}  # fmt: skip


def mobilenet_v2(rng: Rng) -> Fields:
    # Of smaller pictures one number is left at the end, which batch norms cannot be set by: rounding errors grow without end.
    return {"image_size": 96, "depth_multiplier": 0.25, "depth_divisible_by": 4, "min_depth": 4, "num_labels": 5,
            "tf_padding": chance(rng, 0.5), "first_layer_is_expansion": chance(rng, 0.5), "finegrained_output": chance(rng, 0.5)}  # fmt: skip


def segformer(rng: Rng) -> Fields:
    return {"hidden_sizes": [8, 16, 16, 24], "depths": [1, 1, 1, 1], "num_attention_heads": [1, 2, 2, 3], "sr_ratios": [4, 2, 1, 1],
            "decoder_hidden_size": 16, "num_labels": 5}  # fmt: skip


def clip(rng: Rng) -> Fields:
    side = {"hidden_size": 32, "num_attention_heads": rng.choice((2, 4)), "num_hidden_layers": 2, "intermediate_size": 48,
            "hidden_act": rng.choice(("gelu", "quick_gelu"))}  # fmt: skip
    end = rng.choice((2, 98))
    return {"text_config": side | {"vocab_size": 99, "max_position_embeddings": 40, "eos_token_id": end, "bos_token_id": 1, "pad_token_id": rng.choice((0, end))},
            "vision_config": side | {"image_size": 32, "patch_size": 8}, "projection_dim": rng.choice((16, 24))}  # fmt: skip


def siglip(rng: Rng) -> Fields:
    side = {"hidden_size": 32, "num_attention_heads": rng.choice((2, 4)), "num_hidden_layers": 2, "intermediate_size": 48}
    return {"text_config": side | {"vocab_size": 99, "max_position_embeddings": 40, "projection_size": 32, "eos_token_id": 1, "bos_token_id": 0, "pad_token_id": 1},
            "vision_config": side | {"image_size": 32, "patch_size": 8}}  # fmt: skip


def wav2vec2(rng: Rng) -> Fields:
    return {
        "vocab_size": rng.choice((31, 97)), "hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48,
        "conv_dim": [16, 16, 16], "conv_kernel": [10, 3, 3], "conv_stride": [5, 2, 2], "num_feat_extract_layers": 3,
        "feat_extract_norm": rng.choice(("group", "layer")), "conv_bias": chance(rng, 0.5), "do_stable_layer_norm": chance(rng, 0.5),
        "num_conv_pos_embeddings": rng.choice((8, 16)), "num_conv_pos_embedding_groups": 4, "feat_proj_dropout": 0.1,
        "apply_spec_augment": False, "hidden_act": "gelu",
    }  # fmt: skip


def hubert(rng: Rng) -> Fields:
    return wav2vec2(rng)


def unispeech_sat(rng: Rng) -> Fields:
    return wav2vec2(rng)


def audio_spectrogram_transformer(rng: Rng) -> Fields:
    return {"hidden_size": 32, "num_attention_heads": 4, "num_hidden_layers": 2, "intermediate_size": 48, "patch_size": 4,
            "frequency_stride": rng.choice((2, 4)), "time_stride": rng.choice((2, 4)), "max_length": 24, "num_mel_bins": 16,
            "qkv_bias": chance(rng, 0.5), "num_labels": 5}  # fmt: skip


def _named(*functions: Any) -> dict[str, Any]:
    return {function.__name__: function for function in functions}


SEQ2SEQ = _named(bart, mbart, marian, pegasus, blenderbot, m2m_100, t5, mt5, umt5, longt5, whisper)
VISION = _named(vit, deit, beit, dinov2, convnext, resnet, swin, mobilenet_v2, segformer)
MORE = _named(clip, siglip, wav2vec2, hubert) | {"unispeech-sat": unispeech_sat,
                                                 "audio-spectrogram-transformer": audio_spectrogram_transformer}  # fmt: skip
