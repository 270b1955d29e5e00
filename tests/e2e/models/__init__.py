"""Tiny random models, one per architecture, that the end-to-end tests export and read back.

Each family of models is a file with a list CASES; this is the list of the files.
"""

from __future__ import annotations

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
#: Enough for every change: architectures of one family have nearly the same ops.
SOME_CASES = [*_ARCHITECTURES[::3], *_FEATURES]


def cases_by_name() -> dict[str, ModelCase]:
    by_name = {case.name: case for case in ALL_CASES}
    if len(by_name) != len(ALL_CASES):
        raise ValueError("two models of the corpus have the same name")
    return by_name
