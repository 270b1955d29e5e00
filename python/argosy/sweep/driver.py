"""Runs the jobs of a sweep that have not ended yet, and writes down how each ends."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from .jobs import Job, Limits, family_of, job_key
from .journal import Journal, Line, read_lines
from .local import Workers
from .order import Order, Waiting
from .runner import GOOD, NO_ROOM, Outcome, Task


@dataclass
class Settings:
    folder: Path
    program: Path
    #: which program that is: a hash of its sources
    sources: str
    limits: Limits = Limits()
    retries: int = 1
    #: run jobs that ended badly once more
    retries_failed: bool = False
    keeps: bool = True
    threads: int = 0
    #: "2/8", or empty
    shard: str = ""

    @property
    def part(self) -> str:
        return shard_suffix(self.shard)

    @property
    def results(self) -> Path:
        return self.folder / f"results{self.part}.jsonl"


def shard_suffix(shard: str) -> str:
    """Of files of a part of the jobs: parts may share a folder."""
    return f"-{shard.replace('/', '-of-')}" if shard else ""


#: Told of each job that ends: its line, how many have ended, how many there are.
Report = Callable[[Line, int, int], None]


def run_sweep(jobs: list[Job], settings: Settings, workers: Callable[[], Workers], report: Report) -> None:
    """Runs each job of `jobs` that has not ended yet to its end. If this is ended, however, another call goes on where it was."""
    settings.folder.mkdir(parents=True, exist_ok=True)
    journal = Journal(settings.results)
    try:
        known = ended_keys(settings.folder, settings.retries_failed)
        all_jobs = (Waiting(job, job_key(job, settings.sources), _limits(job, settings.limits)) for job in jobs)
        order = Order(each for each in all_jobs if each.key not in known)
        del known
        work = settings.folder / f"work{settings.part}"
        shutil.rmtree(work, ignore_errors=True)  # of a run that was ended
        if order:
            _run(order, settings, work, workers(), journal, report, len(jobs))
        shutil.rmtree(work, ignore_errors=True)
    finally:
        journal.close()


def ended_keys(folder: Path, only_good: bool) -> set[str]:
    known: set[str] = set()
    for line in read_lines(folder):
        (known.discard if only_good and line["status"] not in GOOD else known.add)(line["key"])
    return known


def _limits(job: Job, general: Limits) -> Limits:
    """The job's own where it has some."""
    own = job.limits
    return Limits(own.seconds or general.seconds, own.memory or general.memory, own.disk or general.disk)


def _run(
    order: Order, settings: Settings, work: Path, workers: Workers, journal: Journal, report: Report, count: int
) -> None:
    running: dict[str, Waiting] = {}
    done = count - len(order)

    def note(waiting: Waiting, outcome: Outcome) -> None:
        nonlocal done
        done += 1
        line = _line(waiting, outcome, settings)
        journal.add(line)
        report(line, done, count)

    try:
        while order or running:
            while len(running) < workers.slots and (waiting := order.next()):
                if waiting.refused:
                    note(waiting, {"status": "not captured", "reason": waiting.refused})
                    continue
                running[waiting.key] = waiting
                workers.start(_task(waiting, settings, work))
            for task, outcome in workers.ended() if running else ():
                waiting = running.pop(task.key)
                order.ended(waiting, outcome)
                if waiting.attempt <= settings.retries and _is_of_the_machine(outcome):
                    order.again(waiting)
                else:
                    note(waiting, outcome)
    finally:
        workers.close()


def _task(waiting: Waiting, settings: Settings, work: Path) -> Task:
    return Task(
        waiting.job, waiting.key, settings.folder.absolute(), work.absolute(), settings.program, Path.cwd(), waiting.limits,
        settings.keeps, waiting.attempt, settings.threads,
    )  # fmt: skip


def _is_of_the_machine(outcome: Outcome) -> bool:
    """Whether it may end otherwise the next time."""
    return outcome["status"] == "killed" or (outcome["status"] == "failed" and NO_ROOM in outcome["reason"])


def _line(waiting: Waiting, outcome: Outcome, settings: Settings) -> Line:
    job = waiting.job
    what = {"key": waiting.key, "job": job.id, "name": job.name, "model": job.source, "family": family_of(job),
            "target": job.target, "task": job.task, "check": job.check}  # fmt: skip
    outcome = {name: value for name, value in outcome.items() if name != "captured"}
    return what | outcome | {"program": settings.sources, "shard": settings.shard, "ended": time.time()}
