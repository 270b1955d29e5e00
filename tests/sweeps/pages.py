"""What pages of sweeps have in common: tables and versions."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from pathlib import Path

from argosy.sweep.markdown import cell, table

__all__ = ["cell", "installed", "table", "versions_text", "write_page"]


def installed(*names: str) -> dict[str, str]:
    """Versions of packages."""
    return {name: importlib.metadata.version(name) for name in names}


def versions_text(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def write_page(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
