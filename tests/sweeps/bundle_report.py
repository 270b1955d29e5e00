"""The page of bundles that were run in their engines. One for all engines; a run renews the part of one."""

from __future__ import annotations

from typing import Any

from argosy.run.runners import RUNNERS

from .bundles import PREFIX, bundle_families
from .families import of_results
from .journal import Journal
from .pages import cell, table, versions_text

_REMARKS = {
    "genai": "This engine pads at the end and masks that itself (its batches of prompts are so; padding at the front it takes for"
    " tokens), eager pads at the front: both leave the padding out, so the tokens must be the same.",
    "optimum": "This engine needs torch and transformers; it ran in an environment of its own, with the transformers that it takes.",
    "transformersjs": "In Node; the engine pads at the front, as eager does. It reads the settings of `generation_config.json`, and so did eager.",
}


_RECOGNISED = ("attention", "norms", "rotary")


def document(journal: Journal) -> dict[str, Any]:
    """What the journal has of each engine, of the versions that were measured last."""
    engines = {}
    for engine in sorted(RUNNERS):
        tool = f"{PREFIX}{engine}"
        versions = journal.last_versions(lambda key, tool=tool: key[1] == tool)
        results = {key: outcome for key, outcome in Journal(journal.path, versions).read().items() if key[1] == tool}
        rows = [{"family": family.name, **results[family.name, tool]} for family in of_results(bundle_families(engine), results)]
        if rows:
            engines[engine] = {"versions": versions, "families": rows}
    return {"engines": engines}


def render(document: dict[str, Any]) -> str:
    lines = [
        "# Bundles in their engines, family by family",
        "",
        "Written by `python tests/sweeps bundles --for ENGINE`; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights, exported by `argosy export onnx"
        " --for ENGINE` and opened by the engine in a process that has neither torch nor transformers nor argosy. *ok*: 32 greedy"
        " tokens are those of eager `generate` for three prompts one by one, and for the three as a padded batch. Eight prompts of"
        " random tokens are tried in turn and the first three are taken whose continuation has at least 8 distinct tokens of 32;"
        " where there are none, the layers' matrices of the twin are doubled before it is exported, up to 64 times their size (*scale*)."
        " *repeats itself*: right, but that was not enough."
        " A token that differs is a mistake unless eager's two best logits are within 2e-4 of their size there; where that"
        " was so, the note says it. *refused*: with the message of our exporter, or of the engine. The last columns count what the"
        " engine's own ops compute of a decoder's graph: attention (of the layers that have keys), norms, rotary embeddings.",
    ]
    for engine, part in document["engines"].items():
        rows = part["families"]
        versions = versions_text(part["versions"])
        for version in sorted({row["engine"] for row in rows if row.get("engine")} - set(part["versions"].values())):
            versions += f", {engine} {version}"
        states = [row["status"] for row in rows]
        counts = ", ".join(f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states)))
        lines += ["", f"## {engine}", "", f"With {versions}: {len(rows)} architectures, {counts}.", ""]
        if engine in _REMARKS:
            lines += [_REMARKS[engine], ""]
        columns = ("family", "class", "status", "three prompts", "batch of 3", "distinct", "scale", *_RECOGNISED, "CPU s")
        lines += table(columns, map(_cells, rows))
        notes = [
            f"- **{row['family']}** ({row['status']}): {cell(row['reason'])}"
            for row in rows
            if row.get("reason")
        ]
        lines += ["", "What was refused, was wrong, or deserves a word:", "", *(notes or ["- nothing"])]
    return "\n".join(lines) + "\n"


def _cells(row: dict[str, Any]) -> list[Any]:
    return [row["family"], row.get("class", ""), row["status"], _tokens(row.get("single")), _tokens(row.get("batch")),
            row.get("distinct", ""), row.get("scale", ""), *(row.get(each, "") for each in _RECOGNISED),
            row.get("cpu_seconds", "")]  # fmt: skip


def _tokens(found: dict[str, Any] | None) -> str:
    if not found:
        return ""
    return f"{found['agree']} of {found['tokens']}" + ("" if found["ok"] else ", wrong")
