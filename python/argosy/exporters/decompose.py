"""Splits a generative model into parts that are exported by themselves, each with inputs that it really got."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import torch

from ..capture.caches import full_length_cache
from ..capture.keeping import unchanged
from ..errors import ExportError
from ..observer import InputObserver
from ..observer.calls import copy_value

Components = dict[str, tuple[torch.nn.Module, dict[str, Any]]]

#: Where models keep the layer between an encoder and the language model. No method of transformers tells it.
PROJECTOR_NAMES = ("multi_modal_projector", "connector", "embed_vision", "embed_audio")
#: For versions whose get_encoder knows no modality.
_ENCODER_NAMES = {
    "image": ("vision_tower", "visual", "vision_model", "vision_encoder", "image_tower"),
    "audio": ("audio_tower", "audio_encoder", "speech_encoder"),
}
#: The argument by which generate() hands on what encoders gave.
_ENCODED = "mm_encoder_outputs"
#: Hints of generate() that are no inputs of a graph.
_GENERATION_HINTS = ("logits_to_keep", "num_logits_to_keep", "return_dict")


class SampleInputs(dict[str, Any]):
    """Arguments of a component. A model writes into the cache that it is given, so each look at one gives a copy: the same
    inputs can be run, exported and run again."""

    def __getitem__(self, name: str) -> Any:
        value = super().__getitem__(name)
        return value if isinstance(value, torch.Tensor) else copy_value(value)

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def items(self) -> Any:
        return [(name, self[name]) for name in self]

    def values(self) -> Any:
        return [self[name] for name in self]

    def __iter__(
        self,
    ) -> Iterator[str]:  # with one of its own, also ``**inputs`` and ``dict(inputs)`` ask for each item
        return super().__iter__()


def decompose_prefill_decode(
    model: torch.nn.Module, inputs: Mapping[str, Any], generation_config: Any = None
) -> Components:
    """Runs ``model.generate(**inputs)`` for two tokens and gives the arguments of both calls of forward.

    ``{"prefill": (model, …), "decode": (model, …)}``: the first takes the prompt, the second one token and a cache. A
    padded batch in `inputs` keeps the attention mask among the arguments; generate may drop one that masks nothing.
    """
    (prefill, decode), _ = _observe_generate(model, inputs, generation_config, {})
    return {"prefill": (model, SampleInputs(prefill)), "decode": (model, SampleInputs(decode))}


def _observe_generate(
    model: torch.nn.Module, inputs: Mapping[str, Any], generation_config: Any, parts: Mapping[str, torch.nn.Module]
) -> tuple[list[dict[str, Any]], Components]:
    """The arguments of the two calls of forward when two tokens are generated, and of each part's first call."""
    settings = copy.deepcopy(generation_config if generation_config is not None else getattr(model, "generation_config", None))
    if settings is None:
        raise ExportError(
            f"{type(model).__name__} generates nothing: it has no generation_config",
            code="invalid-input",
            hint="use export for a model of one call; models that generate have a head, such as AutoModelForCausalLM's",
        )
    settings.max_new_tokens = settings.min_new_tokens = 2
    settings.max_length = None
    observer = InputObserver()
    observers = {name: InputObserver() for name in parts}
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(unchanged(model))
        stack.enter_context(observer(model, store_n_calls=2))
        for name, part in parts.items():
            stack.enter_context(observers[name](part, store_n_calls=1))
        try:
            model.generate(**copy_value(dict(inputs)), **_without_windows(model, inputs, settings), generation_config=settings)
        except Exception as error:
            raise ExportError(
                f"{type(model).__name__}.generate failed: {error}",
                code="invalid-input",
                hint=f"it was given {', '.join(inputs)}; check that model.generate(**inputs) runs",
            ) from error
    if len(observer) < 2:
        raise ExportError(
            f"{type(model).__name__}.generate called forward {len(observer)} times for two tokens",
            code="invalid-input",
            hint="a model that generates by inner modules has to be exported by these",
        )
    stages = [_without_hints(call.arguments) for call in observer.calls]
    stages[0] = _with_media(model, stages[0], inputs)
    return stages, _called(parts, observers)


def _without_windows(model: torch.nn.Module, inputs: Mapping[str, Any], settings: Any) -> dict[str, Any]:
    """A cache whose layers keep every token, for a model whose own would forget those before a window: such a cache counts its
    tokens in a number, which a graph would have as it was in the sample. The window is in the mask, too."""
    if "past_key_values" in inputs or getattr(settings, "cache_implementation", None) is not None or not hasattr(model, "config"):
        return {}
    cache = full_length_cache(model, only_windows=True)
    return {} if cache is None else {"past_key_values": cache}


def _with_media(model: torch.nn.Module, prefill: dict[str, Any], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """generate() may run the encoders first and pass on what they gave; a graph of forward takes the media itself."""
    if prefill.pop(_ENCODED, None) is None:
        return prefill
    parameters = inspect.signature(model.forward).parameters
    media = {name: copy_value(value) for name, value in inputs.items() if name in parameters and name not in prefill}
    return {**prefill, **media}


def _called(parts: Mapping[str, torch.nn.Module], observers: Mapping[str, InputObserver]) -> Components:
    return {
        name: (parts[name], SampleInputs(_without_hints(observer.calls[0].arguments)))
        for name, observer in observers.items()
        if observer.calls
    }


def decompose_multimodal(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Components:
    """Runs ``model(**inputs)`` once and gives the arguments of each sub-module: encoders, projector, language model, head.

    Sub-modules that were not called are left out. The merge of token embeddings and encoder outputs is between them and
    part of none. ValueError for a model without an encoder of images or audio and a language model.
    """
    parts = find_submodules(model)
    if not parts:
        raise ValueError(
            f"{type(model).__name__} has no image or audio encoder with a language model: it is exported as a whole"
        )
    observers = {name: InputObserver() for name in parts}
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(unchanged(model))
        for name, part in parts.items():
            stack.enter_context(observers[name](part, store_n_calls=1))
        try:
            model(**copy_value(dict(inputs)))
        except Exception as error:
            raise ExportError(
                f"{type(model).__name__} failed: {error}",
                code="invalid-input",
                hint=f"it was given {', '.join(inputs)}; check that model(**inputs) runs",
            ) from error
    return _called(parts, observers)


def decompose_for_generation(
    model: torch.nn.Module, inputs: Mapping[str, Any], generation_config: Any = None
) -> Components:
    """The components of a generative model with their inputs; `inputs` are those of ``model.generate``.

    ``prefill`` and ``decode``; for a multimodal model ``decode`` and the sub-modules of its prefill.
    """
    parts = find_submodules(model)
    (prefill, decode), components = _observe_generate(model, inputs, generation_config, parts)
    if not parts:
        return {"prefill": (model, SampleInputs(prefill)), "decode": (model, SampleInputs(decode))}
    return {**components, "decode": (model, SampleInputs(decode))}


def is_multimodal(model: torch.nn.Module) -> bool:
    """Whether the model has an encoder of images or audio and a language model."""
    return bool(find_submodules(model))


def find_submodules(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    """The sub-modules of a multimodal model by component name; none for any other model."""
    if not hasattr(model, "get_decoder"):
        return {}
    encoders = {}
    for modality in ("image", "audio"):
        encoder = _encoder(model, modality)
        if encoder is not None and encoder is not model:
            encoders[f"{modality}_encoder"] = encoder
    decoder = model.get_decoder()
    if not encoders or decoder is None or decoder is model or any(decoder is part for part in encoders.values()):
        return {}
    roots = [model, getattr(model, "base_model", model)]
    projectors: dict[str, torch.nn.Module] = {}
    for name in PROJECTOR_NAMES:
        module = next(
            (getattr(root, name) for root in roots if isinstance(getattr(root, name, None), torch.nn.Module)), None
        )
        if module is not None:
            projectors[name] = module
    if len(projectors) == 1:
        projectors = {"multi_modal_projector": next(iter(projectors.values()))}
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    heads = {"lm_head": head} if isinstance(head, torch.nn.Module) else {}
    return {**encoders, **projectors, "language_model": decoder, **heads}


def _encoder(model: torch.nn.Module, modality: str) -> torch.nn.Module | None:
    try:
        return model.get_encoder(modality=modality)
    except (AttributeError, TypeError):
        for root in (model, getattr(model, "base_model", model)):
            for name in _ENCODER_NAMES[modality]:
                if isinstance(getattr(root, name, None), torch.nn.Module):
                    return getattr(root, name)
    return None


def _without_hints(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in arguments.items() if name not in _GENERATION_HINTS}
