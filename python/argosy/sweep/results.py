"""What is known of the jobs of a sweep, summed up for its table and its page."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from .jobs import Job, family_of
from .journal import Line, read_lines
from .runner import BAD, GOOD

NOT_ENDED = "not ended"
#: In the order in which they are counted.
STATUSES = (*GOOD, *BAD, NOT_ENDED)


@dataclass
class Results:
    #: one for each job, in the order of jobs; of one that has not ended, what is known of it
    lines: list[Line]
    #: of the run before, by the ids of jobs
    before: dict[str, Line] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        counted = Counter(line["status"] for line in self.lines)
        return {status: counted[status] for status in STATUSES if counted[status]}

    def cells(self) -> dict[str, dict[str, list[Line]]]:
        """Families in alphabetical order, with their jobs by target."""
        found: dict[str, dict[str, list[Line]]] = {}
        for line in sorted(self.lines, key=lambda line: (line["family"], line["target"])):
            found.setdefault(line["family"], {}).setdefault(line["target"], []).append(line)
        return found

    def targets(self) -> list[str]:
        return sorted({line["target"] for line in self.lines})

    def bad(self) -> list[Line]:
        return [line for line in self.lines if line["status"] not in GOOD]

    def reasons(self) -> list[tuple[str, list[Line]]]:
        """Of jobs that did not end well, the most frequent first; those that differ in names and numbers alone are one."""
        found: dict[str, list[Line]] = {}
        for line in self.bad():
            if line["status"] != NOT_ENDED:
                found.setdefault(f"{line['status']}: {without_names(line.get('reason') or '')}", []).append(line)
        return sorted(found.items(), key=lambda item: (-len(item[1]), item[0]))

    def changes(self) -> list[tuple[Line, Line]]:
        """Jobs that ended otherwise the last time: that line and this one."""
        pairs = ((self.before.get(line["job"]), line) for line in self.lines)
        return [(old, new) for old, new in pairs if old and new["status"] not in (old["status"], NOT_ENDED)]


def collect(jobs: Sequence[Job], folders: Iterable[Path], compared: Path | None = None) -> Results:
    """Of several lines of a job the one that was written last counts, and that before it is the run before, unless another folder
    is `compared`."""
    wanted = {job.id for job in jobs}
    lines: dict[str, Line] = {}
    before: dict[str, Line] = {}
    found = [line for folder in folders for line in read_lines(folder) if line["job"] in wanted]
    for line in sorted(found, key=lambda line: float(line["ended"])):
        if line["job"] in lines:
            before[line["job"]] = lines[line["job"]]
        lines[line["job"]] = line
    if compared is not None:
        before = {line["job"]: line for line in sorted(read_lines(compared), key=lambda line: float(line["ended"]))}
    return Results([lines.get(job.id) or _not_ended(job) for job in jobs], before)


def _not_ended(job: Job) -> Line:
    return {"job": job.id, "name": job.name, "model": job.source, "family": family_of(job), "target": job.target,
            "task": job.task, "check": job.check, "status": NOT_ENDED, "reason": ""}  # fmt: skip


def without_names(text: str) -> str:
    text = re.sub(r'"[^"]*"|`[^`]*`|/[\w./-]+', "…", text)
    text = re.sub(r"\d+(\.\d+)?(e[+-]?\d+)?", "N", text)
    return text if len(text) <= 160 else f"{text[:159]}…"


def median(values: Sequence[float]) -> float:
    return at_share(values, 0.5)


def at_share(values: Sequence[float], share: float) -> float:
    """The value that such a share of all is not above; 0 if there is none."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))] if ordered else 0.0
