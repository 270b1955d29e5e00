"""Calls as ``generate`` and ``forward`` really make them, seen by the observer, as calls of components."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import torch

from ..capture.caches import full_length_cache
from ..capture.components import Component, call_flags
from ..structures import identifier, named_leaves
from ..observer import InputObserver
from ..observer.calls import Call, output_tensors
from .calls import ExpectedCall, padded_elements
from .interface import complete, fits, wired

logger = logging.getLogger(__name__)


def observed_calls(model: torch.nn.Module, components: list[Component], manifest: Mapping[str, Any]) -> list[ExpectedCall]:
    """What can be told from outside: the whole model's forward, an encoder's, and those of ``generate`` on a left-padded
    batch and on a single prompt. Components in between (media, embeddings) are compared at shapes of our choice only."""
    interfaces = {each["name"]: each for each in manifest["components"]}
    names = [component.name for component in components if component.name in interfaces]
    if names == ["model"]:
        return _of_forward(model, interfaces["model"])
    if names[-2:] == ["encoder", "decoder"] and len(names) == 2:
        return _of_encoder_and_decoder(model, components, interfaces, manifest["wiring"])
    if set(names) <= {"prefill", "decode"}:
        return _of_generate(model, interfaces)
    return []


def _prompts(model: torch.nn.Module) -> list[dict[str, Any]]:
    from ..capture.components import to_device
    from ..capture.twin import Sizes, sample_inputs

    return [to_device(sample_inputs(model, Sizes(batch=2, sequence=11, padding=3)), model),
            to_device(sample_inputs(model, Sizes(batch=1, sequence=5, padding=0), seed=1), model)]  # fmt: skip


def _of_forward(model: torch.nn.Module, interface: Mapping[str, Any]) -> list[ExpectedCall]:
    found = []
    for prompt in _prompts(model):
        observer = InputObserver()
        flags = call_flags(model.forward, use_cache=False, return_dict=True)  # an observed forward tells less
        try:
            with observer(model), torch.no_grad():
                model(**prompt, **flags)
        except Exception as error:  # noqa: BLE001 - such as models that take one row only
            logger.debug("forward of %s fails: %s", type(model).__name__, error)
        found += [_expected(call, "model", "forward", interface, {}) for call in observer.calls]
    return [each for each in found if each is not None]


def _generate(model: torch.nn.Module, prompt: dict[str, Any], new_tokens: int = 3) -> None:
    """Greedy, with a cache that forgets nothing, as graphs have it."""
    settings = {"max_new_tokens": new_tokens, "min_new_tokens": new_tokens, "do_sample": False, "num_beams": 1}
    with torch.no_grad():
        try:
            model.generate(**prompt, **settings, past_key_values=full_length_cache(model))
        except (TypeError, ValueError):  # it has a cache of its own
            model.generate(**prompt, **settings)


def _of_generate(model: torch.nn.Module, interfaces: Mapping[str, Any]) -> list[ExpectedCall]:
    found = []
    for prompt in _prompts(model):
        observer = InputObserver()
        prompt = {name: value for name, value in prompt.items() if name in ("input_ids", "attention_mask")}
        try:
            with observer(model):
                _generate(model, prompt)
        except Exception as error:  # noqa: BLE001 - generate runs code of the model's own
            logger.debug("generate of %s fails: %s", type(model).__name__, error)
        for index, call in enumerate(observer.calls):
            wanted = [name for name in interfaces if name == "decode" or index == 0]
            found += [_expected(call, name, f"generate {index}", interfaces[name], {}) for name in wanted]
    return [each for each in found if each is not None]


def _of_encoder_and_decoder(
    model: torch.nn.Module, components: list[Component], interfaces: Mapping[str, Any], wiring: list[dict[str, str]]
) -> list[ExpectedCall]:
    found = []
    encoder = next(component for component in components if component.name == "encoder")
    for prompt in _prompts(model):
        prompt = {name: value for name, value in prompt.items() if not name.startswith("decoder_")}
        inside, outside = InputObserver(), InputObserver()
        try:
            with inside(model.get_encoder(), store_n_calls=1), outside(model):
                _generate(model, prompt)
        except Exception as error:  # noqa: BLE001
            logger.debug("generate of %s fails: %s", type(model).__name__, error)
        if not inside.calls:
            continue
        # The decoder's first call fills the cross-attention cache, which its graph takes from the encoder's.
        call = inside.calls[0]
        given = {name: value for name, value in call.arguments.items() if isinstance(value, torch.Tensor)}
        with torch.no_grad():
            encoded = named_leaves(encoder.run(model, model.forward, given))
        found.append(_expected(call, "encoder", "generate 0", interfaces["encoder"], {}))
        fed = wired(wiring, "encoder", "decoder", encoded, interfaces["decoder"])
        for index, call in enumerate(outside.calls):
            found.append(_expected(call, "decoder", f"generate {index}", interfaces["decoder"], fed))
    return [each for each in found if each is not None]


def _expected(call: Call, component: str, origin: str, interface: Mapping[str, Any],
              fed: Mapping[str, torch.Tensor]) -> ExpectedCall | None:  # fmt: skip
    """None for a call that is not one of this graph."""
    given = {**fed, **{identifier(name): tensor for name, tensor in call.leaves.items()}}
    try:
        inputs = complete(interface, {item["name"]: given[item["name"]] for item in interface["inputs"] if item["name"] in given})
    except LookupError as error:
        logger.debug("a call that %s is not for: %s", component, error)
        return None
    if not fits(inputs, interface):
        return None
    names = {output["name"] for output in interface["outputs"]}
    argument = (interface.get("cache") or {}).get("argument")
    outputs = {}
    for name, tensor in output_tensors(call.outputs).items():
        head, dot, rest = name.partition(".")
        name = f"present{dot}{rest}" if head == argument else name
        if name in names:
            outputs[name] = tensor
    tokens = next((inputs[name] for name in ("input_ids", "decoder_input_ids") if name in inputs), None)
    sequence = tokens.shape[1] if tokens is not None else 0
    masks = {} if component == "decoder" else {name: padded_elements(inputs, tensor, sequence) for name, tensor in outputs.items()}
    return ExpectedCall(component, origin, _shape_text(inputs, tokens, interface), inputs, outputs,
                        {name: mask for name, mask in masks.items() if mask is not None}, call.seconds, partial=True)  # fmt: skip


def _shape_text(inputs: Mapping[str, torch.Tensor], tokens: torch.Tensor | None, interface: Mapping[str, Any]) -> str:
    """``2x11 on 0`` for tokens, else the shape of the first input."""
    shown = tokens if tokens is not None else next(iter(inputs.values()))
    text = "x".join(map(str, shown.shape))
    for item in interface["inputs"]:
        if "past_sequence" in item["dims"]:
            return f"{text} on {inputs[item['name']].shape[item['dims'].index('past_sequence')]}"
    return text
