"""What pages of sweeps have in common: tables and versions."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterable
from pathlib import Path
from typing import Any


def table(head: Iterable[str], rows: Iterable[Iterable[Any]]) -> list[str]:
    head = list(head)
    return [_line(head), _line("---" for _ in head), *(_line(row) for row in rows)]


def _line(cells: Iterable[Any]) -> str:
    return f"| {' | '.join(cell(each) for each in cells)} |"


def cell(value: Any) -> str:
    """On one line, and without the sign that ends a cell."""
    return " ".join(str(value).split()).replace("|", "/")


def installed(*names: str) -> dict[str, str]:
    """Versions of packages."""
    return {name: importlib.metadata.version(name) for name in names}


def versions_text(versions: dict[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())


def write_page(path: Path, lines: Iterable[str]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
