"""Tiny random models, one per architecture, that the end-to-end tests export and read back.

Each family of models is a file with a list CASES; this is the list of the files.
"""

from __future__ import annotations

import os

from . import audio, control_flow, decoders, encoders, features, multimodal, mutation, seq2seq, vision
from .case import ModelCase

_ARCHITECTURES: list[ModelCase] = [
    *decoders.CASES,
    *encoders.CASES,
    *seq2seq.CASES,
    *vision.CASES,
    *audio.CASES,
    *multimodal.CASES,
]
_FEATURES: list[ModelCase] = [*control_flow.CASES, *mutation.CASES, *features.CASES]
ALL_CASES = [*_ARCHITECTURES, *_FEATURES]
#: What passes are tried on. Writes to inputs, buffers and new tensors, through views and by index; sub-graphs; dtypes; every
#: kind of model.
LOWERED = (
    "in_place_inputs", "buffer_statistics", "buffer_statistics_functional", "llama_static_cache", "mixtral", "falcon_h1",
    "wav2vec2", "detr", "t5", "smollm3_bfloat16", "cond_nested", "while_loop", "scan", "data_dependent", "indexing",
    "many_types", "symbolic_sizes", "interpolate", "lstm_gru",
    *(("mamba2", "deepseek_v3", "smolvlm", "swin", "clip", "camembert_core_aten") if os.environ.get("ARGOSY_E2E_ALL") else ()),
)  # fmt: skip
#: Enough for every change: architectures of one family have nearly the same ops, and what passes are tried on is exported anyway.
SOME_CASES = [*(case for case in _ARCHITECTURES if case.name in LOWERED), *_FEATURES]


def cases_by_name() -> dict[str, ModelCase]:
    by_name = {case.name: case for case in ALL_CASES}
    if len(by_name) != len(ALL_CASES):
        raise ValueError("two models of the corpus have the same name")
    return by_name
