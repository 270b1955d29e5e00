"""Waveforms and spectrograms, in the layouts that feature extractors make."""

from __future__ import annotations

import math
from typing import Any

from .extractors import Spectrogram, spectrogram_of, waveform_of
from .placeholders import features_take
from .request import Request, lacks_part

#: Samples of a waveform, for each value of ``Sizes.media``.
SAMPLES = (4000, 6400)
#: Frames of a spectrogram whose length is free.
_FRAMES = (48, 72)

#: What configurations call the rows of a spectrogram, the most telling first.
_BINS = ("feature_projection_input_dim", "num_mel_bins", "input_feat_per_channel", "input_feat_size", "n_mels", "feature_size", "input_dim")
#: What forwards call a mask of its frames.
_FRAME_MASKS = ("input_features_mask", "feature_attention_mask")


def add_audio(request: Request) -> None:
    """Adds audio, if the model takes any."""
    if request.takes("input_ids", "decoder_input_ids") or lacks_part(request.config, "audio_config"):
        return  # made from text; audio to go on from is optional
    if request.takes("audio_input_features", "audio_embed_sizes"):
        _add_sized_spectrogram(request)
    elif request.takes("audio_mel", "audio_mel_mask"):
        _add_masked_frames(request)
    elif request.takes("input_features") and not (request.takes("input_values") and _reads(request, "input_values")):
        _add_spectrogram(request)
        if request.needs("input_values"):  # codecs read a sound both ways, in frames of equal length
            samples = _FRAMES[request.media] * request.find("hop_length", default=320)
            request.inputs["input_values"] = request.normal(request.sizes.batch, 1, samples)
    elif request.takes("input_values"):
        _add_waveform(request)


def _reads(request: Request, name: str) -> bool:
    """Whether the part that hears, of a model that is made of any two, takes the input of that name alone."""
    return name == getattr(getattr(request.model, "encoder", None), "main_input_name", None)


def _add_masked_frames(request: Request) -> None:
    """Gemma's layout, in a part of its own: frames first, and which of them are padding."""
    import torch

    batch, frames = request.sizes.batch, _FRAMES[request.media]
    request.inputs["audio_mel"] = request.normal(batch, frames, request.find(*_BINS))
    request.inputs["audio_mel_mask"] = torch.zeros(batch, frames, dtype=torch.bool)


def _add_waveform(request: Request) -> None:
    import torch

    batch, samples = request.sizes.batch, SAMPLES[request.media] + _seen_at_once(request)
    bins, frames = request.find("num_mel_bins"), request.find("max_length")
    if bins is not None and frames is not None:  # a spectrogram of one length by the same name
        request.inputs["input_values"] = request.normal(batch, frames, bins)
        return
    layers = request.find("audio_channels")
    shape = waveform_of(request.config.model_type, samples) if layers is None else (layers, samples)
    shape = shape or (samples,)
    request.inputs["input_values"] = request.normal(batch, *shape)
    if request.takes("attention_mask") and len(shape) == 1:
        request.inputs["attention_mask"] = torch.ones(batch, shape[-1], dtype=torch.long)
    if request.takes("padding_mask", "input_ids"):
        request.inputs["padding_mask"] = torch.ones(batch, shape[-1], dtype=torch.bool)


def _seen_at_once(request: Request) -> int:
    """Samples that heads for speakers look at together, in convolutions over frames that do not pad."""
    if not type(request.model).__name__.endswith("ForXVector"):
        return 0
    kernels, steps = request.find("tdnn_kernel", default=()), request.find("tdnn_dilation", default=())
    frames = sum((kernel - 1) * step for kernel, step in zip(kernels, steps, strict=True))
    return frames * math.prod(request.find("conv_stride", default=()))


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
    made = spectrogram_of(request.config.model_type)
    bins = request.find(*_BINS, default=made.bins if made else 80)
    frames = _FRAMES[request.media]
    if (window := request.find("n_window")) is not None and request.takes("input_features_mask"):
        frames = -(-frames // (2 * window)) * 2 * window  # padded to whole windows
    picture = request.find("spec_size")
    if picture is not None:
        # a spectrogram as a picture, cut from a longer strip; a little short of it, as extractors make it
        request.inputs["input_features"] = request.normal(batch, 1, picture * picture // bins - 6, bins)
        return
    frames_first = _frames_first(request, bins, made)
    width = _stacked(request.model, bins) if frames_first else bins
    positions = request.find("max_source_positions")
    if not frames_first and isinstance(positions, int):
        frames = 2 * positions  # always padded to the longest
    shape = (batch, frames, width) if frames_first else (batch, bins, frames)
    request.inputs["input_features"] = request.normal(*shape)
    masks = made.masks if made else {}
    for name in {*_FRAME_MASKS, *masks} & set(request.parameters):
        if not features_take(request, "get_audio_features", name):
            continue  # it is of features that these frames become
        request.inputs[name] = torch.ones(batch, frames, dtype=masks.get(name, torch.long))
    if frames_first and request.takes("attention_mask") and not request.takes("input_ids"):
        request.inputs["attention_mask"] = torch.ones(batch, frames, dtype=torch.long)


def _stacked(model: Any, bins: int) -> int:
    """Numbers of a frame: those of several frames side by side, where no layer takes the bins of one."""
    import torch

    layers = [module for module in model.modules() if isinstance(module, (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d))]
    widths = [layer.in_features if isinstance(layer, torch.nn.Linear) else layer.in_channels for layer in layers]
    if bins in widths or any(isinstance(layer, torch.nn.Conv2d) for layer in layers):
        return bins
    return next((width for width in widths if width % bins == 0), bins)


def _frames_first(request: Request, bins: int, made: Spectrogram | None) -> bool:
    """As the extractor has it; else unless what reads the spectrogram convolves over frames, with a channel for each bin."""
    import torch

    if made is not None:
        return made.frames_first
    for module in request.model.modules():
        if isinstance(module, torch.nn.Linear) and module.in_features == bins:
            return True
        if isinstance(module, torch.nn.Conv1d) and module.in_channels == bins:
            return False
    return True
