#!/usr/bin/env python3
"""What a sweep costs besides its jobs: CPU time per job and the driver's memory, with simulated jobs of which some fail.

    python tests/bench/sweep_overhead.py --count 10000 --configurations 500            # on this machine
    python tests/bench/sweep_overhead.py --count 10000 --configurations 500 --ray      # on a Ray cluster of two workers here

Two in a hundred jobs fail: an error, a wrong result, a process that is killed, and with --ray a worker that is. Checks that each
job ended exactly once and that each configuration was captured once. CPU time is that of all processes that the sweep starts,
Ray's own among them, without that of the simulated program and what it runs. Needs Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "sweep"))

from simulated import Simulation  # noqa: E402

_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--configurations", type=int, default=50)
    parser.add_argument("--ray", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="argosy-sweep-"))
    try:
        return measure(Simulation(folder), options)
    finally:
        shutil.rmtree(folder)


def measure(simulation: Simulation, options: argparse.Namespace) -> int:
    kinds = ["failing", "wrong", "killed", "workerless" if options.ray else "flaky"]
    names = [f"{kinds[i // 50 % 4] if i % 50 == 7 else 'good'}-{i}" for i in range(options.count)]
    simulation.write_jobs(names, options.configurations)
    arguments = ["--ray"] if options.ray else ["--jobs=2"]
    start = time.monotonic()
    sweep = simulation.start(*arguments, "--progress=off", "--discard")
    seen: dict[int, float] = {}
    memory: list[tuple[int, float]] = []
    while sweep.poll() is None:
        for process, seconds in _tree(sweep.pid).items():
            seen[process] = max(seen.get(process, 0), seconds)
        memory.append((_done(simulation), _memory(sweep.pid)))
        time.sleep(0.5)
    wall = time.monotonic() - start
    lines = simulation.lines()
    ended = Counter(line["key"] for line in lines)
    captures = Counter(simulation.noted("captures"))
    overhead = sum(seen.values())
    jobs_cpu = sum(line.get("cpu_seconds", 0) for line in lines)
    running = [(done, size) for done, size in memory if done > 0]
    print(json.dumps({
        "jobs": len(names), "ended": len(ended), "ended more than once": sum(count > 1 for count in ended.values()),
        "statuses": Counter(line["status"] for line in lines), "attempts above one": sum(line.get("attempts", 1) > 1 for line in lines),
        "configurations captured": len(captures), "captured more than once": sum(count > 1 for count in captures.values()),
        "seconds": round(wall, 1), "overhead, ms of CPU per job": round(1000 * overhead / len(names), 2),
        "of it the driver's": round(1000 * seen.get(sweep.pid, 0) / len(names), 2),
        "the jobs' own, ms of CPU per job": round(1000 * jobs_cpu / len(names), 2),
        "driver's memory by jobs ended, MB": {done: round(size / 1e6, 1) for done, size in running[:: max(1, len(running) // 8)]},
        "exit code": sweep.returncode,
    }, indent=1))  # fmt: skip
    return 0 if len(ended) == len(names) == len(lines) else 1


def _done(simulation: Simulation) -> int:
    path = simulation.folder / "jobs/results.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def _tree(process: int) -> dict[int, float]:
    """CPU seconds of a process and of those that it started, but for the simulated program and below."""
    parents: dict[int, list[int]] = {}
    seconds = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            name, _, rest = Path(f"/proc/{entry}/stat").read_text().partition("(")[2].rpartition(")")
        except OSError:
            continue
        fields = rest.split()
        if name in ("simulated_progr", "sh", "sleep"):
            continue
        parents.setdefault(int(fields[1]), []).append(int(entry))
        seconds[int(entry)] = (int(fields[11]) + int(fields[12])) / _TICKS
    found, waiting = {}, [process]
    while waiting:
        each = waiting.pop()
        found[each] = seconds.get(each, 0.0)
        waiting += parents.get(each, [])
    return found


def _memory(process: int) -> float:
    try:
        return int(Path(f"/proc/{process}/statm").read_text().split()[1]) * _PAGE
    except (OSError, IndexError):
        return 0


if __name__ == "__main__":
    sys.exit(main())
