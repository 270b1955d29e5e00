"""The report of exports that were run in an engine, component by component, beside a peer."""

from __future__ import annotations

from typing import Any

from .capture_report import by_kind, reasons, rows_of
from .families import Family
from .journal import Results
from .pages import table, versions_text


#: What each engine's report says of the exporter beside it.
_PEERS = {
    "onnx": "The *peer* is `transformers.exporters.OnnxExporter` with `dynamic=True` on the same twins, in the components that it"
    " takes models apart into (a prompt and a step count as two), run in ONNX Runtime at three shapes: the traced one,"
    " another one, and one short row; held to the same tolerance.",
    "executorch": "The *peer* is `transformers.exporters.ExecutorchExporter` with `backend=\"xnnpack\", dynamic=True` on the twins of"
    " the first families of each kind, in the components that it takes models apart into (a prompt and a step count as two), run"
    " in ExecuTorch's runtime at three shapes: the traced one, another one, and one short row; held to the same tolerance.",
}


_NOTES = {
    "onnx": " *ok* also means calls as `generate` makes them, and greedy tokens one by one.",
    "executorch": " Shapes beyond what memory is reserved for (`--shape`; by default batches of 4, and 256 or twice the traced size of"
    " other dims) are not called. *Delegated*: the share of the multiply-adds of each method that XNNPACK computes.",
}


def document(engine: str, families: list[Family], results: Results, versions: dict[str, str], recipe: str = "") -> dict[str, Any]:
    """`recipe`: what was asked of the export, for engines that have several."""
    rows = rows_of(families, results, ours=engine, peer=f"{engine}_peer")
    return {"engine": engine, "recipe": recipe, "versions": versions, "summary": by_kind(rows, _count), "families": rows}


def ours_right(outcome: dict[str, Any]) -> dict[str, bool]:
    """Each component of a twin that runs eagerly, and whether it is right at all edge shapes. What was not reached is not."""
    parts = outcome.get("components", {})
    names = outcome.get("expected") or list(parts) or (["model"] if outcome.get("twin") else [])
    return {
        name: name in parts and 0 < parts[name]["edges"] == parts[name]["edges_right"] for name in names
    }


def peer_right(outcome: dict[str, Any], where: str = "") -> dict[str, bool]:
    """Each component that the peer takes apart, and whether it is right at all shapes, or at one."""
    parts = outcome.get("components") or ({"model": {"status": "failed"}} if outcome.get("twin") else {})
    if where:
        return {name: bool(part.get("calls", {}).get(where)) for name, part in parts.items()}
    return {name: part["status"] == "ok" for name, part in parts.items()}


def _count(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    ours = [right for row in rows for right in ours_right(row["ours"]).values()]
    captured = [right for row in rows if row["ours"].get("captured") for right in ours_right(row["ours"]).values()]
    peer = [right for row in rows for right in peer_right(row["peer"]).values()]
    traced = [right for row in rows for right in peer_right(row["peer"], "traced").values()]
    both = [row for row in rows if "not run" not in (row["ours"]["status"], row["peer"]["status"])]
    return {
        "kind": kind,
        "families": len(rows),
        "components": len(ours),
        "captured": len(captured),
        "right": sum(ours),
        "right_of_captured": sum(captured),
        "peer_families": sum(row["peer"]["status"] != "not run" for row in rows),
        "peer_components": len(peer),
        "peer_right": sum(peer),
        "peer_traced": sum(traced),
        "families_right": sum(row["ours"]["status"] != "not run" and all(ours_right(row["ours"]).values()) for row in rows),
        "both": len(both),
        "both_ours": sum(all(ours_right(row["ours"]).values()) for row in both),
        "both_peer": sum(all(peer_right(row["peer"]).values()) for row in both),
    }


def share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


def render(document: dict[str, Any]) -> str:
    engine, rows = document["engine"], document["families"]
    recipe = f" --recipe {document['recipe']}" if document.get("recipe") else ""
    has_shares = any("delegated" in row["ours"] for row in rows)
    lines = [
        f"# Exports to {engine}, family by family",
        "",
        f"Written by `python tests/sweeps {engine}{recipe}` with {versions_text(document['versions'])}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights, which `argosy export`"
        f" exported with all its components. A component is *right* if, in a process that has {engine}'s engine and neither"
        " transformers nor argosy, every call at the edge shapes (batch 1 and 3, one token and many, no past and a long one,"
        " left padding, other media, both sides of windows, chunks and rotary limits) gave what the eager model gives, up to"
        " 1e-4 of the output's scale." + _NOTES[engine] +
        " *Components* counts those of all twins that run eagerly, *captured* those that came as far as the export.",
        "",
        _PEERS[engine],
        "",
    ]
    lines += table(
        ("kind", "families", "components", "right", "captured", "right of captured", "peer components", "peer right",
         "peer right at the traced shape"),
        (
            [
                c["kind"], c["families"], c["components"], share(c["right"], c["components"]), c["captured"],
                share(c["right_of_captured"], c["captured"]), c["peer_components"],
                share(c["peer_right"], c["peer_components"]), share(c["peer_traced"], c["peer_components"]),
            ]
            for c in document["summary"]
        ),
    )  # fmt: skip
    lines += ["", "Families of which all components are right, among those that both were run on:", ""]
    lines += table(
        ("kind", "families", "ours", "peer"),
        ([c["kind"], c["both"], share(c["both_ours"], c["both"]), share(c["both_peer"], c["both"])] for c in document["summary"]),
    )
    lines += ["", "## Families", ""]
    lines += table(
        ("family", "class", "kind", "ours", "right", *(("delegated",) if has_shares else ()), "calls right", "greedy tokens",
         "max abs", "CPU s", "peer", "peer right", "peer CPU s"),
        (_cells(row, has_shares) for row in rows),
    )  # fmt: skip
    lines += ["", "## What did not work", "", *(list(reasons(rows, "ours")) or ["Nothing."])]
    if peer := list(reasons(rows, "peer")):
        lines += ["", "## What did not work in the peer", "", *peer]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any], has_shares: bool) -> list[Any]:
    ours, peer = row["ours"], row["peer"]
    parts = ours.get("components", {})
    largest = [part["max_abs"] for part in parts.values()]
    tokens = ours.get("tokens") or [0, 0]
    calls = [sum(part[key] for part in parts.values()) for key in ("right", "calls")]
    right, peers = ours_right(ours), peer_right(peer)
    return [
        row["family"],
        ours.get("class") or peer.get("class", ""),
        row["kind"],
        ours["status"],
        ", ".join(f"{name}{'' if good else ' (no)'}" for name, good in right.items()),
        *([_delegated(ours)] if has_shares else []),
        f"{calls[0]} of {calls[1]}" if parts else "",
        f"{tokens[0]} of {tokens[1]}" if tokens[1] else "",
        f"{max(largest):.1e}" if largest and None not in largest else "",
        ours.get("cpu_seconds", ""),
        peer["status"],
        f"{sum(peers.values())} of {len(peers)}" if peers else "",
        peer.get("cpu_seconds", ""),
    ]


def _delegated(outcome: dict[str, Any]) -> str:
    """The share of multiplications that a delegate does, of each component that has any."""
    shares = outcome.get("delegated", {}).values()
    return ", ".join("-" if share is None else f"{100 * share:.0f} %" for share in shares)
