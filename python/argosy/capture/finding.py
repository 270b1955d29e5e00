"""Which components a model has."""

from __future__ import annotations

import torch

from .components import Component, cache_argument, decode, parameters_of, single_forward, without_past
from .multimodal import media_for_encoder, multimodal_components
from .packed_encoder import packed_encoder
from .seq2seq import encoder_and_decoder
from .twin import Sizes, sample_inputs


def find_components(model: torch.nn.Module, *, prefill: bool = False) -> list[Component]:
    """The components of ``model`` (a twin), found by what the model can do, not by which it is. ``prefill`` asks for a
    graph of its own for prompts without a past, which engines that know only ``decode`` do not need."""
    inputs = sample_inputs(model, Sizes())
    if not _generates(model):
        return [packed_encoder(model) if any(name.endswith(("grid_thw", "target_sizes")) for name in inputs) else single_forward(model)]
    has_media = any(_is_media(name) for name in inputs)
    if model.config.is_encoder_decoder:
        if has_media and "input_ids" in inputs:
            return media_for_encoder(model)
        # Transducers, whose decoder is a small recurrent network, have a state of their own kind: they stay whole.
        return encoder_and_decoder(model) if "past_key_values" in parameters_of(model.forward) else [single_forward(model)]
    if has_media:
        return multimodal_components(model)
    cache = cache_argument(model, inputs)
    if cache is None:
        return [single_forward(model)]
    found = [decode(model, cache)]
    return [without_past(found[0]), *found] if prefill else found


def _generates(model: torch.nn.Module) -> bool:
    return bool(getattr(model, "can_generate", lambda: False)())


def _is_media(name: str) -> bool:
    return any(word in name for word in ("pixel", "image", "video", "audio", "input_features", "input_values"))
