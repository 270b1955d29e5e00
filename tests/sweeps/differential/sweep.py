"""Configurations drawn by seed, each saved as a small checkpoint, exported to the three backends with default flags and compared with
the eager model of transformers: prompts, cached steps, pieces, padded batches, greedy tokens.

    python tests/sweeps differential --count 300 --seed 1 --jobs 2 [--schemes] [--only N…] [--resume] [--table FILE.md]

With ``--schemes`` they are exported with weights in few bits instead, in schemes that are drawn too, beside eager with the same weights.

A mismatch is silent if the export with its own check does not refuse it. Exits with 1 if there is a silent one."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from warm import CPU_FILE, warm_python

from .. import PROGRAM, ROOT
from ..journal import Journal
from ..pages import installed, write_page
from .draw import draw
from .table import UNTOLD, page, summary


def run_draw(program: Path, seed: int, index: int, keep: Path | None = None, *, schemes: bool = False) -> dict[str, Any]:
    """The row of one draw; ``keep`` names a folder that its files stay in."""
    with tempfile.TemporaryDirectory(prefix="argosy-draw-") as name:
        folder = keep or Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        request = {"seed": seed, "index": index, "program": str(program), "python": warm_python(), "folder": str(folder),
                   "output": str(folder / "row.json"), "keep": keep is not None, "schemes": schemes}  # fmt: skip
        (folder / "request.json").write_text(json.dumps(request), encoding="utf-8")
        command = [warm_python(), str(Path(__file__).with_name("run_draw.py")), str(folder / "request.json")]
        environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'python'}{os.pathsep}{ROOT / 'tests'}", "OMP_NUM_THREADS": "1", "TRANSFORMERS_VERBOSITY": "error",
                       CPU_FILE: str(folder / "cpu-seconds")}  # fmt: skip
        done = subprocess.run(command, capture_output=True, text=True, env=environment)
        output = Path(request["output"])
        if done.returncode == 0 and output.exists():
            return json.loads(output.read_text(encoding="utf-8"))
        lines = [line for line in done.stderr.splitlines() if line.strip()]
        return {"draw": draw(seed, index).describe(), "backends": {}, "invalid": f"exit {done.returncode}: {' | '.join(lines[-3:])[-400:]}"}


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


def _is_right(row: dict[str, Any]) -> bool:
    return bool(row["backends"]) and all(each["verdict"] == "right" for each in row["backends"].values())


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps differential", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--start", type=int, default=0, help="the first index")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--schemes", action="store_true", help="weights in few bits")
    parser.add_argument("--only", type=int, nargs="+", help="these indices alone")
    parser.add_argument("--keep", type=Path, help="folder that checkpoints and exports stay in")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--table", type=Path)
    parser.add_argument("--work", type=Path, default=Path("build/coverage"), help="data, as it comes")
    parser.add_argument("--resume", action="store_true", help="draws that are right in all backends are not run again")
    options = parser.parse_args(arguments)
    indices = options.only or list(range(options.start, options.start + options.count))
    started = time.perf_counter()
    keys = {index: (str(options.seed), str(index)) for index in indices}
    journal = Journal(options.work / ("differential-schemes.jsonl" if options.schemes else "differential.jsonl"), installed("torch", "transformers"))
    if not options.resume:
        journal.forget(keys.values())
    known = journal.read()
    rows = {index: known[key] for index, key in keys.items() if key in known and _is_right(known[key])}
    warm_python()  # once, before threads ask for it

    def work(index: int) -> None:
        rows[index] = run_draw(options.program.absolute(), options.seed, index, options.keep and options.keep / str(index), schemes=options.schemes)
        journal.add(keys[index], rows[index])
        print(_line(rows[index]), flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        list(pool.map(work, [index for index in indices if index not in rows]))
    found = [rows[index] for index in indices]
    counts = summary(found)
    print(f"{len(found)} draws in {time.perf_counter() - started:.0f} s: " + ", ".join(f"{count} {name}" for name, count in counts.items()))
    print(f"{sum(row.get('cpu_seconds', 0) for row in found) / max(1, len(found)):.1f} s of CPU a draw")
    if options.table:
        write_page(options.table, page(found, options.seed, schemes=options.schemes))
    return 1 if any(counts.get(name) for name in UNTOLD) else 0
