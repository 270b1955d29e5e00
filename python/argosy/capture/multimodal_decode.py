"""The language model of a multimodal model as a component: embeddings on any past to logits."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .caches import emptied, full_length_cache
from .components import Component, Inputs, Shape, call_flags, positions
from .multimodal_cut import Recording, language_model
from .multimodal_features import RecordAt
from .multimodal_merge import nothing_of, shape_for
from .swap import replaced
from .patches.vision import deepstack_by_rows

CACHE = "past_key_values"
#: Inputs that tell of the past as well as of the new tokens.
_WHOLE_ROWS = ("attention_mask", "token_type_ids", "mm_token_type_ids")


def decode_component(recording: Recording, extras: list[str], along: list[str], takes: list[str], plain_type: int,
                     in_row: int, record_at: RecordAt, sample_at: Callable, direct: bool = False) -> Component:  # fmt: skip
    """``decode``: ``inputs_embeds``, ``extras`` (further arguments of the language model, ``along`` of the outer one, too)
    and ``takes`` (arguments of the outer model), any number of tokens on any past. ``plain_type`` is the type of tokens that attend to the past only,
    ``in_row`` the number of placeholders in a row. With ``direct`` the language model is called instead of the outer one,
    as generation does where the language model has a head of its own and the outer one takes no embeddings."""

    def row(model: torch.nn.Module, shape: Shape, length: int, with_media: bool) -> Inputs:
        """The last ``length`` tokens of a row that the model would make: text, or the end of media and text after it."""
        if length == 0:
            return {}
        words = length if not with_media else length // 2
        wanted = Shape(shape.batch, words + 1, 0, 0, max(shape.media, 0) if with_media else -1)
        given, made = sample_at(model, wanted), record_at(model, wanted)
        total = given["input_ids"].shape[1]
        if total < length:  # media are few: more text
            wanted = Shape(shape.batch, words + 1 + length - total, 0, 0, wanted.media)
            given, made = sample_at(model, wanted), record_at(model, wanted)
            total = given["input_ids"].shape[1]
        received = {name: made.received.get(name) for name in ("inputs_embeds", *extras)}
        given = {name: given[name] for name in takes if name in given}
        if "token_type_ids" in given and not with_media:
            # words that follow a prompt: of another type than what attends in both directions
            given["token_type_ids"] = torch.full_like(given["token_type_ids"], plain_type)
        return _tokens({**given, **received}, total - length, total, whole=False)

    def rows(model: torch.nn.Module, shape: Shape) -> tuple[Inputs, Inputs]:
        """Past and new tokens. Media are among the new ones, or in the past for shapes that say ``media=1``."""
        past = row(model, shape, shape.past, shape.media == 1)
        new = row(model, shape, shape.sequence, shape.media == 0)
        return past, new

    def joined(model: torch.nn.Module, shape: Shape) -> Inputs:
        past, new = rows(model, shape)
        everything = _joined(past, new) if past else dict(new)
        mask = torch.ones(shape.batch, shape.past + shape.sequence, dtype=torch.long)
        mask[0, : min(shape.padding, shape.past + shape.sequence - 1)] = 0
        if "position_ids" in takes and everything.get("position_ids") is None:
            everything["position_ids"] = positions(mask)
        everything["attention_mask"] = mask
        for name in extras:
            if everything.get(name) is None:
                everything[name] = nothing_of(recording.received[name], everything["inputs_embeds"])
        device = next(model.parameters()).device
        return _moved(everything, device)

    def call(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> Any:
        if direct:
            part = language_model(model)
            return part(**inputs, **call_flags(part.forward, use_cache=True, return_dict=True))
        given = {name: value for name, value in inputs.items() if name not in extras or name in along}
        more = {name: value for name, value in inputs.items() if name in extras and name not in along and value is not None}
        with _receiving(model, more):
            return forward(**given, **call_flags(forward, use_cache=True, return_dict=True))

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        shape = shape_for(model, shape)
        everything = joined(model, shape)
        first = _tokens(everything, 0, max(shape.past, 1))
        by_rows = deepstack_by_rows(model) if everything["inputs_embeds"].is_meta else contextlib.nullcontext()
        with torch.no_grad(), by_rows:
            state = call(model, model.forward, {**first, CACHE: full_length_cache(model)})[CACHE]
        state = emptied(state) if shape.past == 0 else state
        return {**_tokens(everything, shape.past, shape.past + shape.sequence), CACHE: state}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .patches.vision import decode_patches

        with decode_patches(model):
            output = call(model, forward, inputs)
        return {"logits": output["logits"], "present": output[CACHE]}

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        """All tokens at once, without a past; for models with recurrent states the new tokens on their past, since these
        states are computed in chunks, and other chunks give other last digits."""
        if _is_recurrent(full_length_cache(model)):
            with torch.no_grad():
                return run(model, model.forward, inputs(model, shape))
        with torch.no_grad():
            output = call(model, model.forward, {**joined(model, shape), CACHE: full_length_cache(model)})
        return {"logits": output["logits"][:, shape.past :], "present": output[CACHE]}

    def symbols(shape: Shape) -> dict[str, int]:
        return {"batch": shape.batch, "sequence": shape.sequence, "past_sequence": shape.past,
                "total_sequence": shape.past + shape.sequence, "media_tokens": media_of(shape)}  # fmt: skip

    def media_of(shape: Shape) -> int:
        """Features among the new tokens: see ``row``."""
        half = shape.sequence - shape.sequence // 2
        return shape.batch * min(half, in_row) if shape.media == 0 else 0

    # Media in the past, and none at all.
    others = (Shape(2, 5, 30, 3, media=1), Shape(2, 7, 9, 2, media=-1), Shape(1, 1, 12, 0, media=1))
    return Component("decode", inputs, run, reference, symbols, CACHE, others)


def _is_recurrent(cache: Any) -> bool:
    return any(hasattr(layer, "recurrent_states") or hasattr(layer, "conv_states") for layer in cache.layers)


@contextlib.contextmanager
def _receiving(model: torch.nn.Module, more: Inputs) -> Iterator[None]:
    """The language model is given ``more`` than the outer model gives it."""
    part = language_model(model)
    original = part.forward
    if not more:
        yield
        return
    with replaced(part, "forward", lambda *args, **kwargs: original(*args, **{**kwargs, **more})):
        yield


# ---- parts of rows -----------------------------------------------------------------------------------------------------


def _tokens(inputs: Inputs, start: int, stop: int, *, whole: bool = True) -> Inputs:
    """The inputs of the tokens from ``start`` to ``stop``; with ``whole`` those that tell of the past begin at 0."""
    chosen = {}
    rows = _rows_of_features(inputs, start, stop)
    for name, value in inputs.items():
        if name == "position_ids":
            chosen[name] = value[..., start:stop].contiguous()
        elif name in _WHOLE_ROWS and whole:
            chosen[name] = value[:, :stop].contiguous()
        elif isinstance(value, (list, tuple)):
            chosen[name] = type(value)(item[rows].contiguous() for item in value)
        elif isinstance(value, torch.Tensor):
            chosen[name] = value[:, start:stop].contiguous()
        else:
            chosen[name] = value
    return chosen


def _rows_of_features(inputs: Inputs, start: int, stop: int) -> torch.Tensor | slice:
    """Which rows of flat features belong to the tokens from ``start`` to ``stop``, by the mask of their places."""
    mask = next((value for value in inputs.values() if isinstance(value, torch.Tensor) and value.dtype == torch.bool
                 and value.dim() == 2), None)  # fmt: skip
    if mask is None:
        return slice(None)
    if mask.is_meta:  # only the number counts, and there is as much of it as there are new tokens with media
        return slice(0, max(2, mask.shape[0] * (stop - start) // 2))
    places = torch.arange(mask.shape[1])[None].expand_as(mask)[mask]
    return ((places >= start) & (places < stop)).nonzero()[:, 0]


def _joined(first: Inputs, second: Inputs) -> Inputs:
    result = {}
    for name in {**first, **second}:
        one, two = first.get(name), second.get(name)
        if name == "position_ids" and one is not None and two is not None:
            two = two + (one.amax() + 1 - two.amin())
            result[name] = torch.cat([one, two], dim=-1)
        elif isinstance(one, torch.Tensor) and isinstance(two, torch.Tensor):
            result[name] = torch.cat([one, two], dim=1)
        elif one is None and two is None:
            result[name] = None
        else:
            result[name] = _joined_features(name, first, second)
    return result


def _joined_features(name: str, first: Inputs, second: Inputs) -> Any:
    """Flat features and the mask of their places, where the tokens of one side have none."""
    one, two = first.get(name), second.get(name)
    if isinstance(one, torch.Tensor) or isinstance(two, torch.Tensor):
        lengths = [side["inputs_embeds"].shape[:2] for side in (first, second)]
        sides = [torch.zeros(shape, dtype=torch.bool, device=side["inputs_embeds"].device) if side.get(name) is None
                 else side[name] for side, shape in zip((first, second), lengths, strict=True)]  # fmt: skip
        return torch.cat(sides, dim=1)
    return one if one is not None else two


def _moved(inputs: Inputs, device: torch.device) -> Inputs:
    return {name: value.to(device) if isinstance(value, torch.Tensor) else value for name, value in inputs.items()}
