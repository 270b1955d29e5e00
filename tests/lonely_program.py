"""The program in a folder of its own, where there is no Python beside it."""

from __future__ import annotations

import shutil
from pathlib import Path


def copy_program(program: Path, folder: Path) -> Path:
    """Into ``folder/bin``; that of a package with its library, which it needs."""
    (folder / "bin").mkdir(parents=True)
    for library in program.resolve().parents[1].glob("lib/libargosy.so*"):
        (folder / "lib").mkdir(exist_ok=True)
        shutil.copy(library, folder / "lib")
    return Path(shutil.copy(program, folder / "bin"))
