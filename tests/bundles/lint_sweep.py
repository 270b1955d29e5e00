"""Lints many bundles and prints a table of what was found; ends with 1 if there is any finding.

    python tests/bundles/lint_sweep.py FOLDER… [--program build/release/apps/cli/argosy] [--markdown FILE]

Each FOLDER is a bundle, or holds bundles at any depth: what has a bundle.json or a genai_config.json is one.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


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


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--program", type=Path, default=ROOT / "build/release/apps/cli/argosy")
    parser.add_argument("--markdown", type=Path, help="write the table of findings there, too")
    options = parser.parse_args()
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
    if options.markdown:
        lines = ["| bundle | engine | severity | rule | what |", "|---|---|---|---|---|"]
        lines += ["| {} | {} | {} | `{}` | {} |".format(*row) for row in rows]
        options.markdown.write_text("\n".join(lines) + "\n")
    return 1 if rows or not counts else 0


if __name__ == "__main__":
    sys.exit(main())
