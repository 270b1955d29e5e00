"""Tables in Markdown, and that of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from .journal import Line
from .results import Results
from .runner import GOOD


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    head = list(head)
    return [_line(head), _line("---" for _ in head), *(_line(row) for row in rows)]


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(cell(each) for each in cells)} |"


def cell(value: Any) -> str:
    """On one line, and without the sign that ends a cell."""
    return " ".join(str(value).split()).replace("|", "/")


def sweep_table(results: Results) -> str:
    """Only how jobs ended: the same jobs that end in the same ways give the same text, whenever and in whatever order they ran."""
    targets = results.targets()
    lines = ["# Sweep", "", f"{len(results.lines)} jobs: {counts_text(results)}.", ""]
    lines += ["Jobs that are right or written as asked, of all of a family:", ""]
    rows = ([family, *(share_text(cells.get(target)) for target in targets)] for family, cells in results.cells().items())
    lines += table(["family", *targets], rows)
    if reasons := results.reasons():
        lines += ["", "## Reasons", ""]
        lines += table(["jobs", "reason"], ([len(found), reason] for reason, found in reasons))
    if bad := results.bad():
        lines += ["", "## Not right", ""]
        rows = ([line["name"], line["family"], line["target"], line["status"], line.get("reason", "")] for line in bad)
        lines += table(["job", "family", "target", "ended", "reason"], rows)
    if changes := results.changes():
        lines += ["", "## Different since the last run", ""]
        rows = ([new["name"], new["target"], old["status"], new["status"], new.get("reason", "")] for old, new in changes)
        lines += table(["job", "target", "then", "now", "reason"], rows)
    return "\n".join(lines) + "\n"


def counts_text(results: Results) -> str:
    return ", ".join(f"{count} {status}" for status, count in results.counts().items())


def share_text(lines: list[Line] | None) -> str:
    return f"{sum(line['status'] in GOOD for line in lines)}/{len(lines)}" if lines else ""
