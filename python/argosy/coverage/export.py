"""A twin exported by the command-line program and run in the engine, by itself: without transformers and argosy."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from typing import Any

from ..check.checks import TwinRequest, check_twin
from ..check.rows import Row
from .worker import Report


def run(config: Any, engine: str, program: str, report: Report) -> None:
    """`config` is the family's own; the check shrinks it."""
    with tempfile.TemporaryDirectory() as folder:
        config.to_json_file(Path(folder) / "config.json", use_diff=False)
        checked = check_twin(TwinRequest(Path(folder), engine, program=program), report.step)
    components: dict[str, dict[str, Any]] = {}
    for row in checked.rows:
        part = components.setdefault(row.component, {"calls": 0, "right": 0, "max_abs": 0.0})
        part["calls"] += row.ok is not None
        part["right"] += row.ok is True
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
