"""Runs one command within limits of time, memory and disk, and measures what it took. By what Linux says of processes."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import stat
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .jobs import Limits
from .warden import Warden

_FIRST_LOOK, _LAST_LOOK = 0.01, 0.2


@dataclass
class Ended:
    #: of the command; negative: the signal that ended it
    exit_code: int
    #: the limit that it broke: "time", "memory" or "disk"; empty: none
    broken: str
    seconds: float
    cpu_seconds: float
    #: memory of its own, of all its processes together, at the fullest moment that was seen
    peak_bytes: int
    disk_bytes: int


def run_watched(
    command: Sequence[str], folder: Path, output: Path, log: Path, environment: Mapping[str, str], limits: Limits, warden: Warden
) -> Ended:
    """Runs `command`, whose files are in `folder`. Its output goes to a file, and what it says to the end of another."""
    start = time.monotonic()
    with output.open("wb") as stdout, log.open("ab") as stderr:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=dict(environment), process_group=0
        )
    warden.begin(process.pid)
    broken, peak, disk = "", 0, 0
    try:
        if limits.disk:
            # No file of it gets larger than all of them may be, however fast it is written.
            try:
                resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (limits.disk, limits.disk))
            except OSError:
                pass  # it has ended
        wait = _FIRST_LOOK
        with _Ending(process.pid) as ending:
            while not ending.wait(wait):
                elapsed = time.monotonic() - start
                peak = max(peak, memory_of(process.pid))
                if limits.disk and elapsed > 0.1:
                    disk = max(disk, disk_of(folder))
                broken = _broken(limits, elapsed, peak, disk)
                if broken:
                    break
                wait = min(wait * 1.5, _LAST_LOOK)
    finally:
        _kill(process.pid)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        warden.end(process.pid)
    disk = max(disk, disk_of(folder))
    if not broken and limits.disk and (disk > limits.disk or _met_file_limit(process.returncode, log)):
        broken = "disk"
    return Ended(process.returncode, broken, time.monotonic() - start, usage.ru_utime + usage.ru_stime, peak, disk)


def _broken(limits: Limits, seconds: float, memory: int, disk: int) -> str:
    if limits.seconds and seconds > limits.seconds:
        return "time"
    if limits.memory and memory > limits.memory:
        return "memory"
    return "disk" if limits.disk and disk > limits.disk else ""


def _met_file_limit(exit_code: int, log: Path) -> bool:
    """Whether a file could not grow: RLIMIT_FSIZE is a signal, or an error that the command reports."""
    if exit_code == -signal.SIGXFSZ:
        return True
    return exit_code != 0 and os.strerror(errno.EFBIG) in log.read_text(encoding="utf-8", errors="replace")


class _Ending:
    """Waits until a process has ended, and leaves it to be collected."""

    def __init__(self, process: int) -> None:
        self._file = os.pidfd_open(process)

    def __enter__(self) -> _Ending:
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._file)

    def wait(self, seconds: float) -> bool:
        poll = select.poll()
        poll.register(self._file, select.POLLIN)
        return bool(poll.poll(seconds * 1000))


def _kill(process: int) -> None:
    """The whole group, and what left it."""
    ids = [each for each in _tree(process) if each != process]
    try:
        os.killpg(process, signal.SIGKILL)
    except OSError:
        pass
    for each in ids:
        try:
            os.kill(each, signal.SIGKILL)
        except OSError:
            pass


def memory_of(process: int) -> int:
    """What a process and those that it started have for themselves: not files that are mapped, which the system takes back."""
    return sum(_own_bytes(each) for each in _tree(process))


def _tree(process: int) -> Iterator[int]:
    yield process
    try:
        threads = os.listdir(f"/proc/{process}/task")
    except OSError:
        return
    for thread in threads:
        try:
            with open(f"/proc/{process}/task/{thread}/children") as file:
                children = file.read().split()
        except OSError:
            continue
        for child in children:
            yield from _tree(int(child))


def _own_bytes(process: int) -> int:
    try:
        with open(f"/proc/{process}/status") as file:
            lines = [line.split() for line in file if line.startswith(("RssAnon:", "RssShmem:"))]
    except OSError:
        return 0
    return sum(int(line[1]) << 10 for line in lines)


def disk_of(folder: Path) -> int:
    """What the files below a folder take, without those that have another name elsewhere."""
    total = 0
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return 0
    for entry in entries:
        try:
            if entry.is_dir(follow_symlinks=False):
                total += disk_of(Path(entry.path))
            else:
                status = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(status.st_mode) and status.st_nlink == 1:
                    total += status.st_blocks * 512
        except OSError:
            continue  # it is gone
    return total
