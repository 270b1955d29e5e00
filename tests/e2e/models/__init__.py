"""Tiny random models, one per architecture, that the end-to-end tests export and read back.

Each family of models is a file with a list CASES; this is the list of the files.
"""

from __future__ import annotations

from . import audio, control_flow, decoders, encoders, features, multimodal, mutation, seq2seq, vision
from .case import ModelCase

ALL_CASES: list[ModelCase] = [
    *decoders.CASES,
    *encoders.CASES,
    *seq2seq.CASES,
    *vision.CASES,
    *audio.CASES,
    *multimodal.CASES,
    *control_flow.CASES,
    *mutation.CASES,
    *features.CASES,
]


def cases_by_name() -> dict[str, ModelCase]:
    by_name = {case.name: case for case in ALL_CASES}
    if len(by_name) != len(ALL_CASES):
        raise ValueError("two models of the corpus have the same name")
    return by_name
