"""Compares a capture with the eager model, component by component, at shapes other than the traced one."""

from __future__ import annotations

from dataclasses import dataclass, replace

import torch

from .calls import error_line, expected_call
from ..compare import difference
from ..capture.components import Component, Shape
from ..capture.conditions import all_hold
from ..capture.reader import ReadGraph
from ..capture.trace import Traced

TOLERANCE = 1e-5
#: How far apart a step on a past and all tokens at once may be in eager itself, by rounding alone.
_ROUNDING = 1e-4


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
    """Batch 1 and more, one token and many, past 0 and many, left padding, both sides of each of ``limits`` (a window, a
    chunk, the original length of a scaled rotary embedding), and what the component asks for itself."""
    if component.given:
        return list(component.shapes)
    if component.cache is None:
        shapes = [Shape(2, 19, 7, 3), Shape(1, 1, 1, 0), Shape(3, 24, 5, 4, media=1), Shape(1, 13, 1, 0, media=1)]
        shapes += [Shape(2, length, 7, 0) for limit in limits for length in (limit, limit + 1)]
        return [*shapes, *component.shapes]
    shapes = [Shape(2, 19, 23, 3), Shape(1, 1, 0, 0), Shape(1, 6, 0, 0), Shape(3, 1, 9, 2), Shape(1, 1, 20, 0),
              Shape(3, 4, 20, 5), Shape(2, 20, 0, 3)]  # fmt: skip
    for limit in limits:
        shapes += [Shape(2, 1, limit - 1, 0), Shape(2, 1, limit, 0), Shape(1, limit + 3, 0, 0)]
    return [*shapes, *component.shapes]


def within(traced: Traced, shapes: list[Shape]) -> list[Shape]:
    """Those of ``shapes`` that the graph is right at, by the guards that were kept."""
    conditions = [guard.condition for guard in traced.guards]
    return [shape for shape in shapes if all_hold(conditions, traced.component.symbols(shape))]


def compare(component: Component, graph: ReadGraph, model: torch.nn.Module, shape: Shape) -> Comparison:
    """``model`` is the twin whose weights ``graph`` has."""
    try:
        call = expected_call(component, model, shape)
        given = graph(call.inputs)
        found = difference(call.outputs, given, ignored=call.ignored)
        if found.abs > TOLERANCE and component.reference is not None:
            # The reference is all tokens at once. Where eager's own step differs from it by rounding, that step decides.
            step = expected_call(replace(component, reference=None), model, shape)
            if difference(call.outputs, step.outputs, ignored=call.ignored).abs <= _ROUNDING:
                found = difference(step.outputs, given, ignored=call.ignored)
    except Exception as error:  # noqa: BLE001 - whatever fails is what the table shows
        return Comparison(component.name, shape, float("inf"), error=error_line(error))
    return Comparison(component.name, shape, found.abs, found.worst, found.error)


