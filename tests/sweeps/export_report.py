"""The report of exports that were run in an engine."""

from __future__ import annotations

from typing import Any

from .capture_report import by_kind, reasons, rows_of
from .families import Family
from .journal import Results
from .pages import table, versions_text


def document(engine: str, families: list[Family], results: Results, versions: dict[str, str]) -> dict[str, Any]:
    return {"engine": engine, "versions": versions, "families": rows_of(families, results, **{engine: engine})}


def render(document: dict[str, Any]) -> str:
    engine, rows = document["engine"], document["families"]
    lines = [
        f"# Exports to {engine}, family by family",
        "",
        f"Written by `python tests/sweeps {engine}` with {versions_text(document['versions'])}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights, which `argosy export`"
        f" exported with all its components. *ok*: in a process that has {engine}'s engine and neither transformers nor argosy,"
        " every call gave what the eager model gives: at the edge shapes (batch 1 and 3, one token and many, no past and a"
        " long one, left padding, other media, both sides of windows, chunks and rotary limits), as `generate` calls it,"
        " and greedy tokens one by one. *max abs*: the largest difference of any output.",
        "",
    ]
    counts = by_kind(rows, lambda kind, same: {"kind": kind, "found": [row[engine]["status"] for row in same]})
    lines += table(
        ("kind", "families", "run", "ok"),
        ([c["kind"], len(c["found"]), len(c["found"]) - c["found"].count("not run"), c["found"].count("ok")] for c in counts),
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
