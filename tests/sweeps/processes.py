"""Runs many small jobs, each in a process of its own with limits of time and memory.

Processes are forked: what the caller has imported by then (torch and transformers take six seconds of CPU) costs a job
nothing, and whatever a job does to it stays in that job's process.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from .journal import Journal, Key, Results

_POLL_SECONDS = 0.2
#: A process that waits for others (a loaded machine) may take this many times its CPU limit.
_WALL_FACTOR = 6


class Job(Protocol):
    """One result of a sweep."""

    @property
    def key(self) -> Key: ...

    def run(self, result: Path) -> None:
        """Writes a report to `result`, again after every step, so that a job that is ended has told how far it came. Its ``status``
        and ``reason`` are there once it is known how it ended."""


@dataclass(frozen=True)
class Limits:
    cpu_seconds: float = 300.0
    memory_mb: int = 6000


@dataclass
class _Running:
    job: Job
    process_id: int
    result: Path
    log: Path
    started: float
    stopped: str = ""
    """Why it was ended, if it was."""


def add_options(parser: argparse.ArgumentParser, seconds: float = 300.0) -> None:
    """What every sweep of jobs can be told; `seconds` are those of CPU time that a job has by default."""
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time")
    parser.add_argument("--resume", action="store_true", help="keep what the data has of the same versions")
    parser.add_argument("--seconds", type=float, default=seconds, help="CPU time for one job")
    parser.add_argument("--memory", type=int, default=6000, metavar="MB", help="memory for one process")
    parser.add_argument("--work", type=Path, default=Path("build/coverage"), help="data and logs, as they come")


def run_sweep(
    jobs: list[Job], journal: Journal, options: argparse.Namespace, preload: Callable[[], None] = lambda: None
) -> Results:
    """Runs jobs, those that the journal lacks if this is to `resume`. Returns all that the journal has afterwards. What `preload`
    imports, jobs need not import."""
    if not options.resume:
        journal.forget({job.key for job in jobs})
    known = journal.read()
    waiting = [job for job in jobs if job.key not in known]
    count = 0

    def done(job: Job, outcome: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        journal.add(job.key, outcome)
        reason = f": {outcome['reason']}" if outcome.get("reason") else ""
        text = f"[{count}/{len(waiting)}] {' '.join(job.key)}: {outcome['status']}{reason}"
        print(f"{text[:200]} ({outcome['cpu_seconds']} s, {outcome['peak_mb']} MB)", flush=True)

    if waiting:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        preload()
        run_jobs(waiting, Limits(options.seconds, options.memory), options.jobs, options.work / "logs", done)
    return journal.read()


def run_jobs(
    jobs: Iterable[Job], limits: Limits, workers: int, folder: Path, done: Callable[[Job, dict[str, Any]], None]
) -> None:
    """Runs `jobs`, at most `workers` at a time, and calls `done` with what each reported, its CPU time and peak memory."""
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running = list(jobs), []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(_start(waiting.pop(0), folder))
            time.sleep(_POLL_SECONDS)
            for item in list(running):
                outcome = _poll(item, limits)
                if outcome is not None:
                    running.remove(item)
                    done(item.job, outcome)
    finally:
        for item in running:
            os.kill(item.process_id, signal.SIGKILL)
            os.waitpid(item.process_id, 0)


def _start(job: Job, folder: Path) -> _Running:
    name = ".".join(job.key).replace("/", "-")
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    result.unlink(missing_ok=True)
    sys.stdout.flush()
    sys.stderr.flush()
    process_id = os.fork()
    if process_id == 0:
        _run_forked(job, result, log)
    return _Running(job, process_id, result, log, time.monotonic())


def _run_forked(job: Job, result: Path, log: Path) -> None:
    code = 1
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
        for stream in (1, 2):
            os.dup2(output, stream)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        job.run(result)
        code = 0
    except BaseException:  # Nothing may return into the caller's code, which goes on in the parent.
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        # Not by the interpreter's way out: torch may crash on what a trace with fake tensors left behind.
        os._exit(code)


def _poll(item: _Running, limits: Limits) -> dict[str, Any] | None:
    """What became of a process, or None while it runs."""
    process_id, status, usage = os.wait4(item.process_id, os.WNOHANG)
    if process_id == 0:
        if not item.stopped:
            item.stopped = _over_limit(item, limits)
            if item.stopped:
                os.kill(item.process_id, signal.SIGKILL)
        return None
    outcome = _read(item.result)
    outcome["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 1)
    outcome["peak_mb"] = usage.ru_maxrss // 1024
    if item.stopped:
        outcome.update(status=item.stopped, reason=_stop_text(item.stopped, limits, outcome))
    elif "status" not in outcome:
        code = os.waitstatus_to_exitcode(status)
        outcome.update(status="crash", reason=f"exit code {code}: {_last_line(item.log)}")
    return outcome


def _over_limit(item: _Running, limits: Limits) -> str:
    if time.monotonic() - item.started > limits.cpu_seconds * _WALL_FACTOR:
        return "timeout"
    try:
        proc = Path(f"/proc/{item.process_id}")
        fields = proc.joinpath("stat").read_text().rpartition(")")[2].split()
        memory = int(proc.joinpath("statm").read_text().split()[1])
    except (OSError, IndexError, ValueError):
        return ""
    if (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") > limits.cpu_seconds:
        return "timeout"
    return "memory" if memory * os.sysconf("SC_PAGE_SIZE") > limits.memory_mb * 2**20 else ""


def _stop_text(stopped: str, limits: Limits, outcome: dict[str, Any]) -> str:
    limit = f"{limits.cpu_seconds:g} s of CPU" if stopped == "timeout" else f"{limits.memory_mb} MB"
    return f"more than {limit} in: {outcome.get('step', 'start')}"


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def _last_line(path: Path) -> str:
    lines = [line for line in path.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    return lines[-1][:200] if lines else "no output"
