"""A twin captured with all its components, written, read back and compared with eager."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from argosy.check.captures import compare, edge_shapes, within
from argosy.capture.components import Component, Shape
from argosy.capture.configuration import canonical
from argosy.capture.reader import read_capture
from argosy.capture.session import open_session, shape_limits, trace_session, trace_shape, write_session
from .outcome import Report


def run(config: Any, report: Report) -> None:
    """`config` is that of the twin: the model that is traced is as small as the one that it is compared with."""
    report.step("find components")
    session = open_session(config)
    trace_session(session, report.step)
    report.step("write the capture")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "twin.capture"
        write_session(session, path, canonical(config.to_dict()))
        graphs = read_capture(path, session.twin.state_dict())
    components: dict[str, Any] = {}
    problems = []
    edges, passed, beyond = 0, 0, []
    limits = shape_limits(session)
    for component, traced in zip(session.components, session.traced, strict=True):
        report.step(f"check {component.name}")
        worst = 0.0
        for shape in (trace_shape(session.config), other_shape(component)):
            result = compare(component, graphs[component.name], session.twin, shape)
            worst = max(worst, result.max_abs)
            if not result.ok:
                text = result.error or f"{result.worst} is off by {result.max_abs:.2g}"
                problems.append(f"{component.name} at {shape}: {text}")
        for shape in within(traced, edge_shapes(component, limits)):
            result = compare(component, graphs[component.name], session.twin, shape)
            edges, passed = edges + 1, passed + result.ok
            if not result.ok:
                beyond.append(
                    f"{component.name} at {shape}: {result.error or f'{result.worst} is off by {result.max_abs:.2g}'}"
                )
        components[component.name] = {
            "nodes": len(traced.program.graph.nodes),
            "max_abs": worst if math.isfinite(worst) else None,
            "limits": [guard.condition for guard in traced.guards],
        }
    report.update(components=components, nodes=sum(part["nodes"] for part in components.values()))
    report.update(edges=edges, edges_ok=passed, edges_reason="; ".join(beyond[:2]))
    report.finish("wrong" if problems else "ok", "; ".join(problems))


def other_shape(component: Component) -> Shape:
    """Another batch, length, past and padding, and other media, than those that a trace uses."""
    return Shape(3, 24, 5, 4, media=1) if component.cache is None else Shape(3, 4, 20, 5, media=1)
