"""The data of a sweep: one line of JSON for each result, written as it comes, so that a run that is ended can be resumed."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Any

#: What a result is of: a family and a tool, a model type, the name of a row.
Key = tuple[str, ...]
Results = dict[Key, dict[str, Any]]


class Journal:
    """Results under keys. Of two with the same key the later one counts, and only what was measured with `versions` counts."""

    def __init__(self, path: Path, versions: dict[str, str] | None = None) -> None:
        self.path, self.versions = path, versions or {}

    def read(self) -> Results:
        return {tuple(line["key"]): line["outcome"] for line in self._lines() if line["versions"] == self.versions}

    def add(self, key: Key, outcome: dict[str, Any]) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        line = {"key": key, "versions": self.versions, "outcome": outcome}
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")

    def forget(self, keys: Collection[Key]) -> None:
        """What is run anew: a run that ends before it comes to these can be resumed."""
        if self.path.exists():
            lines = [line for line in self._lines() if tuple(line["key"]) not in keys]
            temporary = self.path.with_suffix(".tmp")
            temporary.write_text("".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines), encoding="utf-8")
            os.replace(temporary, self.path)

    def last_versions(self, wanted: Callable[[Key], bool] = lambda _: True) -> dict[str, str]:
        """Of the last result that is `wanted`."""
        found = [line["versions"] for line in self._lines() if wanted(tuple(line["key"]))]
        return found[-1] if found else {}

    def _lines(self) -> list[dict[str, Any]]:
        found = []
        for text in self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else ():
            try:
                found.append(json.loads(text))
            except ValueError:  # The run was ended while it wrote this line.
                continue
        return found
