#!/usr/bin/env python3
"""Writes the corpus of hostile files: deterministic, needs nothing but Python.

    tests/corpus/make_corpus.py FOLDER [--only PART]

Every cases_*.py beside this file has a function cases() -> list[Case]; a new family of files is a new such module.
FOLDER/manifest.json lists (path, code, message) of every case. With --only, cases whose path does not hold PART are
left out; fuzzers take their seeds so.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from case import Case


def all_cases() -> list[Case]:
    """Every case, sorted by path; two of one path or with one message are an error."""
    cases = [case for module in sorted(HERE.glob("cases_*.py")) for case in importlib.import_module(module.stem).cases()]
    for what in ("path", "message"):
        values = [getattr(case, what) for case in cases]
        twice = sorted({value for value in values if values.count(value) > 1})
        if twice:
            raise SystemExit(f"two hostile files share a {what}: {twice}")
    return sorted(cases, key=lambda case: case.path)


def make_corpus(folder: Path, only: str = "") -> list[Case]:
    """Writes all cases into a folder that is new or empty."""
    folder.mkdir(parents=True, exist_ok=True)
    cases = [case for case in all_cases() if only in case.path]
    for case in cases:
        path = folder / case.path
        path.parent.mkdir(parents=True, exist_ok=True)
        case.write(path)
    rows = [{"path": case.path, "code": case.code, "message": case.message} for case in cases]
    (folder / "manifest.json").write_text(json.dumps(rows, indent=2) + "\n")
    return cases


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    print(f"{len(make_corpus(options.folder, options.only))} hostile files in {options.folder}")


if __name__ == "__main__":
    main()
