"""Audio encoders."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForAudioClassification,
    AutoModelForCTC,
    ClapAudioConfig,
    ClapAudioModelWithProjection,
    WhisperConfig,
)
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from .case import BATCH, BATCH_SEQ, VOCAB, Inputs, ModelCase, Sample, floats, make_distinct, padding_mask

CONVOLUTIONS = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "conv_dim": [8, 8],
    "conv_kernel": [5, 3],
    "conv_stride": [4, 2],
    "num_feat_extract_layers": 2,
    "num_conv_pos_embeddings": 4,
    "num_conv_pos_embedding_groups": 2,
    "vocab_size": VOCAB,
}


def audio_model(name: str, make: Callable[[], torch.nn.Module], traced: dict, other: dict, shapes: dict) -> ModelCase:
    def build() -> Sample:
        module = make_distinct(make())
        return Sample(
            module,
            Inputs(kwargs={k: v() for k, v in traced.items()}),
            shapes,
            Inputs(kwargs={k: v() for k, v in other.items()}),
        )

    return ModelCase(name, "audio", build)


def waveform_model(model_type: str, head, **settings) -> ModelCase:
    return audio_model(
        model_type,
        lambda: head.from_config(AutoConfig.for_model(model_type, **CONVOLUTIONS, **settings)),
        {"input_values": lambda: floats(2, 160)},
        {"input_values": lambda: floats(3, 240)},
        {"input_values": BATCH_SEQ},
    )


def whisper_encoder() -> torch.nn.Module:
    config = WhisperConfig(
        d_model=32,
        encoder_layers=2,
        encoder_attention_heads=4,
        encoder_ffn_dim=48,
        num_mel_bins=8,
        max_source_positions=16,
        decoder_layers=1,
        decoder_attention_heads=4,
        decoder_ffn_dim=48,
        vocab_size=VOCAB,
    )
    return WhisperEncoder(config)


def clap_audio() -> torch.nn.Module:
    config = ClapAudioConfig(
        spec_size=32,
        patch_size=4,
        patch_stride=[4, 4],
        num_mel_bins=8,
        hidden_size=32,
        projection_dim=16,
        depths=[1, 1],
        num_attention_heads=[2, 2],
        num_hidden_layers=2,
        patch_embeds_hidden_size=16,
        window_size=4,
        enable_fusion=False,
        num_classes=4,
    )
    return ClapAudioModelWithProjection(config)


CASES = [
    waveform_model("wav2vec2", AutoModelForCTC, do_stable_layer_norm=False),
    waveform_model("hubert", AutoModel, do_stable_layer_norm=True, feat_extract_norm="layer"),
    waveform_model("wavlm", AutoModel, num_buckets=8, max_bucket_distance=16),
    waveform_model("sew", AutoModel, squeeze_factor=2),
    audio_model(
        "whisper_encoder",
        whisper_encoder,
        {"input_features": lambda: floats(2, 8, 32)},
        {"input_features": lambda: floats(3, 8, 32)},
        {"input_features": BATCH},
    ),
    audio_model(
        "ast",
        lambda: AutoModelForAudioClassification.from_config(
            AutoConfig.for_model(
                "audio-spectrogram-transformer",
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                patch_size=4,
                frequency_stride=4,
                time_stride=4,
                max_length=16,
                num_mel_bins=8,
                num_labels=5,
            )
        ),
        {"input_values": lambda: floats(2, 16, 8)},
        {"input_values": lambda: floats(3, 16, 8)},
        {"input_values": BATCH},
    ),
    audio_model(
        "clap_audio",
        clap_audio,
        {"input_features": lambda: floats(2, 1, 128, 8)},
        {"input_features": lambda: floats(3, 1, 128, 8)},
        {"input_features": BATCH},
    ),
    audio_model(
        "wav2vec2_bert",
        lambda: AutoModelForCTC.from_config(
            AutoConfig.for_model(
                "wav2vec2-bert",
                vocab_size=VOCAB,
                hidden_size=32,
                intermediate_size=48,
                num_hidden_layers=2,
                num_attention_heads=4,
                feature_projection_input_dim=16,
                left_max_position_embeddings=8,
                right_max_position_embeddings=4,
                conv_depthwise_kernel_size=3,
            )
        ),
        {"input_features": lambda: floats(2, 9, 16), "attention_mask": lambda: padding_mask(2, 9, side="right")},
        {"input_features": lambda: floats(3, 14, 16), "attention_mask": lambda: padding_mask(3, 14, side="right")},
        {"input_features": BATCH_SEQ, "attention_mask": BATCH_SEQ},
    ),
]
