"""Sweeps of jobs that end as their names say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("simulated_program.sh")


@dataclass
class Simulation:
    """A folder with models, jobs and what comes of them."""

    folder: Path

    def __post_init__(self) -> None:
        (self.folder / "simulated").mkdir(parents=True, exist_ok=True)

    @property
    def environment(self) -> dict[str, str]:
        own = {"SIMULATED": str(self.folder / "simulated"), "PYTHONPATH": str(REPOSITORY / "python"), "PYTHON": sys.executable}
        return {**os.environ, **own}

    def write_jobs(self, names: Iterable[str], configurations: int = 3, **fields: Any) -> None:
        """A model for each name, whose configurations are as many in turn."""
        lines = []
        for i, name in enumerate(names):
            model = self.folder / "models" / name
            model.mkdir(parents=True, exist_ok=True)
            (model / "config.json").write_text(json.dumps({"model_type": f"kind-{i % configurations}"}) + "\n")
            lines.append(json.dumps({"model": str(model), **fields}))
        (self.folder / "jobs.jsonl").write_text("\n".join(lines) + "\n")

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "argosy.sweep", str(self.folder / "jobs.jsonl"), f"--program={PROGRAM}",
                *map(str, arguments)]  # fmt: skip

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        return subprocess.run(self.command(*arguments), env=self.environment, capture_output=True, text=True, timeout=300)

    def start(self, *arguments: object) -> subprocess.Popen[bytes]:
        return subprocess.Popen(self.command(*arguments), env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def lines(self, folder: str = "jobs") -> list[dict[str, Any]]:
        """Of all journals; a line that is no JSON is an error."""
        found = sorted((self.folder / folder).glob("results*.jsonl"))
        return [json.loads(line) for path in found for line in path.read_text().splitlines()]

    def statuses(self, folder: str = "jobs") -> dict[str, str]:
        return {line["name"]: line["status"] for line in self.lines(folder)}

    def noted(self, name: str) -> list[str]:
        path = self.folder / "simulated" / name
        return path.read_text().split() if path.exists() else []
