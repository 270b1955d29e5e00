"""The page of all commands: what `--help` says of each."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from links import REPOSITORY


def find_program() -> Path:
    program = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy"))
    if not os.access(program, os.X_OK):
        raise FileNotFoundError(f"there is no program {program}: build it, or name one in ARGOSY_BIN")
    return program


def page() -> str:
    """Generated from the program itself."""
    program = find_program()

    def said(*arguments: str) -> str:
        return subprocess.run([program, *arguments], check=True, capture_output=True, text=True).stdout

    names = re.findall(r"^\.SS argosy (.*)$", said("help", "--man"), re.MULTILINE)
    text = "# Commands\n\nWhat the program itself says with `--help`. `argosy help --man | man -l -` is all of it as a manual page.\n"
    for name in ["", *names]:
        shown = f"argosy {name}".strip()
        text += f"\n## {shown}\n\n~~~~~~text\n{said(*name.split(), '--help').rstrip()}\n~~~~~~\n"
    return text
