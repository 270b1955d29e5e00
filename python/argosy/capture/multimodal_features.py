"""Encoders of images, video and audio as components: from what processors make to flat features, [tokens, width]."""

from __future__ import annotations

import contextlib
import inspect
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from .components import Component, Inputs, Shape, one_size
from .multimodal_cut import Recording, collect
from .swap import bound_arguments
from .multimodal_geometry import given_geometry, is_geometry, observed_geometry
from .multimodal_packing import crops_of, packed_rows
from .swap import Reached, replaced, run_until_reached
from .twin.placeholders import everything_counts

RecordAt = Callable[[torch.nn.Module, Shape], Recording]
#: Arguments of feature methods that are no data.
_FLAGS = ("return_dict", "use_cache", "output_attentions", "output_hidden_states")


def encoder_component(twin: torch.nn.Module, modality: str, recording: Recording, record_at: RecordAt,
                      sample_at: Callable) -> Component:  # fmt: skip
    """The encoder of ``modality`` with its projector, as ``recording`` (a run of ``twin``) saw it called. ``record_at``
    records a run of any instance of the model at a shape, on the inputs that ``sample_at`` makes."""
    owner, method = recording.methods[modality]
    path = _path_of(owner, twin)
    packing = recording.packing.get(modality)
    producers = find_producers(owner, method, recording, modality)
    geometry = [key for key in recording.calls[modality] if is_geometry(key)]
    # With results of functions of the grid given and the split by image left out, nothing reads the grid itself.
    unread = geometry if (recording.geometry.get(modality) or packing) and producers is not None else []

    def called(model: torch.nn.Module, shape: Shape) -> Recording:
        if next(model.parameters()).is_meta and producers is not None and packing is None:
            # The larger media, which have more than one of everything: a trace would take a single one for granted.
            given = sample_at(model, Shape(shape.batch, shape.sequence, media=1))
            return _record_call(model, given, modality, (path, method), producers)
        return record_at(model, shape)

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        made = called(model, shape)
        arguments = {key: value for key, value in _arguments(made, modality).items() if key not in unread}
        if packing is not None and producers is not None:
            how = made.packing[modality]
            arguments["pixel_values"] = crops_of(arguments["pixel_values"], how.counts)
            arguments["pack_index"] = how.index
        return {**arguments, **made.geometry.get(modality, {})}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .patches.vision import encoder_patches

        part = model.get_submodule(path)
        function = getattr(part, method)
        known = inspect.signature(function).parameters
        arguments = {key: value for key, value in inputs.items() if key in known}
        # Sizes are not read, but may be looped over.
        arguments.update({key: None if packing is None else [] for key in unread})
        values = {key: value for key, value in inputs.items() if key not in known}
        index = values.pop("pack_index", None)
        with encoder_patches(part), given_geometry(part, values):
            if producers is None:
                return collect(recording, modality, function(**arguments))
            found = _run_to_producers(part, function, arguments, producers)
        return {name: rows if index is None else packed_rows(part, rows, index) for name, rows in found.items()}

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        made = record_at(model, shape)
        return {name: made.fields[name] for form in recording.forms[modality].values() for name in form.names}

    def symbols(shape: Shape) -> dict[str, int]:
        return {"batch": shape.batch}

    def read(model: torch.nn.Module, shape: Shape) -> Inputs:
        return _arguments(called(model, shape), modality)

    def run_reading(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .patches.vision import encoder_patches

        part = model.get_submodule(path)
        with encoder_patches(part):
            if producers is None:
                return collect(recording, modality, getattr(part, method)(**inputs))
            return _run_to_producers(part, getattr(part, method), inputs, producers)

    found = Component(f"{modality}_encoder", inputs, run, reference, symbols)
    try:
        with torch.no_grad():
            run(twin, twin.forward, inputs(twin, Shape(padding=0)))
    except Exception:  # noqa: BLE001 - code of the model's own, which computes with grids, too
        unread = []
    whole = tuple(name for name, value in _arguments(recording, modality).items()
                  if isinstance(value, torch.Tensor) and not value.is_floating_point())  # fmt: skip
    if not whole or packing is not None:
        return found
    return replace(found, by_values=one_size(replace(found, inputs=read, run=run_reading), whole))


def _path_of(part: torch.nn.Module, model: torch.nn.Module) -> str:
    return next(path for path, module in model.named_modules() if module is part)


def _arguments(recording: Recording, modality: str) -> Inputs:
    call = recording.calls[modality]
    return {key: value for key, value in call.items() if value is not None and key not in _FLAGS}


# ---- the module behind which only splitting is left --------------------------------------------------------------------


Producers = dict[str, tuple[str, int]]


def find_producers(owner: torch.nn.Module, method: str, recording: Recording, modality: str) -> Producers | None:
    """For each flat feature the last module that returns it row for row and is called once, with the index of the output;
    None if a feature has no such module. Of features that are packed, what they are packed from. A trace that ends there has no splitting by image in it, which would fix the
    number of images."""
    names = [name for form in recording.forms[modality].values() for name in form.names]
    if modality in recording.packing and len(names) > 1:
        return None
    packed = recording.packing.get(modality)
    rows = {name: recording.fields[name] if packed is None else packed.rows for name in names}
    found: dict[str, list[tuple[str, int]]] = {name: [] for name in names}
    count: Counter = Counter()
    handles = []
    for path, module in owner.named_modules():

        def hook(module: torch.nn.Module, args: Any, result: Any, path: str = path) -> None:
            count[path] += 1
            for i, tensor in enumerate(_tensors(result)):
                for name in names:
                    if _same_rows(tensor, rows[name]):
                        found[name].append((path, i))

        handles.append(module.register_forward_hook(hook))
    try:
        with torch.no_grad():
            getattr(owner, method)(**_arguments(recording, modality))
    finally:
        for handle in handles:
            handle.remove()
    single = {name: [each for each in places if count[each[0]] == 1] for name, places in found.items()}
    return {name: places[-1] for name, places in single.items()} if all(single.values()) else None


def _same_rows(tensor: torch.Tensor, flat: torch.Tensor) -> bool:
    same_size = tensor.numel() == flat.numel() and tensor.shape[-1] == flat.shape[-1]
    return same_size and torch.equal(tensor.reshape(flat.shape), flat)


def _tensors(result: Any) -> list[torch.Tensor]:
    from ..structures import flatten

    leaves, _ = flatten({"result": dict(result) if isinstance(result, dict) else result})
    return [tensor for _, tensor in leaves if tensor.dim() >= 2]


def _run_to_producers(
    part: torch.nn.Module, function: Callable, arguments: Inputs, producers: Producers
) -> dict[str, Any]:
    got: dict[str, torch.Tensor] = {}

    def watched(path: str, original: Callable) -> Callable:
        def forward(*args: Any, **kwargs: Any) -> Any:
            result = original(*args, **kwargs)
            tensors = _tensors(result)
            for name, (place, i) in producers.items():
                if place == path:
                    got[name] = tensors[i].reshape(-1, tensors[i].shape[-1])
            if len(got) == len(producers):
                raise Reached({name: got[name] for name in producers})
            return result

        return forward

    with contextlib.ExitStack() as stack:
        for path in {place for place, _ in producers.values()}:
            module = part.get_submodule(path)
            stack.enter_context(replaced(module, "forward", watched(path, module.forward)))
        return run_until_reached(function, **arguments)


def _record_call(model: torch.nn.Module, given: Inputs, modality: str, place: tuple[str, str],
                 producers: Producers) -> Recording:  # fmt: skip
    """Records how a method that gives features is called, without what comes after the modules that make them, which may
    read values. ``place`` is the path of its owner, and its name."""
    part, name = model.get_submodule(place[0]), place[1]
    original = getattr(part, name)
    recording = Recording()

    def call(*args: Any, **kwargs: Any) -> None:
        recording.calls[modality] = bound_arguments(original, args, kwargs)
        found = recording.geometry.setdefault(modality, {})
        with observed_geometry(part, found.__setitem__, next(model.parameters()).device), everything_counts():
            _run_to_producers(part, original, recording.calls[modality], producers)
        raise Reached(recording)

    from .patches.vision import without_checks  # numbers of placeholders that only values tell

    with torch.no_grad(), replaced(part, name, call), without_checks():
        return run_until_reached(model, **given)
