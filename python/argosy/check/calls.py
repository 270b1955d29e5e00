"""Calls of components with what eager answers: at shapes of our choice, and as ``generate`` makes them."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..capture.components import Component, Inputs, Shape
from ..structures import identifier, named_leaves


@dataclass
class ExpectedCall:
    """One call of a component: flat inputs by the graph's names, and what eager returns by dotted name."""

    component: str
    #: what it is an instance of: "edge", "forward" or "generate"
    origin: str
    shape: str
    inputs: dict[str, torch.Tensor]
    outputs: dict[str, torch.Tensor]
    #: masks of elements that do not count, by output
    ignored: dict[str, torch.Tensor] = field(default_factory=dict)
    seconds: float = 0.0
    #: outputs of the graph that eager's call does not show are no mistake
    partial: bool = False
    #: how far eager itself is off by computing in its dtype, of the scale of its outputs; 0: not measured
    rounding: float = 0.0
    #: of a text: the id that comes next after each token; -1 after the last
    following: torch.Tensor | None = None


def as_exported(component: Component, model: torch.nn.Module, interface: Mapping[str, Any] | None) -> Component:
    """The component as its graph was traced: for calls of one size if that has no inputs but those."""
    if interface is None or component.by_values is None:
        return component
    names = named_leaves(component.by_values.inputs(model, Shape())).keys() - component.by_values.constants
    is_one_size = {item["name"] for item in interface["inputs"]} == {identifier(name) for name in names}
    return component.by_values if is_one_size else component


def expected_call(component: Component, model: torch.nn.Module, shape: Shape) -> ExpectedCall:
    """What ``model`` computes at ``shape``, by other means than the component where there are any: for a decoder by all
    tokens at once, since eager state-space layers get several tokens on a past wrong."""
    inputs = component.inputs(model, shape)
    flat = {identifier(name): tensor.detach().clone() for name, tensor in named_leaves(inputs).items()
            if name not in component.constants}  # fmt: skip
    given = inputs
    start = time.perf_counter()
    if component.reference is not None:
        want = component.reference(model, shape)
    else:
        given = component.inputs(model, shape)  # a cache is changed by the call
        start = time.perf_counter()
        with torch.no_grad():
            want = component.run(model, model.forward, given)
    seconds = time.perf_counter() - start
    outputs = named_leaves(want)
    masks = {name: padded_elements(inputs, tensor, shape.sequence) for name, tensor in outputs.items()}
    return ExpectedCall(
        component.name,
        "edge",
        shape_text(shape, component),
        flat,
        outputs,
        {name: mask for name, mask in masks.items() if mask is not None},
        seconds,
    )


def shape_text(shape: Shape, component: Component) -> str:
    """``2x19 on 23, 3 padded``."""
    if component.given:
        return f"given inputs {shape.media + 1}"
    text = f"{shape.batch}x{shape.sequence}"
    if component.cache is not None:
        text += f" on {shape.past}"
    if shape.padding:
        text += f", {shape.padding} padded"
    return text + {0: "", 1: ", other media", 2: ", media as processors make them", -1: ", no media"}.get(shape.media, "")


def padded_elements(inputs: Inputs, tensor: torch.Tensor, sequence: int) -> torch.Tensor | None:
    """Where ``tensor`` holds results of padded tokens, which no caller reads and kernels are free about."""
    mask = inputs.get("attention_mask")
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2 or tensor.dim() < 2 or tensor.shape[0] != mask.shape[0]:
        return None
    if mask.bool().all():
        return None
    new = mask[:, -sequence:]
    for candidate in (mask, new):
        for axis in range(1, tensor.dim()):
            if tensor.shape[axis] == candidate.shape[1]:
                view = [1] * tensor.dim()
                view[0], view[axis] = candidate.shape
                return (candidate == 0).reshape(view).expand_as(tensor)
    return None


def error_line(error: BaseException) -> str:
    """An exception in one line."""
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:300]
