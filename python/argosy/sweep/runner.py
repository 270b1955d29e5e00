"""Runs one job: makes its twin if it has no weights, then exports and checks it, each by a command in processes of its own. This is
all that happens where a job is sent to; it needs the program, the cache and the folder."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import sys
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from .jobs import Job, Limits, flags, needs_of
from .warden import Warden
from .watch import Ended, run_watched

Outcome = dict[str, Any]
#: How jobs end. The first two are as they should be.
GOOD = ("right", "written")
BAD = ("wrong", "failed", "over time", "over memory", "over disk", "killed", "not captured")
_SUFFIXES = {"onnx": "", "executorch": "", "pt2": ".pt2"}
_CHECKED_AND_WRONG = 3
#: Of a disk that is full, for small files too.
_LITTLE_ROOM = 1 << 20
NO_ROOM = os.strerror(errno.ENOSPC)
#: What the program says if its capture fails.
_NO_CAPTURE = "no capture was made"


@dataclass(frozen=True)
class Task:
    """A job that is to be run now."""

    job: Job
    key: str
    folder: Path
    #: for files of jobs that run
    work: Path
    program: Path
    #: what relative paths of jobs start from
    home: Path
    limits: Limits
    keeps: bool = True
    attempt: int = 1
    threads: int = 0

    @property
    def title(self) -> str:
        """A name for its files."""
        text = "".join(c if c.isalnum() or c in "-_." else "-" for c in f"{self.job.name}-{self.job.target}")
        return f"{text.strip('.-')[:80]}-{self.key[:10]}"


class _Failed(Exception):
    def __init__(self, status: str, reason: str, code: str = "") -> None:
        super().__init__(reason)
        self.status, self.reason, self.code = status, reason, code


def run_job(task: Task, warden: Warden) -> Outcome:
    """What came of it. Whatever a job does, this returns; nothing is left of one that did not end well but its log."""
    work = task.work / f"{task.key[:16]}-{uuid.uuid4().hex[:12]}"
    run = _Run(task, work, warden)
    outcome: Outcome = {"status": "failed", "reason": "", "code": "", "captured": True}
    try:
        (work / "tmp").mkdir(parents=True)
        outcome |= run.all_steps()
    except _Failed as failure:
        outcome |= {"status": failure.status, "reason": failure.reason, "code": failure.code}
    except OSError as error:
        outcome |= {"reason": f"{error.filename or work} cannot be used: {error.strerror}", "code": "io"}
    except Exception as error:  # a bug here is not to end the other jobs
        outcome |= {"reason": f"a bug of the sweep: {type(error).__name__}: {error}", "code": "internal"}
    finally:
        shutil.rmtree(work, ignore_errors=True)
    if outcome["status"] not in GOOD:
        outcome["captured"] = run.step != "twin" and run.is_captured()
    if outcome["status"] in GOOD and not outcome["reason"]:
        run.log.unlink(missing_ok=True)
    return outcome | run.figures()


class _Run:
    def __init__(self, task: Task, work: Path, warden: Warden) -> None:
        self.task, self.work, self.warden = task, work, warden
        self.log = task.folder / "logs" / f"{task.title}.log"
        self.steps: dict[str, Ended] = {}
        self.step = ""
        self.environment = {"ARGOSY_PYTHON": sys.executable, **os.environ, "TMPDIR": str(work / "tmp")}
        if task.threads:
            self.environment.setdefault("OMP_NUM_THREADS", str(task.threads))

    def is_captured(self) -> bool:
        """Whether the job came further than its capture, which others of its configuration want as well."""
        try:
            text = self.log.read_text(encoding="utf-8", errors="replace")
        except OSError:
            return True
        return _NO_CAPTURE not in text and ('"stage": "' not in text or '"stage": "done"' in text)

    def all_steps(self) -> Outcome:
        task, job = self.task, self.task.job
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.log.write_bytes(b"")
        model = str(Path(job.model).absolute()) if Path(job.model).is_dir() and job.model else job.model
        if job.configuration:
            model = str(self._twin())
        output = self.work / f"out{_SUFFIXES[job.backend]}"
        command: list[str | Path] = [task.program, "export", job.backend, f"--model={model}", f"--check={job.check}", *flags(job.options)]
        command += [f"--task={job.task}"] if job.task else []
        result = self._run("export", [*command, f"--output={output}", "--json", "--progress=json"])
        return _judged(result, job.check) | {"output": self._keep(output), "model_class": str(result.get("model_class") or "")}

    def _twin(self) -> Path:
        """The folder of a small random model of the configuration, which jobs of the same one share."""
        job = self.task.job
        made = self.task.folder / "twins" / twin_name(job)
        if not made.exists():
            new = self.work / "twin"
            command: list[str | Path] = [self.environment["ARGOSY_PYTHON"], "-m", "argosy.capture.twin", f"--output={new}"]
            command += [f"--task={job.task}"] if job.task and job.backend != "executorch" else []
            self._run("twin", [*command, "--", job.configuration])
            made.parent.mkdir(parents=True, exist_ok=True)
            try:
                new.rename(made)
            except OSError:
                if not made.exists():  # else another job was first
                    raise
        return made

    def _run(self, step: str, command: list[str | Path]) -> dict[str, Any]:
        """What the command says as one JSON object; `_Failed` if it did not do what it should."""
        self.step = step
        output = self.work / f"{step}.json"
        # What earlier steps took is not there for this one.
        passed = sum(ended.seconds for ended in self.steps.values())
        limits = self.task.limits
        if limits.seconds:
            limits = replace(limits, seconds=max(0.001, limits.seconds - passed))
        ended = self.steps[step] = run_watched(
            [str(part) for part in command], self.work, output, self.log, self.environment, limits, self.warden
        )
        if ended.broken:
            raise _Failed(f"over {ended.broken}", _limit_text(ended, self.task.limits, step))
        said = _read_object(output)
        if ended.exit_code == 0:
            return said
        if ended.exit_code < 0:
            raise _Failed("killed", f"{step}: ended by {_signal_name(-ended.exit_code)}")
        if shutil.disk_usage(self.work).free < _LITTLE_ROOM:  # what it says may not have been written, either
            raise _Failed("failed", f"{NO_ROOM}, in: {step}", "io")
        error = said.get("error")
        if isinstance(error, dict) and ended.exit_code != _CHECKED_AND_WRONG:
            raise _Failed("failed", str(error.get("message", "")), str(error.get("code", "")))
        lines = self._said()
        if ended.exit_code == _CHECKED_AND_WRONG:
            raise _Failed("wrong", _after(lines, " is wrong in "), "wrong-results")
        raise _Failed("failed", _error_line(lines) or f"{step} ended with {ended.exit_code}")

    def _said(self) -> list[str]:
        """The lines of the log that are no progress."""
        text = self.log.read_text(encoding="utf-8", errors="replace") if self.log.exists() else ""
        return [line for line in text.splitlines() if line.strip() and not line.startswith("{")]

    def _keep(self, output: Path) -> str:
        if not self.task.keeps:
            return ""
        place = self.task.folder / "outputs" / f"{self.task.title}{output.suffix}"
        place.parent.mkdir(parents=True, exist_ok=True)
        _remove(place)
        output.rename(place)
        return place.relative_to(self.task.folder).as_posix()

    def figures(self) -> Outcome:
        ended = self.steps.values()
        return {
            "step": self.step,
            "seconds": round(sum(each.seconds for each in ended), 3),
            "cpu_seconds": round(sum(each.cpu_seconds for each in ended), 3),
            "peak_bytes": max((each.peak_bytes for each in ended), default=0),
            "disk_bytes": max((each.disk_bytes for each in ended), default=0),
            "steps": {name: round(each.seconds, 3) for name, each in self.steps.items()},
            "attempts": self.task.attempt,
        }


def twin_name(job: Job) -> str:
    return f"{Path(job.configuration).name}-{needs_of(job).configuration[:12]}"


def _judged(result: Mapping[str, Any], check: str) -> Outcome:
    """Of an export that the program ended well."""
    if check == "off":
        return {"status": "written"}
    if result.get("is_verified"):
        return {"status": "right"}
    checks = result.get("checks")
    why = [str(each.get("why") or "") for each in checks if isinstance(each, dict)] if isinstance(checks, list) else []
    return {"status": "written", "reason": f"not checked: {next(filter(None, why), 'the program does not say why')}"}


def _limit_text(ended: Ended, limits: Limits, step: str) -> str:
    limit = {"time": f"{limits.seconds:g} s", "memory": size_text(limits.memory), "disk": f"{size_text(limits.disk)} on the disk"}
    return f"more than {limit[ended.broken]} in: {step}"


def size_text(size: float) -> str:
    for unit in ("B", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.4g} TB"


def _signal_name(number: int) -> str:
    try:
        return f"{signal.Signals(number).name}, which nobody here sent"
    except ValueError:
        return f"signal {number}"


def _after(lines: list[str], mark: str) -> str:
    """The line with a mark, and the first one below it."""
    for i, line in enumerate(lines):
        if mark in line:
            below = lines[i + 1].strip() if i + 1 < len(lines) else ""
            return f"{line.removeprefix('argosy: ').rstrip(':')}: {below}".rstrip(": ")
    return lines[-1] if lines else "checked, and not as it should be"


def _error_line(lines: list[str]) -> str:
    found: Callable[[str], bool] = lambda line: line.startswith("error[")  # noqa: E731
    line = next(filter(found, lines), lines[-1] if lines else "")
    return line.partition("]: ")[2] if line.startswith("error[") else line


def _read_object(path: Path) -> dict[str, Any]:
    try:
        values = json.loads(path.read_bytes())
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
