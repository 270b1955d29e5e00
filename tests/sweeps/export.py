"""A twin exported by the command-line program and run in the engine, by itself: without transformers and argosy."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from argosy.check.twin import TwinRequest, check_twin
from argosy.check.rows import Row
from .outcome import Report


#: The step of a check that begins when everything is captured.
_CAPTURED = "exporting the twin"


def run(
    config: Any, twin: Any, engine: str, program: str, report: Report, options: tuple[str, ...] = ()
) -> None:
    """`config` is the family's own; the check shrinks it, to a twin such as `twin`."""
    from argosy.capture.finding import find_components

    report.step("find components")
    report.update(expected=[component.name for component in find_components(twin)])

    def step(name: str) -> None:
        if name == _CAPTURED:
            report.update(captured=True)
        report.step(name)

    with tempfile.TemporaryDirectory() as folder:
        config.to_json_file(Path(folder) / "config.json", use_diff=False)
        checked = check_twin(TwinRequest(Path(folder), engine, program=program, options=options), step)
    components: dict[str, dict[str, Any]] = {}
    for row in checked.rows:
        part = components.setdefault(
            row.component, {"calls": 0, "right": 0, "edges": 0, "edges_right": 0, "max_abs": 0.0}
        )
        part["calls"] += row.ok is not None
        part["right"] += row.ok is True
        part["edges"] += row.ok is not None and row.origin in ("edge", "open")
        part["edges_right"] += row.ok is True and row.origin == "edge"
        if row.difference is not None and not row.difference.error:
            part["max_abs"] = max(part["max_abs"], row.difference.abs)
    for part in components.values():
        part["max_abs"] = part["max_abs"] if math.isfinite(part["max_abs"]) else None
    tokens = [row.tokens for row in checked.rows if row.tokens]
    report.update(components=components, tokens=[sum(agree for agree, _ in tokens), sum(total for _, total in tokens)])
    report.finish(
        "ok" if checked.ok else "wrong", "; ".join(_text(row) for row in checked.rows if row.ok is False)[:600]
    )


def _text(row: Row) -> str:
    return f"{row.component} at {row.shape} ({row.origin}): {row.note}"
