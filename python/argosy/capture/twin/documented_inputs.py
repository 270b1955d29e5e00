"""What a model must be given and no other rule makes: as its documentation says, else as its first layer takes it."""

from __future__ import annotations

import inspect
import re
from typing import Any

from .audio_inputs import SAMPLES
from .image_inputs import channels, image_size
from .request import Request

#: A parameter in the documentation of a forward: its dtype and its shape.
_SHAPED = r"^\s*{name} \(`?torch\.(\w+)`?,? of shape `?\(([^)]*)\)"
#: What documentations call the length of a sequence.
_LENGTHS = ("sequence_length", "seq_length", "seq_len", "text_seq_len", "frames", "num_frames", "time_steps")


def add_documented(request: Request) -> None:
    """Adds what ``forward`` has no default for. What cannot be made is left out, and the model will say so."""
    for name, parameter in inspect.signature(request.model.forward).parameters.items():
        required = parameter.default is parameter.empty and parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        if required and name not in request.inputs:
            made = _by_documentation(request, name) if _documented(request, name) else _by_first_layer(request)
            if made is not None:
                request.inputs[name] = made


def _documented(request: Request, name: str) -> re.Match[str] | None:
    return re.search(_SHAPED.format(name=name), type(request.model).forward.__doc__ or "", re.MULTILINE)


def _by_documentation(request: Request, name: str) -> Any:
    import torch

    found = _documented(request, name)
    shape = [_size(request, word.strip()) for word in found[2].split(",")] if found else [None]
    if found is None or not all(isinstance(size, int) for size in shape):
        return None
    if found[1] == "BoolTensor" or name.endswith("attention_mask"):
        return torch.ones(*shape, dtype=torch.bool if found[1] == "BoolTensor" else torch.long)
    return None if found[1] == "LongTensor" else request.normal(*shape)


def _size(request: Request, word: str) -> int | None:
    """Of a word in a shape."""
    if word.isdigit() or word == "batch_size":
        return int(word) if word.isdigit() else request.sizes.batch
    if word in _LENGTHS:
        return request.sizes.sequence
    if word in ("num_channels", "channels"):
        return channels(request)
    if word in ("height", "width"):
        pixels = request.inputs.get("pixel_values")
        return int((image_size(request) if pixels is None else pixels.shape[-2:])[word == "width"])
    return request.find(word)


def _by_first_layer(request: Request) -> Any:
    """For a part that reads nothing else: channels first for a convolution, last for a matrix."""
    import torch

    if request.inputs:
        return None
    batch, length = request.sizes.batch, request.sizes.sequence
    for layer in request.model.modules():
        if isinstance(layer, torch.nn.Conv1d):
            return request.normal(batch, layer.in_channels, SAMPLES[request.media] if layer.in_channels == 1 else length)
        if isinstance(layer, torch.nn.Linear):
            return request.normal(batch, length, layer.in_features)
    return None
