"""Compares a capture with the eager model, component by component, at shapes other than the traced one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .components import Component, Shape
from .reader import ReadGraph
from .structures import identifier, named_leaves

TOLERANCE = 1e-5


@dataclass
class Comparison:
    """One component at one shape."""

    component: str
    shape: Shape
    max_abs: float
    #: the output that is farthest off
    worst: str = ""
    error: str = ""

    @property
    def ok(self) -> bool:
        return not self.error and self.max_abs <= TOLERANCE


def edge_shapes(component: Component, limits: tuple[int, ...] = ()) -> list[Shape]:
    """Batch 1 and more, one token and many, past 0 and many, left padding, and both sides of each of ``limits``
    (a window, a chunk, the original length of a scaled rotary embedding)."""
    if component.cache is None:
        shapes = [Shape(2, 19, 7, 3), Shape(1, 1, 1, 0), Shape(3, 24, 5, 4, media=1), Shape(1, 13, 1, 0, media=1)]
        shapes += [Shape(2, length, 7, 0) for limit in limits for length in (limit, limit + 1)]
        return [*shapes, *component.shapes]
    shapes = [Shape(2, 19, 23, 3), Shape(1, 1, 0, 0), Shape(1, 6, 0, 0), Shape(3, 1, 9, 2), Shape(1, 1, 20, 0),
              Shape(3, 4, 20, 5), Shape(2, 20, 0, 3)]  # fmt: skip
    for limit in limits:
        shapes += [Shape(2, 1, limit - 1, 0), Shape(2, 1, limit, 0), Shape(1, limit + 3, 0, 0)]
    return [*shapes, *component.shapes]


def compare(component: Component, graph: ReadGraph, model: torch.nn.Module, shape: Shape) -> Comparison:
    """``model`` is the twin whose weights ``graph`` has."""
    try:
        inputs = component.inputs(model, shape)
        if component.reference is not None:
            want = component.reference(model, shape)
        else:
            with torch.no_grad():
                want = component.run(model, model.forward, component.inputs(model, shape))
        got = graph({identifier(name): tensor for name, tensor in named_leaves(inputs).items()})
    except Exception as error:  # noqa: BLE001 - whatever fails is what the table shows
        first = next((line for line in str(error).splitlines() if line.strip()), "")
        return Comparison(component.name, shape, float("inf"), error=f"{type(error).__name__}: {first}"[:300])
    return _difference(component, shape, inputs, got, named_leaves(want))


def _difference(component: Component, shape: Shape, inputs: dict[str, Any], got: dict, want: dict) -> Comparison:
    result = Comparison(component.name, shape, 0.0)
    if missing := sorted(set(want) ^ set(got)):
        result.error = f"outputs differ: {missing[:4]}"
        return result
    for name, expected in want.items():
        actual = got[name]
        if tuple(actual.shape) != tuple(expected.shape):
            result.error = f"{name}: shape {tuple(actual.shape)}, eager has {tuple(expected.shape)}"
            return result
        difference = _max_abs(actual, expected, _padded(inputs, expected, shape))
        if not difference <= result.max_abs:
            result.max_abs, result.worst = difference, name
    return result


def _max_abs(actual: torch.Tensor, expected: torch.Tensor, ignored: torch.Tensor | None) -> float:
    if expected.numel() == 0:
        return 0.0
    kind = torch.complex128 if expected.is_complex() else torch.float64
    actual, expected = actual.to(kind), expected.to(kind)
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    difference = torch.where(same, torch.zeros((), dtype=torch.float64), (actual - expected).abs())
    if ignored is not None:
        difference = difference.masked_fill(ignored, 0.0)
    worst = difference.max().item()
    return worst if worst == worst else float("inf")  # a NaN on one side only


def _padded(inputs: dict[str, Any], tensor: torch.Tensor, shape: Shape) -> torch.Tensor | None:
    """Where ``tensor`` holds results of padded tokens, which no caller reads and kernels are free about."""
    mask = inputs.get("attention_mask")
    if not isinstance(mask, torch.Tensor) or mask.dim() != 2 or tensor.dim() < 2 or tensor.shape[0] != mask.shape[0]:
        return None
    if mask.bool().all():
        return None
    new = mask[:, -shape.sequence :]
    for candidate in (mask, new):
        for axis in range(1, tensor.dim()):
            if tensor.shape[axis] == candidate.shape[1]:
                view = [1] * tensor.dim()
                view[0], view[axis] = candidate.shape
                return (candidate == 0).reshape(view).expand_as(tensor)
    return None
