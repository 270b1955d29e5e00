"""Configurations drawn by seed, each saved as a small checkpoint, exported to the three backends with default flags and compared with
the eager model of transformers: prompts, cached steps, pieces, padded batches, greedy tokens.

    python tests/differential/differential_sweep.py --count 300 --seed 1 --jobs 2 [--only N…] [--table FILE.md] [--json FILE [--resume]] [--program PATH]

A mismatch is silent if the export with its own check does not refuse it. Exits with 1 if there is a silent one."""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "warm")]

from draw import draw  # noqa: E402
from table import UNTOLD, summary, table_text  # noqa: E402
from warm import CPU_FILE, warm_python  # noqa: E402

ROOT = Path(__file__).parents[2]
PROGRAM = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))


def run_draw(program: Path, seed: int, index: int, keep: Path | None = None) -> dict[str, Any]:
    """The row of one draw; ``keep`` names a folder that its files stay in."""
    with tempfile.TemporaryDirectory(prefix="argosy-draw-") as name:
        folder = keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        request = {"seed": seed, "index": index, "program": str(program), "python": warm_python(), "folder": str(folder),
                   "output": str(folder / "row.json"), "keep": keep is not None}  # fmt: skip
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        command = [warm_python(), str(Path(__file__).with_name("run_draw.py")), str(folder / "request.json")]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "python"), "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error",
                       CPU_FILE: str(folder / "cpu-seconds")}  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        output = Path(request["output"])
        if done.returncode == 0 and output.exists():
            return json.loads(output.read_text(encoding="utf-8"))
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"draw": draw(seed, index).describe(), "backends": {}, "invalid": f"exit {done.returncode}: {' | '.join(lines[-3:])[-400:]}"}


def run_draws(program: Path, seed: int, indices: list[int], jobs: int, report: Any = None, keep: Path | None = None) -> list[dict[str, Any]]:
    """Rows in the order of ``indices``."""
    waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
    for index in indices:
        waiting.put(index)
    rows: dict[int, dict[str, Any]] = {}
    lock = threading.Lock()

    def work() -> None:
        while True:
            try:
                index = waiting.get_nowait()
            except queue.Empty:
                return
            row = run_draw(program, seed, index, keep and keep / str(index))
            with lock:
                rows[index] = row
                if report is not None:
                    report(row)

    warm_python()  # once, before threads ask for it
    threads = [threading.Thread(target=work) for _ in range(max(1, min(jobs, len(indices))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return [rows[index] for index in indices]


def _line(row: dict[str, Any]) -> str:
    drawn = row["draw"]
    text = f"{drawn['index']:4} {drawn['family']} {drawn['head']} {drawn['dtype']}"
    if "invalid" in row:
        return f"{text}: invalid: {row['invalid']}"
    for name, each in row["backends"].items():
        text += f" | {name} {each['verdict']}"
        if each["verdict"] != "right" or each.get("note"):
            text += f": {each.get('note', '')} {each.get('caught', '')}"
    return f"{text} [{row.get('cpu_seconds', 0)} s of CPU]"


def _right_rows(path: Path, seed: int) -> dict[int, dict[str, Any]]:
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {row["draw"]["index"]: row for row in rows
            if row["draw"]["seed"] == seed and row["backends"] and all(each["verdict"] == "right" for each in row["backends"].values())}  # fmt: skip


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--start", type=int, default=0, help="the first index")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", type=int, nargs="+", help="these indices alone")
    parser.add_argument("--keep", type=Path, help="folder that checkpoints and exports stay in")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--json", type=Path, help="rows, one a line, as they come")
    parser.add_argument("--resume", action="store_true", help="rows of --json that are right in all backends are not run again")
    options = parser.parse_args()
    indices = options.only or list(range(options.start, options.start + options.count))
    started = time.perf_counter()
    kept = _right_rows(options.json, options.seed) if options.resume and options.json else {}
    if options.json:
        options.json.write_text("".join(json.dumps(row) + "\n" for row in kept.values()), encoding="utf-8")

    def report(row: dict[str, Any]) -> None:
        print(_line(row), flush=True)
        if options.json:
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")

    fresh = [index for index in indices if index not in kept]
    run = dict(zip(fresh, run_draws(options.program.absolute(), options.seed, fresh, options.jobs, report, options.keep), strict=True))
    rows = [kept[index] if index in kept else run[index] for index in indices]
    counts = summary(rows)
    print(f"{len(rows)} draws in {time.perf_counter() - started:.0f} s: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"{sum(row.get('cpu_seconds', 0) for row in rows) / max(1, len(rows)):.1f} s of CPU a draw")
    if options.table:
        options.table.write_text(table_text(rows, options.seed), encoding="utf-8")
    return 1 if any(counts.get(name) for name in UNTOLD) else 0


if __name__ == "__main__":
    sys.exit(main())
