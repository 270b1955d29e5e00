"""Finds the built extension for tests that run from the sources."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


def find_core() -> None:
    """Makes ``argosy._core`` importable: from $ARGOSY_CORE, from beside $ARGOSY_BIN (a virtual environment with the package),
    or from the release preset's build."""
    import argosy

    if importlib.util.find_spec("argosy._core") is not None:
        return
    folders = [REPOSITORY / "build/release/apps/python"]
    if program := os.environ.get("ARGOSY_BIN"):
        folders[:0] = [*Path(program).absolute().parents[1].glob("lib/python*/site-packages/argosy")]
    if folder := os.environ.get("ARGOSY_CORE"):
        folders[:0] = [Path(folder)]
    for folder in folders:
        if any(folder.glob("_core*.so")):
            argosy.__path__.append(str(folder))
            return
    raise ImportError("the extension is not built: cmake --build --preset release, or name its folder by ARGOSY_CORE")
