"""Encoder-decoders."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import AutoConfig, AutoModelForSeq2SeqLM, AutoModelForSpeechSeq2Seq

from .case import AUTO, BATCH, BATCH_SEQ, VOCAB, Inputs, ModelCase, Sample, floats, make_distinct, padding_mask, tokens

TOKENS = {"vocab_size": VOCAB, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2, "decoder_start_token_id": 1}
BART_SIZES = {
    **TOKENS,
    "d_model": 32,
    "encoder_layers": 2,
    "decoder_layers": 2,
    "encoder_attention_heads": 4,
    "decoder_attention_heads": 4,
    "encoder_ffn_dim": 48,
    "decoder_ffn_dim": 48,
    "max_position_embeddings": 64,
}
T5_SIZES = {
    **TOKENS,
    "d_model": 32,
    "d_kv": 8,
    "d_ff": 48,
    "num_layers": 2,
    "num_decoder_layers": 2,
    "num_heads": 4,
    "relative_attention_num_buckets": 8,
    "relative_attention_max_distance": 16,
}


def text_to_text(model_type: str, sizes: dict, **settings) -> ModelCase:
    def inputs(batch: int, source: int, target: int) -> Inputs:
        kwargs = {
            "input_ids": tokens(batch, source),
            "attention_mask": padding_mask(batch, source, side="right"),
            "decoder_input_ids": tokens(batch, target),
            "use_cache": False,
        }
        return Inputs(kwargs=kwargs)

    def build() -> Sample:
        module = make_distinct(
            AutoModelForSeq2SeqLM.from_config(AutoConfig.for_model(model_type, **{**sizes, **settings}))
        )
        shapes = {
            "input_ids": BATCH_SEQ,
            "attention_mask": BATCH_SEQ,
            "decoder_input_ids": BATCH_SEQ,
            "use_cache": None,
        }
        return Sample(module, inputs(2, 7, 5), shapes, inputs(3, 12, 4))

    return ModelCase(model_type, "encoder-decoder", build)


def speech_to_text(
    model_type: str, frames: dict, features: Callable[[int], torch.Tensor], name: str, **settings
) -> ModelCase:
    def inputs(batch: int, target: int) -> Inputs:
        return Inputs(kwargs={name: features(batch), "decoder_input_ids": tokens(batch, target), "use_cache": False})

    def build() -> Sample:
        module = make_distinct(AutoModelForSpeechSeq2Seq.from_config(AutoConfig.for_model(model_type, **settings)))
        shapes = {name: frames, "decoder_input_ids": BATCH_SEQ, "use_cache": None}
        return Sample(module, inputs(2, 5), shapes, inputs(3, 8))

    return ModelCase(model_type, "encoder-decoder", build)


WHISPER_SIZES = {**BART_SIZES, "num_mel_bins": 8, "max_source_positions": 16, "max_target_positions": 24}
del WHISPER_SIZES["max_position_embeddings"]

CASES = [
    text_to_text("t5", T5_SIZES),
    text_to_text("mt5", {**T5_SIZES, "feed_forward_proj": "gated-gelu", "tie_word_embeddings": False}),
    text_to_text("bart", BART_SIZES),
    text_to_text("pegasus", BART_SIZES),
    text_to_text("marian", BART_SIZES, decoder_vocab_size=VOCAB),
    text_to_text("m2m_100", BART_SIZES),
    speech_to_text("whisper", BATCH, lambda batch: floats(batch, 8, 32), "input_features", **WHISPER_SIZES),
    speech_to_text(
        "moonshine",
        {0: AUTO, 1: AUTO},
        lambda batch: floats(batch, 400 * 8 + 100 * batch),
        "input_values",
        **TOKENS,
        hidden_size=32,
        intermediate_size=48,
        encoder_num_hidden_layers=2,
        decoder_num_hidden_layers=2,
        encoder_num_attention_heads=4,
        decoder_num_attention_heads=4,
        max_position_embeddings=64,
    ),
]
