"""What came of one family, as it is found out."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import Any

from .configurations import configuration


class Report:
    """What is known so far. Written by rename, so that a reader never sees half of it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.values: dict[str, Any] = {}

    def update(self, **values: Any) -> None:
        self.values.update(values)
        temporary = self.path.with_suffix(".tmp")
        temporary.write_text(json.dumps(self.values), encoding="utf-8")
        os.replace(temporary, self.path)

    def step(self, name: str) -> None:
        self.update(step=name)

    def finish(self, status: str, reason: str = "") -> None:
        self.values.pop("step", None)
        self.update(status=status, reason=reason)


def first_line(error: BaseException) -> str:
    """The error's class and the first line of its text, without names of temporary folders: they differ in every run."""
    text = re.sub(rf"{re.escape(tempfile.gettempdir())}/[^/\s]+/?", "", str(error))
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def make_twin(model_type: str, report: Report) -> tuple[Any, Any]:
    """The twin of the family's default configuration, after one eager run, and that configuration, shrunk."""
    import torch
    from argosy.capture.twin import Sizes, build, sample_inputs, shrink

    report.step("build the twin")
    config = shrink(configuration(model_type))
    twin = build(config)
    report.update(**{"class": type(twin).__name__, "step": "run the twin"})
    with torch.no_grad():
        twin(**sample_inputs(twin, Sizes(padding=3)))
    report.update(twin=True)
    return twin, config
