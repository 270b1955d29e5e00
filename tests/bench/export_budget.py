"""Time and memory of `argosy export pt2` beside `cp` and `sync` of the same bytes, interleaved.

    python tests/bench/export_budget.py 135m 1.1b 7b --folder SCRATCH [--argosy build/release/apps/cli/argosy] [--keep]

Makes the checkpoints, captures them (not timed), then runs both in turn, three times, and prints a table. The budget is 1.25
times the copy and one second, and 400 MB of memory. 7b needs 41 GB of disk. Nothing else should use the disk meanwhile.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

from make_llama import SIZES

REPOSITORY = Path(__file__).resolve().parents[2]
MEMORY_BYTES = 400_000_000


def peak_of(command: list[str]) -> int:
    """Peak resident memory, in bytes, of a command that must succeed. Its own words are on stderr if it does not."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}\n{said}")
    return usage.ru_maxrss * 1024


def fresh(*paths: Path) -> None:
    """Removes files, and lets the disk come to rest."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    os.sync()


def copy_seconds(model: Path, target: Path) -> float:
    fresh(target)
    target.mkdir()
    files = sorted(model.glob("*.safetensors"))
    start = time.perf_counter()
    subprocess.run(["cp", *files, target], check=True)
    subprocess.run(["sync", *(target / file.name for file in files)], check=True)
    return time.perf_counter() - start


def measure(size: str, options: argparse.Namespace) -> bool:
    model, copy, archive = (options.folder / f"{size}{ending}" for ending in ("", "-copy", ".pt2"))
    subprocess.run([sys.executable, Path(__file__).with_name("make_llama.py"), size, model], check=True)
    export = [str(options.argosy), "export", "pt2", "--model", str(model), "-o", str(archive), "--check", "off"]
    export += [f"--memory={options.memory}"] if options.memory else []
    peak_of(export)  # makes capture and plan
    ok = True
    for number in range(1, options.times + 1):
        copied = copy_seconds(model, copy)
        fresh(copy, archive)
        start = time.perf_counter()
        peak = peak_of(export)
        exported = time.perf_counter() - start
        limit = 1.25 * copied + 1
        good = exported <= limit and peak <= MEMORY_BYTES
        ok = ok and good
        print(f"| {size} | {number} | {copied:.2f} | {exported:.2f} | {limit:.2f} | {peak / 1e6:.0f} |"
              f" {'yes' if good else 'no'} |", flush=True)  # fmt: skip
    if not options.keep:
        fresh(model, archive)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    parser.add_argument("--folder", type=Path, required=True, help="where there is room")
    parser.add_argument("--argosy", type=Path, default=REPOSITORY / "build/release/apps/cli/argosy")
    parser.add_argument("--memory", help="passed on, such as 128MB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep checkpoints and archives")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    print("| model | run | cp and sync, s | export, s | budget, s | peak, MB | kept |\n|---|---|---|---|---|---|---|")
    return 0 if all([measure(size, options) for size in options.sizes]) else 1


if __name__ == "__main__":
    sys.exit(main())
