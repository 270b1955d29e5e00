"""The installed package, checked by the Python that has it: $ARGOSY_PYTHON, else that of build/package."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from cli_tool import REPOSITORY


def test_installed_package() -> None:
    python = os.environ.get("ARGOSY_PYTHON", REPOSITORY / "build/package/bin/python")
    checks = Path(__file__).with_name("package_checks.py")
    done = subprocess.run([str(python), str(checks)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
