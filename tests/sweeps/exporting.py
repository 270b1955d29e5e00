"""Exports by the command-line program: what it refuses, in its own words."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path


def export(program: str | Path, *arguments: str | Path) -> tuple[str, str]:
    """Why there is no export ("" if there is one), and all that the program said."""
    done = subprocess.run([str(program), "export", *map(str, arguments)], capture_output=True, text=True)
    said = done.stderr + done.stdout
    if done.returncode == 0:
        return "", said
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = list(dict.fromkeys(line for line in lines if line.startswith("error"))) or lines[-1:]
    errors = [re.sub(r"^error\[[\w-]+\]: (?=no capture was made: )", "", line) for line in errors]
    return ("; ".join(errors) or f"exit code {done.returncode}")[:600], said


def export_bundle(program: str | Path, engine: str, model: Path, output: Path, options: tuple[str, ...] = ()) -> tuple[str, str]:
    """As above, of a bundle for an engine."""
    refusal, said = export(program, "onnx", "--model", model, "--for", engine, "--check", "off", *options, "-o", output)
    return without(refusal, str(model.parent)), said


def without(text: str, folder: str) -> str:
    """Without names of temporary folders, which differ in every run."""
    return text.replace(f"{folder}/", "").replace(folder, "")
