"""The report of exports that were run in an engine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .families import KINDS, Family
from .report import Results, reasons, table


def write_export_report(
    engine: str, families: list[Family], results: Results, versions: dict[str, str], folder: Path
) -> None:
    rows = [
        {"family": family.name, "model_type": family.model_type, "kind": family.kind,
         engine: results.get((family.name, engine), {"status": "not run"})}
        for family in families
    ]  # fmt: skip
    folder.mkdir(parents=True, exist_ok=True)
    document = {"engine": engine, "versions": versions, "families": rows}
    (folder / f"{engine}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    (folder / f"{engine}.md").write_text(render(document), encoding="utf-8")


def render(document: dict[str, Any]) -> str:
    engine, rows = document["engine"], document["families"]
    versions = ", ".join(f"{name} {version}" for name, version in document["versions"].items())
    lines = [
        f"# Exports to {engine}, family by family",
        "",
        f"Written by `python -m argosy.coverage {engine}` with {versions}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights, which `argosy export`"
        f" exported with all its components. *ok*: in a process that has {engine}'s engine and neither transformers nor argosy,"
        " every call gave what the eager model gives: at the edge shapes (batch 1 and 3, one token and many, no past and a"
        " long one, left padding, other media, both sides of windows, chunks and rotary limits), as `generate` calls it,"
        " and greedy tokens one by one. *max abs*: the largest difference of any output.",
        "",
    ]
    kinds = [kind for kind in (*KINDS, "other") if any(row["kind"] == kind for row in rows)]
    counts = [(kind, [row[engine]["status"] for row in rows if row["kind"] == kind]) for kind in kinds]
    counts.append(("total", [row[engine]["status"] for row in rows]))
    lines += table(
        ("kind", "families", "run", "ok"),
        ([kind, len(found), len(found) - found.count("not run"), found.count("ok")] for kind, found in counts),
    )
    lines += ["", "## Families", ""]
    lines += table(
        ("family", "class", "kind", engine, "components", "calls right", "greedy tokens", "max abs", "CPU s"),
        (_cells(row, row[engine]) for row in rows),
    )
    lines += ["", "## What did not work", "", *(list(reasons(rows, engine)) or ["Nothing."])]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any], outcome: dict[str, Any]) -> list[Any]:
    parts = outcome.get("components", {})
    largest = [part["max_abs"] for part in parts.values()]
    tokens = outcome.get("tokens") or [0, 0]
    return [
        row["family"],
        outcome.get("class", ""),
        row["kind"],
        outcome["status"],
        ", ".join(parts),
        f"{sum(part['right'] for part in parts.values())} of {sum(part['calls'] for part in parts.values())}"
        if parts
        else "",
        f"{tokens[0]} of {tokens[1]}" if tokens[1] else "",
        f"{max(largest):.1e}" if largest and None not in largest else "",
        outcome.get("cpu_seconds", ""),
    ]
