#!/usr/bin/env python3
"""Rewrites golden files so that they expect what the program does now. Read the difference before committing it.

tools/update_goldens.py [FILE…]     without files: all of tests/golden
The program is $ARGOSY_BIN, else that of the release or the dev preset.
"""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def find_program() -> str:
    if program := os.environ.get("ARGOSY_BIN"):
        return program
    for preset in ("release", "dev"):
        path = ROOT / "build" / preset / "apps" / "cli" / "argosy"
        if path.exists():
            return str(path)
    sys.exit("tools/update_goldens.py: no argosy program; build the preset dev or set ARGOSY_BIN")


def main() -> int:
    files = sys.argv[1:] or [str(path) for path in sorted((ROOT / "tests" / "golden").rglob("*.ir"))]
    return subprocess.run([find_program(), "opt", "--update-golden", "--golden", *files], check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
