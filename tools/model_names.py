#!/usr/bin/env python3
"""Counts the names of model types in the code of captures, which should go by what models can do and not by which they are.

    tools/model_names.py      prints each name and where it is, and how many there are

A name is a text that is a model type of transformers and nothing else. The tables of roles are not counted: their rows name a type
whose twin needs the row, for its test. Names that are also words of that code (as `text_config` keys) are not model types.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Collection, Iterator
from pathlib import Path

CAPTURE = Path(__file__).resolve().parents[1] / "python/argosy/capture"
_TABLES = "roles.py"


def model_names(folder: Path, types: Collection[str]) -> Iterator[tuple[str, int, str]]:
    """File, line and name of each, sorted by file."""
    for path in sorted(folder.rglob("*.py")):
        if path.name == _TABLES:
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value in types:
                yield path.relative_to(folder).as_posix(), node.lineno, node.value


def main() -> int:
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    found = list(model_names(CAPTURE, CONFIG_MAPPING_NAMES))
    for path, line, name in found:
        print(f"{path}:{line}: {name}")
    print(f"{len(found)} names of model types")
    return 0


if __name__ == "__main__":
    sys.exit(main())
