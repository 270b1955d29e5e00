"""Waveforms and spectrograms, in the layouts that feature extractors make."""

from __future__ import annotations

from .inputs import Request

#: Samples of a waveform, for each value of ``Sizes.media``.
_SAMPLES = (4000, 6400)
#: Frames of a spectrogram whose length is free.
_FRAMES = (48, 72)


def add_audio(request: Request) -> None:
    """Adds audio, if the model takes any."""
    if request.takes("input_features"):
        _add_spectrogram(request)
    elif request.takes("input_values"):
        _add_waveform(request)


def _add_waveform(request: Request) -> None:
    import torch

    batch, samples = request.sizes.batch, _SAMPLES[request.sizes.media]
    layers = request.find("audio_channels")
    shape = (batch, samples) if layers is None else (batch, layers, samples)
    request.inputs["input_values"] = request.normal(*shape)
    if request.takes("attention_mask") and layers is None:
        request.inputs["attention_mask"] = torch.ones(batch, samples, dtype=torch.long)


def _add_spectrogram(request: Request) -> None:
    bins = request.find("num_mel_bins", "input_feat_per_channel", "feature_size", default=80)
    positions = request.find("max_source_positions")
    frames = 2 * positions if isinstance(positions, int) else _FRAMES[request.sizes.media]
    request.inputs["input_features"] = request.normal(request.sizes.batch, bins, frames)
