"""The page of captures, and what pages of families have in common."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from .families import KINDS, Family
from .journal import Results
from .pages import cell, table, versions_text


def document(families: list[Family], results: Results, versions: dict[str, str]) -> dict[str, Any]:
    rows = rows_of(families, results, ours="ours", peer="peer")
    return {"versions": versions, "summary": by_kind(rows, _count), "families": rows}


def rows_of(families: list[Family], results: Results, **tools: str) -> list[dict[str, Any]]:
    """What came of each family, by columns: a name and the tool whose result it has."""
    missing = {"status": "not run"}
    return [{"family": family.name, "kind": family.kind, **{name: results.get((family.name, tool), missing) for name, tool in tools.items()}}
            for family in families]  # fmt: skip


def by_kind(rows: list[dict[str, Any]], count: Callable[[str, list[dict[str, Any]]], dict[str, Any]]) -> list[dict[str, Any]]:
    """What ``count`` makes of the rows of each kind, and of all."""
    kinds = [kind for kind in (*KINDS, "other") if any(row["kind"] == kind for row in rows)]
    return [count(kind, [row for row in rows if row["kind"] == kind]) for kind in kinds] + [count("total", rows)]


def _count(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "kind": kind,
        "tried": len(rows),
        "twins": sum(bool(row["ours"].get("twin")) for row in rows),
        "ours": sum(row["ours"]["status"] == "ok" for row in rows),
        "ours_edges": sum(_all_edges(row["ours"]) for row in rows),
        "peer_tried": sum(row["peer"]["status"] != "not run" for row in rows),
        "peer": sum(row["peer"]["status"] == "ok" for row in rows),
        "peer_traced": sum(row["peer"]["status"] in ("ok", "wrong") for row in rows),
    }


def _all_edges(outcome: dict[str, Any]) -> bool:
    return outcome["status"] == "ok" and 0 < outcome.get("edges", 0) == outcome.get("edges_ok")


def render(document: dict[str, Any]) -> str:
    lines = [
        "# Capture, family by family",
        "",
        f"Written by `python tests/sweeps capture` with {versions_text(document['versions'])}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights. *ok*: every component was"
        " captured, and its outputs are those of the eager model at the shape of the capture and at another one. *peer* is"
        " `transformers.exporters.DynamoExporter` with `dynamic=True` on the same twin, held to the same; *peer traced*"
        " also counts programs that are wrong at one of the two shapes or refuse it. *edges*: further shapes that agree, of"
        " those tried: batch 1 and 3, one token and many, no past and a long one, left padding, other media, both sides of"
        " windows, chunks and rotary limits. A family with limits is right up to there, and is not called beyond.",
        "",
    ]
    lines += table(
        ("kind", "tried", "twins run", "ours ok", "ours ok at all edges", "peer tried", "peer ok", "peer traced"),
        (
            [c[key] for key in ("kind", "tried", "twins", "ours", "ours_edges", "peer_tried", "peer", "peer_traced")]
            for c in document["summary"]
        ),
    )
    lines += ["", "## Families", ""]
    lines += table(
        ("family", "class", "kind", "ours", "edges", "components", "nodes", "CPU s", "peak MB", "peer", "peer CPU s"),
        (_cells(row) for row in document["families"]),
    )
    if limits := list(_limits(document["families"])):
        lines += ["", "## Limits of graphs", "", *limits]
    lines += ["", "## What did not work", ""]
    failed = list(reasons(document["families"], "ours"))
    lines += failed or ["Nothing."]
    if edges := [
        f"- **{row['family']}**: {cell(row['ours']['edges_reason'])}"
        for row in document["families"]
        if row["ours"]["status"] == "ok" and row["ours"].get("edges_reason")
    ]:
        lines += ["", "## Edges that did not agree", "", *edges]
    if peer := list(reasons(document["families"], "peer")):
        lines += ["", "## What did not work in the peer", "", *peer]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any]) -> list[Any]:
    ours, peer = row["ours"], row["peer"]
    components = ", ".join(ours.get("components", {}))
    return [
        row["family"],
        ours.get("class", ""),
        row["kind"],
        ours["status"],
        f"{ours['edges_ok']} of {ours['edges']}" if "edges" in ours else "",
        components,
        ours.get("nodes", ""),
        ours.get("cpu_seconds", ""),
        ours.get("peak_mb", ""),
        peer["status"],
        peer.get("cpu_seconds", ""),
    ]


def _limits(rows: list[dict[str, Any]]) -> Iterable[str]:
    """Where graphs are right that are not so everywhere; sizes are those of twins."""
    for row in rows:
        for component, part in row["ours"].get("components", {}).items():
            if part.get("limits"):
                yield f"- **{row['family']}**, {component}: {', '.join(f'`{limit}`' for limit in part['limits'])}"


def reasons(rows: list[dict[str, Any]], tool: str) -> Iterable[str]:
    for row in rows:
        if row[tool]["status"] not in ("ok", "not run"):
            yield f"- **{row['family']}** ({row[tool]['status']}): {cell(row[tool].get('reason', ''))}"
