"""A capture of a twin, written, read back and compared, as the tests of captures need it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import argosy

from argosy.check.captures import Comparison, compare, edge_shapes
from argosy.capture.components import Shape
from argosy.capture.configuration import canonical
from argosy.capture.reader import ReadGraph, read_capture
from argosy.capture.session import Session, chunk_sizes, open_session, trace_session, write_session
from argosy.capture.twin import shrink
from sweeps.configurations import configuration


def twin_config(model_type: str, **changes: Any) -> Any:
    """The configuration of a small model of a type."""
    return shrink(configuration(model_type, **changes))


def capture(config: Any, folder: Path, shape: str | None = None) -> tuple[Session, dict[str, ReadGraph]]:
    session = open_session(config, shape=shape)
    trace_session(session)
    path = folder / "model.capture"
    write_session(session, path, canonical(config.to_dict()))
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


def writes_in_place(session: Session) -> list[str]:
    """The nodes that write to an input or a weight of their graph, also through views of it."""
    found = []
    for traced in session.traced:
        for node in traced.program.graph.nodes:
            if _mutates(node) and _root(node).op == "placeholder":
                found.append(node.name)
    return found


def _mutates(node: Any) -> bool:
    schema = getattr(node.target, "_schema", None)
    return bool(
        schema and schema.arguments and schema.arguments[0].alias_info and schema.arguments[0].alias_info.is_write
    )


def _root(node: Any) -> Any:
    """The node whose memory ``node`` is a view of."""
    while node.op == "call_function" and node.args and hasattr(node.args[0], "op"):
        schema = getattr(node.target, "_schema", None)
        if not (schema and schema.arguments[0].alias_info):
            break
        node = node.args[0]
    return node


def run_python(*arguments: str) -> str:
    """What a Python process of its own prints. It has the package from where this one has it, installed or not."""
    environment = {**os.environ, "PYTHONPATH": str(Path(argosy.__file__).parents[1])}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout
