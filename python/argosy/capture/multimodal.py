"""Multimodal models that generate text: encoders, the merge of their features with text, and the language model."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import torch

from .components import Component, Inputs, Shape, parameters_of, positions, single_forward
from .multimodal_cut import Recording, language_model, record
from .multimodal_decode import decode_component
from .multimodal_features import encoder_component
from .multimodal_geometry import is_geometry
from .multimodal_merge import embedding_component, extra_outputs

_MEDIA_WORDS = ("pixel", "image", "video", "audio", "input_features", "input_values", "grid_thw", "aspect_ratio")


def multimodal_components(model: torch.nn.Module) -> list[Component]:
    """``<modality>_encoder`` for each modality, ``embedding`` and ``decode`` of ``model``, a twin. A model whose encoders or
    language model can't be told apart, or whose language model takes no embeddings, stays whole: one ``model`` that takes
    everything at once and has no past."""
    shape = Shape(padding=0)
    samples = sample_at(model, shape)
    try:
        recording = record_at(model, shape)
        part = language_model(model)
    except (LookupError, RuntimeError):
        return [single_forward(model)]
    if not recording.calls or not isinstance(recording.received.get("inputs_embeds"), torch.Tensor):
        return [single_forward(model)]
    rest = {name: value for name, value in samples.items() if not is_media(name) and name != "input_ids"}
    takes: list[str] = [name for name in ("attention_mask", "position_ids", "token_type_ids") if name in rest]
    direct = False
    try:
        extras, along = extra_outputs(model, recording, rest)
    except (TypeError, ValueError):
        if not part.can_generate():
            return [single_forward(model)]
        direct, extras, along = True, [], []
        takes = [name for name in ("attention_mask", "position_ids") if name in parameters_of(part.forward)]
    symbols, in_row = _sizes_of_rows(model)

    outputs = ["inputs_embeds", *extras]
    embedding = embedding_component(model, recording, outputs, samples, record_at, sample_at, symbols)
    encoders = [encoder_component(model, modality, recording, record_at, sample_at) for modality in recording.calls]
    # The second token is the first placeholder. Where types matter, those of media attend in both directions.
    plain_type = 1 - int(samples["token_type_ids"][0, 1]) if "token_type_ids" in samples else 0
    decode = decode_component(recording, extras, along, takes, plain_type, in_row, record_at, sample_at, direct)
    return [*encoders, embedding, decode]


def media_for_encoder(model: torch.nn.Module) -> list[Component]:
    """For an encoder-decoder model whose encoder reads text and media: ``<modality>_encoder``, ``embedding``, ``encoder`` on
    embeddings, and ``decoder``."""
    from .seq2seq import encoder_and_decoder, encoder_length

    shape = Shape(padding=0)
    recording = record_at(model, shape)
    symbols, in_row = _sizes_of_rows(model)

    def wanted(shape: Shape) -> Shape:
        return Shape(shape.batch, encoder_length(shape), shape.past, shape.padding, shape.media)

    def encoder_inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        embeddings = record_at(model, wanted(shape)).received["inputs_embeds"]
        return {"inputs_embeds": embeddings, "attention_mask": sample_at(model, wanted(shape))["attention_mask"]}

    def length(shape: Shape) -> int:
        return symbols(wanted(shape))["sequence"]

    samples = sample_at(model, shape)
    embedding = embedding_component(model, recording, ["inputs_embeds"], samples, record_at, sample_at, symbols)
    encoders = [encoder_component(model, modality, recording, record_at, sample_at) for modality in recording.calls]
    return [*encoders, embedding, *encoder_and_decoder(model, encoder_inputs, length)]


def is_media(name: str) -> bool:
    return any(word in name for word in _MEDIA_WORDS)


def sample_at(model: torch.nn.Module, shape: Shape) -> Inputs:
    """Inputs of ``model`` at ``shape``, position ids among them; ``media=-1`` is text alone. What describes sizes of media
    stays on the CPU, where its values are known."""
    from .twin import Sizes, sample_inputs

    length = shape.sequence
    if shape.media < 0:
        # The words after the media of a row that has some, so that all the other inputs fit.
        inputs = sample_inputs(model, Sizes(shape.batch, length + 1))
        inputs = {name: value[:, -length:].contiguous() for name, value in inputs.items() if not is_media(name)}
    else:
        sizes = Sizes(shape.batch, length, min(shape.padding, length - 1), media=shape.media)
        inputs = sample_inputs(model, sizes)
    if "attention_mask" not in inputs and "attention_mask" in parameters_of(model.forward):
        inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
    if "position_ids" in parameters_of(model.forward):
        inputs["position_ids"] = _position_ids(model, inputs)
    device = next(model.parameters()).device
    return {name: value if is_geometry(name) or not isinstance(value, torch.Tensor) else value.to(device)
            for name, value in inputs.items()}  # fmt: skip


def _position_ids(model: torch.nn.Module, inputs: Inputs) -> torch.Tensor:
    """Positions as generation computes them: from the mask, or from the grids of media by the model's own function."""
    by_mask = positions(inputs["attention_mask"])
    function = getattr(model.base_model, "get_rope_index", None)
    if function is None:
        return by_mask
    known = inspect.signature(function).parameters
    given = {name: value for name, value in inputs.items() if name in known}
    if any(is_media(name) for name in given):
        return function(**given)[0]
    from .twin import Sizes, sample_inputs

    # As whatever the function makes of media, which may lie between two positions.
    seen = function(**{name: value for name, value in sample_inputs(model, Sizes(1, 5)).items() if name in known})[0]
    return by_mask[None].expand(3, -1, -1).to(seen.dtype).contiguous()


def record_at(model: torch.nn.Module, shape: Shape) -> Recording:
    given = sample_at(model, shape)
    if shape.media < 0 and _wants_media(model):
        with torch.no_grad():
            return Recording(received={"inputs_embeds": model.get_input_embeddings()(given["input_ids"])})
    return record(model, given)


def _wants_media(model: torch.nn.Module) -> bool:
    parameters = inspect.signature(model.forward).parameters.values()
    return any(is_media(parameter.name) and parameter.default is parameter.empty for parameter in parameters)


def _sizes_of_rows(model: torch.nn.Module) -> tuple[Callable[[Shape], dict[str, int]], int]:
    """What sizes of rows with media are called, and how many placeholders a row has: of several kinds of media those of
    pictures, which come last."""
    tokens = {media: _media_tokens(model, media) for media in (0, 1)}

    def symbols(shape: Shape) -> dict[str, int]:
        row, features = tokens[max(shape.media, 0)]
        return {"batch": shape.batch, "sequence": shape.sequence + row,
                **{name: shape.batch * count for name, count in features.items()}}  # fmt: skip

    row, features = tokens[0]
    others = [count for name, count in features.items() if name != "image_tokens"]
    return symbols, row - sum(others) if "image_tokens" in features else row


def _media_tokens(model: torch.nn.Module, media: int) -> tuple[int, dict[str, int]]:
    """Placeholders in a row, and rows of features of each modality that belong to it."""
    shape = Shape(batch=1, sequence=5, padding=0, media=media)
    recording = record_at(model, shape)
    counts = {f"{modality}_tokens": recording.fields[next(iter(forms.values())).names[0]].shape[0]
              for modality, forms in recording.forms.items()}  # fmt: skip
    return sample_at(model, shape)["input_ids"].shape[1] - shape.sequence, counts
