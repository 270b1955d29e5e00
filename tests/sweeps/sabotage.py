"""Whether the check finds faults: exports with one deliberate fault inside, and the same exports without.

    python tests/sweeps sabotage [--jobs 2] [--only TEXT] [--folder KEPT] [--resume] [--table docs/coverage/sabotage.md]

Each row of fault_rows.py is exported by ``argosy_sabotage`` with the check that every export has. A fault is caught if the export
ends with exit code 3 and says which component is wrong. An export without a fault must pass, or its rows prove nothing."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from warm import warm_python

from . import ROOT
from .fault_rows import MODELS, ROWS, Export, Row
from .journal import Journal
from .pages import installed, table, write_page

PROGRAM = ROOT / "build/release/tests/sabotage/argosy_sabotage"
#: of an export that was checked and is wrong
WRONG = 3
#: "decode at 5 on 3 (logits): …": a component, how it was called, and what is wrong
_NAMED = re.compile(r"[\w.-]+ at .+: .+")
_SAVE = """import json, os, sys, torch
from safetensors.torch import save_file
from transformers import AutoConfig
from argosy.capture.twin import Sizes, build, sample_inputs, save, shrink
model = build(shrink(AutoConfig.for_model(sys.argv[1], **json.loads(sys.argv[2]))))
save(model, sys.argv[3])
inputs = sample_inputs(model, Sizes(batch=2, sequence=11, padding=0))
tensors = {name: each.contiguous() for name, each in inputs.items() if isinstance(each, torch.Tensor)}
save_file(tensors, sys.argv[3] + "/inputs.safetensors")
os._exit(0)
"""


@dataclass
class Outcome:
    """How a row ended."""

    row: str
    fault: str
    model: str
    export: str
    caught: bool
    #: what the check said, or why there was none
    said: str
    exit_code: int
    seconds: float


class Workshop:
    """Checkpoints and captures that rows share. A check that passed is never remembered: each row has a cache of its own."""

    def __init__(self, folder: Path, program: Path = PROGRAM, python: str = sys.executable) -> None:
        self.folder, self.program, self.python = folder, program, python
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._clean: dict[tuple[str, Export], str] = {}

    def outcome(self, row: Row) -> Outcome:
        start = time.monotonic()
        clean = self.clean(row.model, row.export)
        if clean:
            return self._ended(row, False, f"wrong without a fault: {clean}", -1, start)
        code, errors = self._export(row.model, row.export, row.fault)
        said = wrong_lines(errors)
        if code == WRONG and said:
            return self._ended(row, True, said[0], code, start)
        return self._ended(row, False, last_words(errors) if code else "exported as right", code, start)

    def clean(self, model: str, export: Export) -> str:
        """What is wrong with an export without a fault; "": nothing. Also leaves its captures for rows with one."""
        with self._lock:
            lock = self._locks.setdefault(f"{model} {export.name}", threading.Lock())
        with lock:
            if (model, export) not in self._clean:
                code, errors = self._export(model, export, "")
                checked = "is not checked" not in errors
                self._clean[model, export] = "" if code == 0 and checked else last_words(errors) or f"exit code {code}"
            return self._clean[model, export]

    def _export(self, model: str, export: Export, fault: str) -> tuple[int, str]:
        checkpoint = self._checkpoint(model)
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            cache = Path(name) / "cache" if fault else self.folder / "cache"
            if fault:
                for kind in ("captures", "plans"):
                    shutil.copytree(self.folder / "cache" / kind, cache / kind)
            output = Path(name) / "out"
            command = [str(self.program), "export", export.backend, "--model", str(checkpoint), "-o", str(output)]
            command += [option.format(model=checkpoint) for option in export.options]
            environment = os.environ | {
                "ARGOSY_PYTHON": self.python,
                "PYTHONPATH": str(ROOT / "python"),
                "ARGOSY_CACHE": str(cache),
                "ARGOSY_FAULT": fault,
                "HF_HUB_OFFLINE": "1",
                "OMP_NUM_THREADS": "1",
                "TMPDIR": name,
            }
            done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=900)
            return done.returncode, done.stderr

    def _checkpoint(self, model: str) -> Path:
        with self._lock:
            lock = self._locks.setdefault(model, threading.Lock())
        folder = self.folder / "models" / model
        with lock:
            if not (folder / "config.json").exists():
                script = self.folder / "save.py"
                script.write_text(_SAVE, encoding="utf-8")
                entry = MODELS[model]
                subprocess.run([self.python, str(script), entry.family, json.dumps(entry.fields), str(folder)], check=True,
                               capture_output=True, env=os.environ | {"PYTHONPATH": str(ROOT / "python")})  # fmt: skip
        return folder

    def _ended(self, row: Row, caught: bool, said: str, code: int, start: float) -> Outcome:
        return Outcome(row.name, row.fault, row.model, row.export.name, caught, said, code, time.monotonic() - start)


def wrong_lines(errors: str) -> list[str]:
    """Lines that name a component and what is wrong with it."""
    lines = errors.splitlines()
    heads = [number for number, line in enumerate(lines) if " is wrong in " in line]
    told = [line.strip() for line in lines[heads[0] + 1 :] if line.startswith("  ")] if heads else []
    return [line for line in told if _NAMED.match(line)]


def last_words(errors: str) -> str:
    lines = [line.strip() for line in errors.splitlines() if line.strip()]
    told = [line for line in lines if "error" in line.lower() or "fault" in line or "not checked" in line or "wrong" in line]
    return (told or lines or [""])[-1][:300]


def all_faults(program: Path = PROGRAM) -> dict[str, str]:
    """What the program can spoil, and in which words."""
    text = subprocess.run([str(program), "--faults"], check=True, capture_output=True, text=True).stdout
    return dict(line.split("\t", 1) for line in text.splitlines())


def run(rows: list[Row], folder: Path, program: Path, jobs: int, journal: Journal) -> list[Outcome]:
    with ThreadPoolExecutor(jobs) as pool:
        workshop = Workshop(folder, program, warm_python())

        def work(row: Row) -> Outcome:
            outcome = workshop.outcome(row)
            word = "caught" if outcome.caught else "MISSED" if not row.missed else "missed"
            print(f"{word} {outcome.row}, {outcome.seconds:.0f} s: {outcome.said}", flush=True)
            journal.add((outcome.row,), asdict(outcome))
            return outcome

        return list(pool.map(work, rows))


HEAD = """# Faults that the check finds

Exports of small models with one deliberate fault inside (`tests/sabotage`): what the check of the export said. The same exports
without a fault pass. Written by `python tests/sweeps sabotage --table`.

{caught} of {count} rows are caught ({share:.0f} %): {faults} faults in {exports} kinds of exports.
"""


def page(outcomes: list[Outcome], rows: dict[str, Row], faults: dict[str, str]) -> list[str]:
    caught = [each for each in outcomes if each.caught]
    head = HEAD.format(caught=len(caught), count=len(outcomes), share=100 * len(caught) / max(len(outcomes), 1),
                       faults=len({each.fault for each in outcomes}), exports=len({each.export for each in outcomes}))  # fmt: skip
    cells = []
    for each in sorted(outcomes, key=lambda one: (one.caught, one.row)):
        said = f"`{each.said}`" if each.caught else f"**missed**: {rows[each.row].missed or each.said}"
        cells.append([faults.get(each.fault, each.fault), each.model, each.export, said])
    return [head, *table(("fault", "model", "export", ""), cells)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps sabotage", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", default=[], help="rows whose name has this text; may be given again")
    parser.add_argument("--table", type=Path, help="where the table goes")
    parser.add_argument("--folder", type=Path, help="keeps checkpoints and captures from run to run")
    parser.add_argument("--work", type=Path, default=Path("build/coverage"), help="data, as it comes")
    parser.add_argument("--resume", action="store_true", help="faults that were caught before are not tried again")
    parser.add_argument("--program", type=Path, default=PROGRAM)
    options = parser.parse_args(arguments)
    faults = all_faults(options.program)
    if unknown := sorted({row.fault for row in ROWS} - set(faults)):
        parser.error(f"there is no fault {', '.join(unknown)}")
    rows = [row for row in ROWS if not options.only or any(text in row.name for text in options.only)]
    journal = Journal(options.work / "sabotage.jsonl", installed("torch", "transformers"))
    if not options.resume:
        journal.forget({(row.name,) for row in rows})
    kept = {key[0]: Outcome(**outcome) for key, outcome in journal.read().items() if outcome["caught"]}
    fresh = [row for row in rows if row.name not in kept]
    with contextlib.ExitStack() as stack:
        folder = options.folder or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="argosy-sabotage-")))
        folder.mkdir(parents=True, exist_ok=True)
        made = {each.row: each for each in run(fresh, folder.resolve(), options.program.resolve(), options.jobs, journal)}
    outcomes = [kept.get(row.name) or made[row.name] for row in rows]
    if options.table:
        write_page(options.table, page(outcomes, {row.name: row for row in ROWS}, faults))
    missed = [each for each, row in zip(outcomes, rows, strict=True) if not each.caught and not row.missed]
    print(f"{sum(each.caught for each in outcomes)} of {len(outcomes)} caught, {len(missed)} missed without a reason")
    return 1 if missed else 0
