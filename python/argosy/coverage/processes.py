"""Runs many small jobs, each in a process of its own with limits of time and memory.

Processes are forked: what the caller has imported by then (torch and transformers take six seconds of CPU) costs a job
nothing, and whatever a job does to it stays in that job's process.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_SECONDS = 0.2
#: A process that waits for others (a loaded machine) may take this many times its CPU limit.
_WALL_FACTOR = 6


@dataclass(frozen=True)
class Job:
    """One family and one tool."""

    family: str
    model_type: str
    tool: str
    #: the command-line program, for tools that are engines
    program: str = ""
    #: the interpreter of an engine that has an environment of its own
    engine_python: str = ""
    #: further arguments of the export
    options: tuple[str, ...] = ()
    #: where the twin is kept, of tools that keep it
    twin: Path | None = None

    def run(self, result: Path) -> None:
        """Writes a report to `result`, again after every step, so that a job that is ended has told how far it came."""
        from .worker import work

        work(self.tool, self.model_type, result, self.program, self.engine_python, self.options, self.twin)


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
    name = f"{job.family}.{job.tool}"
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
