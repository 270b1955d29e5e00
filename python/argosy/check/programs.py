"""Calls of programs that were made for a task, as runners make them. Such programs keep their caches, so the order of calls
counts: prompts whole and in pieces, token by token, one prompt after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from ..capture.caches import full_length_cache
from ..capture.components import Component, Shape, call_flags, to_device
from ..capture.patches.rotary import forget_lengths, rotary_limits
from ..structures import identifier, named_leaves
from .calls import ExpectedCall, error_line
from .engines import Export
from .rows import Row
from .tokens import random_ids

_POSITIONS = "cache_position"
#: The longest text that the end of a cache is tried with.
_LONGEST = 128


@dataclass
class Text:
    """What a decoder is fed, token by token, and what eager answers to each."""

    what: str
    #: ids [1, tokens], or embeddings [1, tokens, width]
    given: torch.Tensor
    #: [1, tokens, vocabulary] for tokens in pieces that end at ``cuts``
    logits: Callable[[list[int]], torch.Tensor]
    #: which tokens are of a picture or a sound; None: all are text
    media: torch.Tensor | None = None
    #: of every call, such as what the encoder made
    constant: dict[str, torch.Tensor] = field(default_factory=dict)


def program_calls(
    model: torch.nn.Module, components: list[Component], export: Export, limits: tuple[int, ...]
) -> tuple[list[ExpectedCall], list[Row]]:
    """Calls of every method, in order, and a row for each that cannot be called, with the reason."""
    calls: list[ExpectedCall] = []
    rows: list[Row] = []
    by_name = {component.name: component for component in components}
    has_types = _has_types(model, export.manifest["graphs"])
    for graph in export.manifest["graphs"]:
        maker = _decoder_calls if _POSITIONS in graph["inputs"] else _plain_calls
        try:
            found = list(maker(model, by_name[graph["component"]], by_name, graph, limits))
            if has_types and _POSITIONS not in graph["inputs"]:
                found = [replace(call, outputs=_typed_outputs(call.outputs)) for call in found]
        except Exception as error:  # noqa: BLE001 - eager code of the model's own
            rows.append(Row(graph["component"], "prompt", "", None, note=f"eager was not run: {error_line(error)}"))
            continue
        calls += found
    return calls, rows


# ---- types of tokens -------------------------------------------------------------------------------------------------


def _has_types(model: torch.nn.Module, graphs: list[dict[str, Any]]) -> bool:
    """Whether embeddings have a column more than the model's: the type of each token, where the decoder is told which belong
    to a picture."""
    given = [graph["largest"][0] for graph in graphs if graph["inputs"][:1] == ["inputs_embeds"]]
    return any(sizes[-1] == model.get_input_embeddings().embedding_dim + 1 for sizes in given)


def _typed(embeddings: torch.Tensor, types: torch.Tensor) -> torch.Tensor:
    return torch.cat([embeddings, types.to(embeddings.dtype)[..., None]], dim=-1)


def _typed_outputs(outputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """What methods that make embeddings return, [1, tokens, width and type]: 0 of text, 1 of pictures or sound."""
    rows = {name: value.reshape(1, -1, value.shape[-1]) for name, value in outputs.items()}
    return {name: _typed(value, torch.full(value.shape[:2], name != "inputs_embeds")) for name, value in rows.items()}


# ---- methods without a state ----------------------------------------------------------------------------------------


def _plain_calls(
    model: torch.nn.Module, component: Component, components: Mapping[str, Component], graph: Mapping[str, Any],
    limits: tuple[int, ...],
) -> Iterator[ExpectedCall]:  # fmt: skip
    longest = max((sizes[1] for sizes in graph["largest"] if len(sizes) == 2), default=32)
    lengths = list(dict.fromkeys(min(length, longest) for length in (19, 5, 1, *limits)))
    has_mask = "attention_mask" in graph["inputs"]
    shapes = [Shape(1, length, 0, 0) for length in lengths]
    shapes += [Shape(1, 13, 0, 0, media=1)]
    shapes += [Shape(1, min(19, longest), 0, 3)] if has_mask else []
    if component.given:
        shapes = list(component.shapes)
    seen = set()
    for shape in shapes:
        inputs = component.inputs(model, shape)
        flat = {identifier(name): tensor.detach().clone() for name, tensor in named_leaves(inputs).items()}
        flat = {name: flat[name] if component.given else flat[name][:1] for name in graph["inputs"]}
        sizes = tuple(tuple(tensor.shape) for tensor in flat.values())
        if (sizes, shape.padding) in seen or not _fits(flat, graph):
            continue
        seen.add((sizes, shape.padding))
        with torch.no_grad():
            outputs = _plain_outputs(model, component, graph, flat, inputs)
        text = " and ".join("x".join(map(str, size)) for size in sizes)
        ignored = {}
        if shape.padding and has_mask:
            mask = (flat["attention_mask"] == 0)[..., None]
            ignored = {name: mask.expand_as(tensor) for name, tensor in outputs.items() if tensor.shape[:2] == mask.shape[:2]}
        yield ExpectedCall(component.name, "edge", text, flat, outputs, ignored, partial=True)


def _plain_outputs(
    model: torch.nn.Module, component: Component, graph: Mapping[str, Any], flat: dict[str, torch.Tensor], inputs: dict[str, Any]
) -> dict[str, torch.Tensor]:  # fmt: skip
    """What eager says to the inputs of a method: parts of models whose graphs return more than a runner reads are asked
    themselves."""
    if graph["outputs"] == ["inputs_embeds"]:
        return {"inputs_embeds": model.get_input_embeddings()(flat["input_ids"])}
    if graph["outputs"] == ["last_hidden_state"] and component.name == "encoder":
        return {"last_hidden_state": model.get_encoder()(**flat, return_dict=True).last_hidden_state}
    single = {name: value[:1] if isinstance(value, torch.Tensor) and not component.given else value for name, value in inputs.items()}
    found = named_leaves(component.run(model, model.forward, single))
    names = {identifier(name): name for name in found}
    return {name: found[names.get(name, name)] for name in graph["outputs"]}


def _fits(flat: Mapping[str, torch.Tensor], graph: Mapping[str, Any]) -> bool:
    return all(
        all(size <= most for size, most in zip(tensor.shape, largest, strict=True))
        for tensor, largest in zip(flat.values(), graph["largest"], strict=True)
        if largest
    )


# ---- decoders with their caches inside -------------------------------------------------------------------------------


def _decoder_calls(
    model: torch.nn.Module, component: Component, components: Mapping[str, Component], graph: Mapping[str, Any],
    limits: tuple[int, ...],
) -> Iterator[ExpectedCall]:  # fmt: skip
    longest = graph["largest"][0][1]
    total = longest if longest > 1 else 24
    make = _texts(model, components, graph)
    for number, cuts in enumerate(scripts(total, longest, limits)):
        text = make(number, cuts[-1])
        yield from _pieces(component, graph, text, cuts)
    if graph["inputs"][0] == "inputs_embeds":
        text = _with_media(model, components)
        length = text.given.shape[1]
        if length <= total:
            yield from _pieces(component, graph, text, [length] if longest > 1 else list(range(1, length + 1)))


def scripts(total: int, longest: int, limits: tuple[int, ...]) -> Iterator[list[int]]:
    """Where the pieces of each text end. The first text is a prompt and single tokens, the second comes in pieces and must not
    see the first; then both sides of each limit, and the end of the cache."""
    scripts = [[9, 10, 11, 12], [3, 7, 8, 10]]
    for limit in limits:
        scripts += [[limit + 2, limit + 3], [limit - 1, limit, limit + 1, limit + 3]]
    if total <= _LONGEST:
        scripts.append([total - 1, total])
    for cuts in scripts:
        cuts = list(dict.fromkeys(min(cut, total) for cut in cuts if cut > 0))
        yield cuts if longest > 1 else list(range(1, cuts[-1] + 1))


def _pieces(component: Component, graph: Mapping[str, Any], text: Text, cuts: list[int]) -> Iterator[ExpectedCall]:
    with torch.no_grad():
        logits = text.logits(cuts)
    given = text.given
    if given.dim() == 3 and graph["largest"][0][-1] == given.shape[-1] + 1:
        given = _typed(given, torch.zeros(given.shape[:2]) if text.media is None else text.media)
    first = 0
    for cut in cuts:
        inputs = {graph["inputs"][0]: given[:, first:cut].contiguous(), **text.constant,
                  _POSITIONS: torch.arange(first, cut)}  # fmt: skip
        inputs = {name: inputs[name] for name in graph["inputs"]}
        shape = f"{cut - first} on {first}{text.what}"
        yield ExpectedCall(component.name, "prompt", shape, inputs, {"logits": logits[:, first:cut]}, partial=True)
        first = cut


def _texts(model: torch.nn.Module, components: Mapping[str, Component], graph: Mapping[str, Any]) -> Callable[[int, int], Text]:
    def make(number: int, length: int) -> Text:
        ids = random_ids(model, length, seed=100 + number)
        if "encoder_hidden_states" in graph["inputs"]:
            return _after_an_encoder(model, components["encoder"], number, ids)
        given = model.get_input_embeddings()(ids).detach() if graph["inputs"][0] == "inputs_embeds" else ids
        return Text("", given, lambda cuts: text_logits(model, ids, cuts))

    return make


def text_logits(model: torch.nn.Module, ids: torch.Tensor, cuts: list[int]) -> torch.Tensor:
    """Of all tokens at once. Rotary embeddings that depend on the length keep what they had when a token came, so that such
    models are asked piece by piece."""
    forget_lengths(model)
    flags = call_flags(model.forward, return_dict=True)
    cache = full_length_cache(model)
    if cache is None or all(limit >= ids.shape[1] for limit in rotary_limits(model)):
        return model(input_ids=ids, **flags).logits
    found, first = [], 0
    for cut in cuts:
        found.append(model(input_ids=ids[:, first:cut], past_key_values=cache, use_cache=True, **flags).logits)
        first = cut
    return torch.cat(found, dim=1)


def _after_an_encoder(model: torch.nn.Module, encoder: Component, number: int, ids: torch.Tensor) -> Text:
    read = encoder.inputs(model, Shape(1, 9 + 5 * (number % 2), 1, 0))
    read = {name: value[:1] for name, value in read.items() if isinstance(value, torch.Tensor) and name != "attention_mask"}
    with torch.no_grad():
        states = model.get_encoder()(**read, return_dict=True).last_hidden_state

    def logits(cuts: list[int]) -> torch.Tensor:
        return model(**read, decoder_input_ids=ids, **call_flags(model.forward, return_dict=True)).logits

    length = "x".join(map(str, states.shape[1:2]))
    return Text(f" after {length} encoded", ids, logits, constant={"encoder_hidden_states": states})


def _with_media(model: torch.nn.Module, components: Mapping[str, Component]) -> Text:
    """A prompt with a picture or a sound: its embeddings have what the encoder makes in place of the marks, as runners
    put it there; eager is given the picture."""
    from ..capture.twin import Sizes, sample_inputs

    inputs = to_device(sample_inputs(model, Sizes(batch=1, sequence=9)), model)
    ids = inputs["input_ids"]
    embeddings = model.get_input_embeddings()(ids).detach().clone()
    media = torch.zeros_like(ids)
    for name, names in (("image_encoder", ("image_token_id", "image_token_index")), ("audio_encoder", ("audio_token_id", "audio_token_index"))):
        if name not in components:
            continue
        mark = next((value for each in names if (value := getattr(model.config, each, None)) is not None), None)
        made = components[name].inputs(model, Shape(1, 9, 0, 0))
        given = {key: inputs.get(key, value) for key, value in made.items()}
        with torch.no_grad():
            features = next(iter(named_leaves(components[name].run(model, model.forward, given)).values()))
        places = ids == mark
        media[places] = 1
        if int(places.sum()) != features.numel() // features.shape[-1]:
            raise ValueError(f"the prompt has {int(places.sum())} places for {features.numel() // features.shape[-1]} features")
        embeddings[places] = features.reshape(-1, features.shape[-1]).to(embeddings.dtype)

    def logits(cuts: list[int]) -> torch.Tensor:
        return model(**inputs, **call_flags(model.forward, use_cache=False, return_dict=True)).logits

    return Text(", a prompt with media", embeddings, logits, media)
