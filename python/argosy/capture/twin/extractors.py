"""What a model's own feature extractor makes of a sound."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from functools import cache
from typing import Any

_SECONDS = 2


@cache
def waveform_of(model_type: str, samples: int) -> tuple[int, ...] | None:
    """The shape of one sound of so many samples: with channels or not, and filled up to whole frames. Nothing where
    ``spectrogram_of`` finds nothing, or if it makes something else."""
    try:
        made, _ = _try_out(model_type, samples)
    except Exception:  # noqa: BLE001 - as below
        return None
    sound = made.get("input_values")
    return None if sound is None or sound.dim() > 3 or sound.shape[-1] < samples else tuple(sound.shape[1:])


@dataclass(frozen=True)
class Spectrogram:
    """How an extractor lays a spectrogram out."""

    bins: int
    frames_first: bool
    masks: dict[str, Any] = field(default_factory=dict)
    """By name, what else has a value for each frame, with its dtype."""


@cache
def spectrogram_of(model_type: str) -> Spectrogram | None:
    """By the extractor of the type, with its defaults; nothing if there is none, if a package for it is missing, or if it
    makes something else."""
    try:
        made, bins = _try_out(model_type)
    except Exception:  # noqa: BLE001 - packages that extractors need may be missing, in many ways
        return None
    features = made.get("input_features")
    if features is None or features.dim() != 3 or bins not in features.shape[1:]:
        return None
    frames_first = features.shape[2] == bins
    frames = features.shape[1 if frames_first else 2]
    masks = {name: value.dtype for name, value in made.items() if value.dim() == 2 and value.shape[1] == frames}
    return Spectrogram(bins, frames_first, masks)


def _try_out(model_type: str, samples: int | None = None) -> tuple[dict[str, Any], int]:
    import numpy
    import torch
    import transformers
    from transformers.models.auto.feature_extraction_auto import FEATURE_EXTRACTOR_MAPPING_NAMES as names

    known = [each for each in names if model_type == each or model_type.startswith(f"{each}_")]  # or a part of it
    extractor = getattr(transformers, names[max(known, key=len)])()
    rate = getattr(extractor, "sampling_rate", 16000)
    sound = numpy.random.RandomState(0).randn(samples or _SECONDS * rate).astype("float32")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = extractor([sound, sound], sampling_rate=rate, return_tensors="pt")
    bins = extractor.feature_size if extractor.feature_size > 1 else getattr(extractor, "num_mel_bins", 0)
    return {name: value for name, value in made.items() if isinstance(value, torch.Tensor)}, bins
