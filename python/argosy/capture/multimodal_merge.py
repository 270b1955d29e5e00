"""The merge of modalities as a component: tokens and features to what the language model receives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch

from .components import Component, Inputs, Shape, parameters_of
from .multimodal_cut import Recording, merge, tensors_received
from .multimodal_features import RecordAt
from ..structures import flatten, named_leaves


def embedding_component(twin: torch.nn.Module, recording: Recording, outputs: list[str], samples: Inputs,
                        record_at: RecordAt, sample_at: Callable, symbols: Callable) -> Component:  # fmt: skip
    """``embedding``: ``input_ids`` and features to ``outputs``, arguments of the language model. ``recording`` is a run of
    ``twin`` on ``samples``."""
    forms = recording.forms
    needed, dummies = needed_inputs(twin, recording, outputs, samples)

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        shape = shape_for(model, shape)
        given = sample_at(model, shape)
        made = record_at(model, shape)
        fields = {name: made.fields.get(name, tensor[:0]) for name, tensor in recording.fields.items()}
        return {**{name: given[name] for name in needed if name in given}, **fields}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .patches.vision import merge_patches

        fields = {name: inputs[name] for name in recording.fields}
        given = {name: value for name, value in inputs.items() if name not in fields}
        with merge_patches():
            received = merge(model, forward, forms, {**given, **dummies}, fields)
        return {name: received[name] for name in outputs}

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        received = record_at(model, shape).received
        found = {name: received.get(name) for name in outputs}
        return {name: nothing_of(recording.received[name], received["inputs_embeds"]) if value is None else value
                for name, value in found.items()}  # fmt: skip

    # Text alone, and single tokens as a generated answer has them.
    alone = (Shape(2, 9, 0, 3, media=-1), Shape(1, 1, 0, 0, media=-1), Shape(3, 1, 0, 0, media=-1))
    return Component("embedding", inputs, run, reference, symbols, shapes=alone)


def shape_for(model: torch.nn.Module, shape: Shape) -> Shape:
    """``shape``, with one picture a row for a model without weights: a count of pictures that is read from values is one
    there, and new tokens have to have media among them to be traced with."""
    parameter = next(model.parameters())
    has_values = not parameter.is_meta and type(parameter.data) is torch.Tensor
    return shape if has_values else replace(shape, media=0)


def nothing_of(value: Any, embeddings: torch.Tensor) -> Any:
    """What the graph gives for ``value`` where there are no media: no rows of features, masks that are false."""
    leaves, structure = flatten(value)
    batch, sequence = embeddings.shape[:2]
    empty = [torch.zeros(batch, sequence, dtype=tensor.dtype) if tensor.dtype == torch.bool else tensor[:0]
             for _, tensor in leaves]  # fmt: skip
    return structure.rebuild(iter(empty))


def needed_inputs(
    model: torch.nn.Module, recording: Recording, outputs: list[str], samples: Inputs
) -> tuple[list, Inputs]:
    """Which of ``samples`` the merge reads, and stand-ins for those that only have to be there. What an input is good for
    is found by leaving it out; features that are read and make no difference are taken out of ``recording``."""
    wanted = named_leaves({name: recording.received[name] for name in outputs})
    given = dict(samples)
    dummies: Inputs = {}

    def enough(candidate: Inputs, forms: Any = None) -> bool:
        try:
            with torch.no_grad():
                received = merge(model, model.forward, forms or recording.forms, candidate, recording.fields)
            got = named_leaves({name: received[name] for name in outputs})
        except Exception:  # noqa: BLE001 - whatever goes wrong, it goes wrong without the input
            return False
        same = got.keys() == wanted.keys() and all(got[name].shape == wanted[name].shape for name in wanted)
        return same and all(torch.equal(got[name], wanted[name]) for name in wanted)

    for modality, forms in recording.forms.items():
        for key in [key for key in forms if len(forms) > 1]:
            rest = {name: form for name, form in forms.items() if name != key}
            if rest and enough(given, {**recording.forms, modality: rest}):
                for name in forms.pop(key).names:
                    recording.fields.pop(name)
    for name in sorted(samples, key=lambda name: name == "input_ids"):
        rest = {key: value for key, value in given.items() if key != name}
        if enough({**rest, **dummies}):
            given = rest
            continue
        token = torch.zeros(1)  # a model asks whether there are media at all
        if isinstance(samples[name], torch.Tensor) and enough({**rest, **dummies, name: token}):
            given, dummies[name] = rest, token
    return list(given), dummies


def extra_outputs(model: torch.nn.Module, recording: Recording, samples: Inputs) -> tuple[list[str], list[str]]:
    """Arguments of the language model, other than embeddings, that the outer model can't make again from embeddings and
    ``samples``: these the merge has to hand over. And those of them that the outer model has to be given, too."""
    from .multimodal_cut import cut_at_language_model
    from .swap import run_until_reached

    def made_of(given: Inputs) -> Inputs:
        with torch.no_grad(), cut_at_language_model(model):
            return tensors_received(run_until_reached(model, **given))

    received = tensors_received(recording.received)
    embeddings = received["inputs_embeds"]
    given = {**samples, "inputs_embeds": embeddings}
    along: list[str] = []
    try:
        again = made_of(given)
    except RuntimeError:  # it would find out by the embeddings which tokens they are of
        takes = parameters_of(model.forward)
        along = [name for name, value in received.items() if name in takes and name not in given
                 and isinstance(value, torch.Tensor) and value.shape[:2] == embeddings.shape[:2]]  # fmt: skip
        if not along:
            raise
        again = made_of({**given, **{name: received[name] for name in along}})
    others = [name for name in received if name not in ("inputs_embeds", *along) and not _same(received[name], again.get(name))]
    return [*along, *others], along


def _same(value: Any, other: Any) -> bool:
    first, second = named_leaves({"": value}), named_leaves({"": other} if other is not None else {})
    return first.keys() == second.keys() and all(
        first[name].shape == second[name].shape and torch.equal(first[name], second[name]) for name in first
    )
