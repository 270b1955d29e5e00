"""Runs many small jobs, each in a process of its own with limits of time and memory."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_POLL_SECONDS = 0.2
#: A process that waits for others (a loaded machine) may take this many times its CPU limit.
_WALL_FACTOR = 4


@dataclass(frozen=True)
class Job:
    """``python -m argosy.coverage.worker TOOL MODEL_TYPE``."""

    family: str
    model_type: str
    tool: str

    def command(self, result: Path) -> list[str]:
        return [sys.executable, "-m", "argosy.coverage.worker", self.tool, self.model_type, str(result)]


@dataclass(frozen=True)
class Limits:
    cpu_seconds: float = 300.0
    memory_mb: int = 6000


@dataclass
class _Running:
    job: Job
    process: subprocess.Popen[bytes]
    result: Path
    log: Path
    started: float
    stopped: str = ""
    """Why it was ended, if it was."""


def run_jobs(
    jobs: Iterable[Job], limits: Limits, workers: int, folder: Path, done: Callable[[Job, dict[str, Any]], None]
) -> None:
    """Runs `jobs`, at most `workers` at a time, and calls `done` with what each reported, its CPU time and peak memory.

    A worker writes its report to a file, again after every step, so that one that is ended has told how far it came.
    """
    folder.mkdir(parents=True, exist_ok=True)
    waiting, running = list(jobs), []
    try:
        while waiting or running:
            while waiting and len(running) < workers:
                running.append(_start(waiting.pop(0), limits, folder))
            time.sleep(_POLL_SECONDS)
            for item in list(running):
                outcome = _poll(item, limits)
                if outcome is not None:
                    running.remove(item)
                    done(item.job, outcome)
    finally:
        for item in running:
            item.process.kill()
            item.process.wait()


def _start(job: Job, limits: Limits, folder: Path) -> _Running:
    name = f"{job.family}.{job.tool}"
    result, log = folder / f"{name}.json", folder / f"{name}.log"
    result.unlink(missing_ok=True)
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
    source = str(Path(__file__).parents[2])
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, (source, os.environ.get("PYTHONPATH"))))
    with log.open("wb") as output:
        process = subprocess.Popen(
            job.command(result), stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT, env=environment
        )
    return _Running(job, process, result, log, time.monotonic())


def _poll(item: _Running, limits: Limits) -> dict[str, Any] | None:
    """What became of a process, or None while it runs."""
    process_id, status, usage = os.wait4(item.process.pid, os.WNOHANG)
    if process_id == 0:
        if not item.stopped:
            item.stopped = _over_limit(item, limits)
            if item.stopped:
                os.kill(item.process.pid, signal.SIGKILL)
        return None
    item.process.returncode = os.waitstatus_to_exitcode(status)
    outcome = _read(item.result)
    outcome["cpu_seconds"] = round(usage.ru_utime + usage.ru_stime, 1)
    outcome["peak_mb"] = usage.ru_maxrss // 1024
    if item.stopped:
        outcome.update(status=item.stopped, reason=_stop_text(item.stopped, limits, outcome))
    elif "status" not in outcome:
        outcome.update(status="crash", reason=f"exit code {item.process.returncode}: {_last_line(item.log)}")
    return outcome


def _over_limit(item: _Running, limits: Limits) -> str:
    if time.monotonic() - item.started > limits.cpu_seconds * _WALL_FACTOR:
        return "timeout"
    try:
        proc = Path(f"/proc/{item.process.pid}")
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
