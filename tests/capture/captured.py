"""A capture of a twin, written, read back and compared, as the tests of captures need it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from argosy.capture.check import Comparison, compare, edge_shapes
from argosy.capture.components import Shape
from argosy.capture.reader import ReadGraph, read_capture
from argosy.capture.session import Session, chunk_sizes, open_session, trace_session, write_session
from argosy.capture.twin import shrink


def twin_config(model_type: str, **changes: Any) -> Any:
    """The configuration of a small model of a type."""
    from transformers import CONFIG_MAPPING

    return shrink(CONFIG_MAPPING[model_type](**changes))


def capture(config: Any, folder: Path) -> tuple[Session, dict[str, ReadGraph]]:
    session = open_session(config)
    trace_session(session)
    path = folder / "model.capture"
    write_session(session, path, config.to_dict())
    return session, read_capture(path, session.twin.state_dict())


def differences(session: Session, graphs: dict[str, ReadGraph], shapes: list[Shape] | None = None) -> list[Comparison]:
    """What the check finds wrong, at ``shapes`` or at every edge shape, both sides of each chunk among them."""
    limits = tuple(sorted({8, *chunk_sizes(session.config)}))
    found = []
    for component in session.components:
        for shape in shapes or edge_shapes(component, limits):
            result = compare(component, graphs[component.name], session.twin, shape)
            if not result.ok:
                found.append(result)
    return found


def writes_in_place(session: Session) -> bool:
    """Whether a graph copies to a tensor that exists already, such as a state among its inputs."""
    nodes = [node for traced in session.traced for node in traced.program.graph.nodes]
    return any(getattr(node.target, "_opname", "") == "copy_" for node in nodes)
