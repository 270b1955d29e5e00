"""What this process may use of its machine, within the limits of its container or its job."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

_GROUPS = Path("/sys/fs/cgroup")


def cores(groups: Path = _GROUPS) -> int:
    allowed = float(len(os.sched_getaffinity(0)))
    for folder in _own_groups(groups):
        quota, _, period = _text(folder / "cpu.max").partition(" ")
        if quota.isdigit() and period.strip().isdigit():
            allowed = min(allowed, int(quota) / int(period))
    return max(1, int(allowed))


def memory_bytes(groups: Path = _GROUPS) -> int:
    allowed = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    limits = [_text(folder / "memory.max").strip() for folder in _own_groups(groups)]
    return min([allowed, *(int(limit) for limit in limits if limit.isdigit())])


def _own_groups(groups: Path) -> Iterator[Path]:
    """The control group of this process and those that it is in, of version 2."""
    lines = _text(Path("/proc/self/cgroup")).splitlines()
    own = next((line[3:].strip("/") for line in lines if line.startswith("0::")), "")
    folder = groups / own
    while folder != groups:
        yield folder
        folder = folder.parent
    yield groups


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
