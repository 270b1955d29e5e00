"""Runs the argosy program for tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Argosy:
    """The program, with a cache folder of its own."""

    program: Path
    cache: Path
    schemas: Path

    def run(self, *arguments: str | Path, code: int = 0, stdin: str = "", **environment: str) -> tuple[str, str]:
        """stdout and stderr of a run that must end with `code`."""
        variables = {**os.environ, "ARGOSY_CACHE": str(self.cache), "ARGOSY_SCHEMAS": str(self.schemas), **environment}
        done = subprocess.run(
            [str(self.program), *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            timeout=600,
            env=variables,
            check=False,
        )
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def json(self, *arguments: str | Path) -> dict:
        return json.loads(self.run(*arguments, "--json")[0])


def find_argosy(directory: Path) -> Argosy:
    """$ARGOSY_BIN, or the program of the release preset; op schemas of the installed torch."""
    program = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
    schemas = directory / "op_schemas.txt"
    tool = REPOSITORY / "tools/write_op_schemas.py"
    subprocess.run([sys.executable, str(tool), "-o", str(schemas)], check=True, capture_output=True)
    return Argosy(program, directory / "cache", schemas)
