"""Sends archives of the corpus through `argosy opt` and back into torch, and keeps a row of results per model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from archive import count_ops, read_program
from export_models import export_all, is_exported
from worker_pool import run_jobs

REPOSITORY = Path(__file__).resolve().parents[2]
JOBS = 2
TOOL_TIMEOUT_SECONDS = 600
#: Passes that backends share; they keep every bit.
LOWERING_PASSES = "decompose-structures,functionalise,normalise,eliminate-dead-code,compact-ids"


@dataclass
class Row:
    """What happened to one model; `error` is empty when everything went well."""

    name: str
    kind: str
    nodes: int = 0
    ops: int = 0
    verified: int = 0
    values: int = 0
    error: str = ""


@dataclass
class RoundTrip:
    archives: Path
    written: Path
    passes: str = ""  # that `argosy opt` runs, names separated by commas
    rows: dict[str, Row] = field(default_factory=dict)

    def run(self, kinds: dict[str, str]) -> None:
        """Exports what is not there yet, then converts and compares the models named in `kinds`."""
        self.rows = {name: Row(name, kind) for name, kind in kinds.items()}
        missing = [name for name in kinds if not is_exported(self.archives, name)]
        for name, answer in export_all(self.archives, missing, JOBS).items() if missing else ():
            if "error" in answer:
                self.rows[name].error = f"export: {answer['error']}"
        schemas = find_schemas(self.written)
        with ThreadPoolExecutor(JOBS) as threads:
            list(threads.map(lambda row: self._convert(row, schemas), self._sound_rows()))
        requests = {row.name: self._comparison(row) for row in self._sound_rows()}
        if requests:
            command = [sys.executable, str(Path(__file__).with_name("compare_archives.py"))]
            for name, answer in run_jobs(command, requests, JOBS).items():
                self.rows[name].values = answer.get("values", 0)
                self.rows[name].error = answer.get("error", "")

    def _sound_rows(self) -> list[Row]:
        return [row for row in self.rows.values() if not row.error]

    def _comparison(self, row: Row) -> dict[str, str]:
        return {
            "original": str(self.archives / f"{row.name}.pt2"),
            "written": str(self.written / f"{row.name}.back.pt2"),
            "inputs": str(self.archives / f"{row.name}.inputs.pt"),
        }

    def _convert(self, row: Row, schemas: Path) -> None:
        archive, back = self.archives / f"{row.name}.pt2", self.written / f"{row.name}.back.pt2"
        ops = count_ops(read_program(archive))
        row.nodes, row.ops = ops.total(), len(ops)
        command = [str(find_program()), "opt", str(archive), "--check-text", "--verify-each", "-o", str(back)]
        if self.passes:
            command.append(f"--passes={self.passes}")
        try:
            done = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TOOL_TIMEOUT_SECONDS,
                env={**os.environ, "ARGOSY_SCHEMAS": str(schemas)},
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            row.error = f"argosy opt: {error}"
            return
        output = done.stdout + done.stderr
        if found := re.search(r"verified (\d+) nodes", output):
            row.verified = int(found[1])
        if done.returncode != 0:
            row.error = f"argosy opt: exit status {done.returncode}\n{output}"
        elif row.verified < row.nodes:  # more, where casts make promotion explicit
            row.error = f"argosy opt: verified {row.verified} of {row.nodes} nodes\n{output}"
        elif not back.exists():
            row.error = f"argosy opt: {back.name} was not written\n{output}"


def find_program() -> Path:
    return Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()


def find_schemas(directory: Path) -> Path:
    """The schema file of ARGOSY_SCHEMAS, or a new one."""
    if given := os.environ.get("ARGOSY_SCHEMAS"):
        return Path(given).absolute()
    path = directory / "op_schemas.txt"
    subprocess.run([sys.executable, str(REPOSITORY / "tools/write_op_schemas.py"), "-o", str(path)], check=True)
    return path


def format_table(rows: list[Row]) -> list[str]:
    form = "{:<32} {:<20} {:>6} {:>5} {:>9} {:>7}  {}"
    lines = [form.format("model", "kind", "nodes", "ops", "verified", "values", "result")]
    for row in rows:
        result = f"FAILED {row.error.splitlines()[0]}" if row.error else "bit-equal"
        lines.append(form.format(row.name, row.kind, row.nodes, row.ops, row.verified, row.values, result))
    good = sum(not row.error for row in rows)
    nodes = sum(row.nodes for row in rows)
    lines.append(f"{good} of {len(rows)} models bit-equal, {nodes} nodes")
    return lines
