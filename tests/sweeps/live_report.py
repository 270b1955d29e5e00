"""The report of live models in one exporter, part by part, beside transformers' exporter of the same name."""

from __future__ import annotations

from typing import Any

from argosy.exporters.decompose import PROJECTOR_NAMES

from .capture_report import by_kind, reasons, rows_of
from .component_report import peer_right, share
from .families import Family
from .journal import Results
from .pages import table, versions_text

#: What exporters make of a live model, and the exporter's name.
KINDS_OF_PROGRAMS = {"dynamo": "DynamoExporter", "onnx": "OnnxExporter", "executorch": "ExecutorchExporter"}


def document(kind: str, families: list[Family], results: Results, versions: dict[str, str]) -> dict[str, Any]:
    rows = rows_of(families, results, ours=f"live-{kind}", peer=f"{kind}_peer")
    return {"kind": kind, "versions": versions, "summary": by_kind(rows, _count), "families": rows}


def _count(kind: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": kind, "families": len(rows)}
    for side in ("ours", "peer"):
        parts = [right for row in rows for right in peer_right(row[side]).values()]
        traced = [right for row in rows for right in peer_right(row[side], "traced").values()]
        found[side] = {"parts": len(parts), "right": sum(parts), "traced": sum(traced)}
    both = [row for row in rows if "not run" not in (row["ours"]["status"], row["peer"]["status"])]
    found["both"] = {"families": len(both), **{side: sum(all_right(row[side]) for row in both) for side in ("ours", "peer")}}
    return found


def all_right(outcome: dict[str, Any]) -> bool:
    right = peer_right(outcome)
    return bool(right) and all(right.values())


def behind(row: dict[str, Any]) -> list[str]:
    """Parts that the peer has right and we do not. A projector that is the only one has one name with us."""
    ours = peer_right(row["ours"])
    ours |= {name: ours["multi_modal_projector"] for name in PROJECTOR_NAMES if "multi_modal_projector" in ours and name not in ours}
    return [name for name, right in peer_right(row["peer"]).items() if right and not ours.get(name, False)]


def render(document: dict[str, Any]) -> str:
    rows, exporter = document["families"], KINDS_OF_PROGRAMS[document["kind"]]
    lines = [
        f"# Live models in {exporter}, family by family",
        "",
        f"Written by `python tests/sweeps live-{document['kind']}` with {versions_text(document['versions'])}; not edited by hand.",
        "",
        f"Each family stands for its default configuration, shrunk to a twin with random weights in memory. `argosy.{exporter}`"
        " with `dynamic=True` exported the model as `export` does, and the parts of a generative one as `export_for_generation`"
        " does; one that sees or hears and generates in parts only. A part is *right* if its program gives what the eager model gives, up to 1e-4 of the output's scale, at the shape"
        " of the sample inputs, at another one, and with one short row. *Changed*: what of the model was not as before after these"
        " exports, after one that failed in the model's code, and after one that was interrupted there.",
        "",
        f"The *peer* is `transformers.exporters.{exporter}` with `dynamic=True` on the same twins, in the parts that it takes"
        " generative models apart into, held to the same.",
        "",
    ]
    lines += table(
        ("kind", "families", "parts", "right", "right at the traced shape", "peer parts", "peer right", "peer right at the traced shape"),
        (
            [c["kind"], c["families"],
             *(cell for side in ("ours", "peer")
               for cell in (c[side]["parts"], share(c[side]["right"], c[side]["parts"]), share(c[side]["traced"], c[side]["parts"])))]
            for c in document["summary"]
        ),
    )  # fmt: skip
    lines += ["", "Families of which all parts are right, among those that both were run on:", ""]
    lines += table(
        ("kind", "families", "ours", "peer"),
        ([c["kind"], *(c["both"][key] if key == "families" else share(c["both"][key], c["both"]["families"])
                       for key in ("families", "ours", "peer"))] for c in document["summary"]),
    )  # fmt: skip
    lines += ["", "## Families", ""]
    lines += table(
        ("family", "class", "kind", "ours", "right", "changed", "CPU s", "peer", "peer right", "peer CPU s"), map(_cells, rows)
    )
    lines += ["", "## What did not work", "", *(list(reasons(rows, "ours")) or ["Nothing."])]
    late = [f"- **{row['family']}**: {', '.join(names)}" for row in rows if (names := behind(row))]
    lines += ["", "## What the peer has right and we do not", "", *(late or ["Nothing."])]
    if peer := list(reasons(rows, "peer")):
        lines += ["", "## What did not work in the peer", "", *peer]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any]) -> list[Any]:
    ours, peer = row["ours"], row["peer"]
    peers = peer_right(peer)
    return [
        row["family"],
        ours.get("class") or peer.get("class", ""),
        row["kind"],
        ours["status"],
        ", ".join(f"{name}{'' if good else ' (no)'}" for name, good in peer_right(ours).items()),
        len(ours.get("changed", [])) or "",
        ours.get("cpu_seconds", ""),
        peer["status"],
        f"{sum(peers.values())} of {len(peers)}" if peers else "",
        peer.get("cpu_seconds", ""),
    ]
