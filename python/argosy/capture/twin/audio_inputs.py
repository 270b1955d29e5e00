"""Waveforms and spectrograms, in the layouts that feature extractors make."""

from __future__ import annotations

from .request import Request

#: Samples of a waveform, for each value of ``Sizes.media``.
_SAMPLES = (4000, 6400)
#: Frames of a spectrogram whose length is free.
_FRAMES = (48, 72)


def add_audio(request: Request) -> None:
    """Adds audio, if the model takes any."""
    if request.takes("input_ids", "decoder_input_ids"):
        return  # made from text; audio to go on from is optional
    if request.takes("audio_input_features", "audio_embed_sizes"):
        _add_sized_spectrogram(request)
    elif request.takes("input_features"):
        _add_spectrogram(request)
    elif request.takes("input_values"):
        _add_waveform(request)


def _add_waveform(request: Request) -> None:
    import torch

    batch, samples = request.sizes.batch, _SAMPLES[request.media]
    bins, frames = request.find("num_mel_bins"), request.find("max_length")
    if bins is not None and frames is not None:  # a spectrogram of one length by the same name
        request.inputs["input_values"] = request.normal(batch, frames, bins)
        return
    layers = request.find("audio_channels")
    shape = (batch, samples) if layers is None else (batch, layers, samples)
    request.inputs["input_values"] = request.normal(*shape)
    if request.takes("attention_mask") and layers is None:
        request.inputs["attention_mask"] = torch.ones(batch, samples, dtype=torch.long)


def _add_sized_spectrogram(request: Request) -> None:
    """Phi-4's layout: frames first, and how many tokens each row becomes."""
    import torch

    audio = request.config.audio_config
    tokens = _FRAMES[request.media] // audio.time_reduction
    frames = tokens * audio.time_reduction
    request.inputs["audio_input_features"] = request.normal(request.sizes.batch, frames, audio.input_size)
    request.inputs["audio_embed_sizes"] = torch.full((request.sizes.batch,), tokens)


def _add_spectrogram(request: Request) -> None:
    import torch

    batch = request.sizes.batch
    bins = request.find(
        "feature_projection_input_dim", "num_mel_bins", "input_feat_per_channel", "input_feat_size", default=80
    )
    frames = _FRAMES[request.media]
    if request.find("feature_projection_input_dim", "input_feat_per_channel", "input_feat_size") is not None:
        # frames first, any number of them, with a mask
        request.inputs["input_features"] = request.normal(batch, frames, bins)
        if request.takes("attention_mask"):
            request.inputs["attention_mask"] = torch.ones(batch, frames, dtype=torch.long)
        return
    picture = request.find("spec_size")
    if picture is not None:
        # a spectrogram as a picture, cut from a longer strip; a little short of it, as extractors make it
        request.inputs["input_features"] = request.normal(batch, 1, picture * picture // bins - 6, bins)
        return
    positions = request.find("max_source_positions")
    if isinstance(positions, int):
        frames = 2 * positions  # always padded to the longest
    request.inputs["input_features"] = request.normal(batch, bins, frames)
