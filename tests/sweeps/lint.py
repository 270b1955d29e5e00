"""Lints many bundles and prints a table of what was found; ends with 1 if there is any finding.

    python tests/sweeps lint FOLDER… [--table FILE]

Each FOLDER is a bundle, or holds bundles at any depth: what has a bundle.json or a genai_config.json is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

from . import PROGRAM
from .pages import table, write_page


def bundles(folder: Path) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        if {"bundle.json", "genai_config.json"} & set(files):
            folders.clear()
            yield Path(place)
        folders.sort()


def lint(program: Path, folder: Path) -> dict:
    done = subprocess.run(
        [str(program), "lint", str(folder), "--json"], capture_output=True, text=True, timeout=300, check=False
    )
    if done.returncode not in (0, 3):
        return {"engine": "?", "findings": [{"severity": "error", "rule": "cannot be linted", "what": done.stderr}]}
    return json.loads(done.stdout)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps lint", description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--program", type=Path, default=PROGRAM)
    parser.add_argument("--table", type=Path, help="write the findings there, too")
    options = parser.parse_args(arguments)
    rows, counts = [], {}
    for given in options.folders:
        for folder in bundles(given):
            report = lint(options.program, folder)
            linted, found = counts.get(report["engine"], (0, 0))
            counts[report["engine"]] = (linted + 1, found + bool(report["findings"]))
            name = folder.relative_to(given).as_posix() if folder != given else folder.name
            for finding in report["findings"]:
                rows.append((name, report["engine"], finding["severity"], finding["rule"], finding["what"]))
                print("{} ({}): {}[{}] {}".format(*rows[-1]), flush=True)
    for engine, (linted, found) in sorted(counts.items()):
        print(f"{engine}: {linted} bundles, {found} with findings")
    if options.table:
        write_page(options.table, table(("bundle", "engine", "severity", "rule", "what"), rows))
    return 1 if rows or not counts else 0
