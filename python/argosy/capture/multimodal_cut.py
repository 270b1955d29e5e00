"""Running a multimodal model up to its language model, with the encoders watched or replaced.

What lies between encoders and language model (the merge of features with the embeddings of tokens, position ids, masks)
is code of the outer model's ``forward``. It is reached by calling this forward: encoders are cut out by replacing
``get_<modality>_features``, the language model by ending the call where it begins.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from .multimodal_geometry import observed_geometry
from .multimodal_packing import observed_packing
from .swap import bound_arguments, Reached, replaced, run_until_reached
from .patches.vision import without_checks
from .twin.placeholders import everything_counts

Inputs = dict[str, Any]

#: Methods that give the features of a modality, and what each modality is called.
_FEATURES = re.compile(r"get_(image|video|audio|speech)_features$")


def language_model(model: torch.nn.Module) -> torch.nn.Module:
    """The part that receives merged embeddings; of encoder-decoder models, the encoder of text."""
    found = model.get_encoder() if model.config.is_encoder_decoder else model.get_decoder()
    if found is not None and found is not model:
        return found
    for owner in (model, model.base_model):
        for name in ("language_model", "text_model", "decoder"):
            if isinstance(getattr(owner, name, None), torch.nn.Module):
                return getattr(owner, name)
    raise LookupError(f"{type(model).__name__} has no language model of its own")


@contextlib.contextmanager
def cut_at_language_model(model: torch.nn.Module) -> Iterator[None]:
    """A call of ``model`` ends where the language model begins, with the arguments that it was given."""
    part = language_model(model)
    original = part.forward

    def stop(*args: Any, **kwargs: Any) -> None:
        raise Reached(bound_arguments(original, args, kwargs))

    with replaced(part, "forward", stop):
        yield


def feature_methods(model: torch.nn.Module) -> list[tuple[torch.nn.Module, str, str]]:
    """Owner, name and modality of every ``get_<modality>_features`` outside the encoders."""
    owners = {id(owner): owner for owner in (model, model.base_model, getattr(model, "model", model))}
    found = []
    for owner in owners.values():
        for name in dir(type(owner)):
            if match := _FEATURES.match(name):
                found.append((owner, name, match[1]))
    return found


class Watched:
    """Stands for an encoder's output and tells which of its fields are read."""

    def __init__(self, give: Callable[[Any], Any]) -> None:
        object.__setattr__(self, "_give", give)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self._give(name)

    def __getitem__(self, key: Any) -> Any:
        return self._give(key)

    def get(self, key: Any, default: Any = None) -> Any:
        return self._give(key)


@dataclass
class Form:
    """How flat tensors become again what the merge reads off an encoder's result."""

    #: names of the flat tensors
    names: list[str]
    #: a list with one entry a layer
    layered: bool
    #: for each flat tensor: number of dims and the container that held it
    parts: list[tuple[int, type | None]]

    def value(self, fields: dict[str, torch.Tensor]) -> Any:
        values = [_unflatten(fields[name], part) for name, part in zip(self.names, self.parts, strict=True)]
        return values if self.layered else values[0]


@dataclass
class Recording:
    """One run of a model up to its language model."""

    #: arguments of each modality's feature method
    calls: dict[str, Inputs] = field(default_factory=dict)
    #: owner and name of the method
    methods: dict[str, tuple[torch.nn.Module, str]] = field(default_factory=dict)
    #: by modality and by what was read off the result (None: the result itself)
    forms: dict[str, dict[Any, Form]] = field(default_factory=dict)
    #: flat features by name: [tokens, width]
    fields: dict[str, torch.Tensor] = field(default_factory=dict)
    #: what functions of grids returned on the way, by modality
    geometry: dict[str, dict[str, torch.Tensor]] = field(default_factory=dict)
    #: how features were packed, by modality
    packing: dict[str, Any] = field(default_factory=dict)
    #: what the language model was given
    received: Inputs = field(default_factory=dict)

    def keep(self, modality: str, key: Any, value: Any) -> None:
        main = key in (None, 0, "pooler_output")
        base = f"{modality}_features" if main else f"{modality}_{key}"
        layered = not main and isinstance(value, (list, tuple))
        form = Form([], layered, [])
        for i, part in enumerate(value if layered else [value]):
            name = f"{base}.{i}" if layered else base
            self.fields[name], how = _flatten(part)
            form.names.append(name)
            form.parts.append(how)
        self.forms.setdefault(modality, {})[key] = form


def _is_features(value: Any) -> bool:
    """Whether ``value`` can be what a merge reads: other results of encoders are only handed on."""
    if type(value) in (list, tuple):
        return bool(value) and all(_is_features(part) for part in value)
    return isinstance(value, torch.Tensor) and value.dim() >= 2


def _flatten(value: Any) -> tuple[torch.Tensor, tuple[int, type | None]]:
    if isinstance(value, torch.Tensor) and value.dtype == torch.bool:  # tells which rows count
        return value.reshape(-1), (value.dim() + 1, None)
    if isinstance(value, torch.Tensor):
        return value.reshape(-1, value.shape[-1]), (value.dim(), None)
    if isinstance(value, (list, tuple)) and value and all(isinstance(part, torch.Tensor) for part in value):
        flat = torch.cat([part.reshape(-1, part.shape[-1]) for part in value])
        return flat, (value[0].dim(), type(value))
    raise TypeError(f"features of type {type(value).__name__}")


def _unflatten(flat: torch.Tensor, how: tuple[int, type | None]) -> Any:
    dims, container = how
    value = flat.reshape([1] * (dims - 2) + list(flat.shape)) if dims > 2 else flat
    return value if container is None else container([value])


def collect(recording: Recording, modality: str, result: Any) -> dict[str, torch.Tensor]:
    """The flat features of ``result``, as ``recording`` saw them read."""
    found = Recording()
    for key in recording.forms[modality]:
        found.keep(modality, key, result if key is None else _read(result, key))
    return found.fields


def _read(result: Any, key: Any) -> Any:
    return result[key] if isinstance(key, int) else getattr(result, key)


def record(model: torch.nn.Module, inputs: Inputs) -> Recording:
    """Runs ``model`` on ``inputs`` up to its language model."""
    recording = Recording()
    depth = [0]
    device = next(model.parameters()).device

    def watched(owner: torch.nn.Module, name: str, modality: str) -> Callable:
        original = getattr(owner, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            found = recording.geometry.setdefault(modality, {})
            depth[0] += 1
            try:
                with contextlib.ExitStack() as watch:
                    if depth[0] == 1:
                        watch.enter_context(observed_geometry(owner, found.__setitem__, device))
                        watch.enter_context(
                            observed_packing(owner, lambda seen: recording.packing.update({modality: seen}))
                        )
                    result = original(*args, **kwargs)
            finally:
                depth[0] -= 1
            if depth[0]:  # called by another of these methods, which is the one that the merge sees
                return result
            recording.calls[modality] = bound_arguments(original, args, kwargs)
            recording.methods[modality] = (owner, name)
            if isinstance(result, torch.Tensor) or type(result) in (list, tuple):
                recording.keep(modality, None, result)
                return result
            return Watched(lambda key: note(modality, key, result))

        return call

    def note(modality: str, key: Any, result: Any) -> Any:
        value = _read(result, key)
        if _is_features(value):
            recording.keep(modality, key, value)
        return value

    with contextlib.ExitStack() as stack, torch.no_grad():
        stack.enter_context(everything_counts())
        if device.type == "meta":  # no values to compare the number of placeholders by
            stack.enter_context(without_checks())
        stack.enter_context(cut_at_language_model(model))
        for owner, name, modality in feature_methods(model):
            stack.enter_context(replaced(owner, name, watched(owner, name, modality)))
        recording.received = run_until_reached(model, **inputs)
    return recording


def merge(model: torch.nn.Module, forward: Callable, forms: dict[str, dict[Any, Form]], inputs: Inputs,
          fields: dict[str, torch.Tensor]) -> Inputs:  # fmt: skip
    """What the language model receives when the encoders' features are ``fields``."""

    def stand_in(modality: str) -> Callable:
        known = forms[modality]
        if None in known:
            return lambda *args, **kwargs: known[None].value(fields)
        output = Watched(lambda key: known[key].value(fields) if key in known else None)
        return lambda *args, **kwargs: output

    with contextlib.ExitStack() as stack:
        stack.enter_context(cut_at_language_model(model))
        for owner, name, modality in feature_methods(model):
            if modality in forms:
                stack.enter_context(replaced(owner, name, stand_in(modality)))
        return run_until_reached(forward, **inputs)


def tensors_received(received: Inputs) -> dict[str, Any]:
    """What carries values to the language model: no flags, no caches, nothing that is absent."""
    from ..structures import named_leaves

    skipped = ("past_key_values", "labels", "use_cache", "return_dict", "cache_position")
    return {name: value for name, value in received.items()
            if name not in skipped and value is not None and named_leaves({name: value})}  # fmt: skip
