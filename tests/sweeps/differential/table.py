"""The table of a sweep."""

from __future__ import annotations

from collections import Counter
from typing import Any

from ..pages import table

#: How verdicts of ``run_draw`` are told. A wrong export that its own check lets through is silent.
NAMES = {
    "right": "right",
    "refused": "refused",
    "call refused": "call refused",
    "caught": "caught",
    "wrong": "silent",
    "skipped": "not compared",
    "unsteady": "unsteady",
    "crashed": "crashed",
    "not opened": "not opened",
}
#: What users would find out by themselves.
UNTOLD = ("silent", "crashed", "not opened")
_HEAD = """# Differential sweep{title}

Configurations drawn by seed over what real checkpoints vary, each saved as a small checkpoint with random weights, exported {how}:
prompts, cached steps one by one and in pieces, padded
batches, greedy tokens. Written by `python tests/sweeps differential{flag}{start} --count {count} --seed {seed} --table docs/coverage/differential{suffix}.md`.

| verdict | is |
|---|---|
| right | all calls within {tolerance} of the largest value in float32 (1e-2 in float16, 4e-2 in bfloat16; or four times what rounding does to eager there, a quarter at most{more}) |
| refused | the export ends with an error |
| call refused | what was called was right, and the engine or the stated range refuses a call |
| caught | the export with its own check ends with an error; without it the file would be wrong |
| silent | wrong, and nothing says so |
| not compared | the eager model itself fails |
| unsteady | further off than is allowed, in runs where eager itself is when what its layers are given is moved by as little as rounding does: it chooses (among experts, say) at a near tie |
| crashed, not opened | the engine does not run the file, and the export said nothing |
"""


def summary(rows: list[dict[str, Any]]) -> dict[str, int]:
    counts: Counter[str] = Counter()
    for row in rows:
        if "invalid" in row:
            counts["invalid draws"] += 1
        counts.update(NAMES[each["verdict"]] for each in row["backends"].values())
    return dict(counts.most_common())


_DEFAULT = {"title": "", "flag": "", "suffix": "", "more": "",
            "how": "to the three backends with default flags and compared with the eager model of transformers"}  # fmt: skip
_SCHEMES = {"title": ", weights in few bits", "flag": " --schemes", "suffix": "-schemes",
            "more": "; a tenth where activations are rounded to eight bits",
            "how": "to ONNX (and as bundles for ONNX Runtime GenAI) in 4 and 8 bits and to ExecuTorch, in schemes that are drawn too, and compared with "
                   "the eager model of transformers whose weights and activations went through the same arithmetic"}  # fmt: skip


def page(rows: list[dict[str, Any]], seed: int, *, schemes: bool = False) -> list[str]:
    first = min(row["draw"]["index"] for row in rows)
    start = f" --start {first}" if first else ""
    head = _HEAD.format(count=len(rows), seed=seed, start=start, tolerance="1e-4", **(_SCHEMES if schemes else _DEFAULT))
    return [head, *_totals(rows), *_families(rows), *_findings(rows)]


def _totals(rows: list[dict[str, Any]]) -> list[str]:
    backends = list(dict.fromkeys(name for row in rows for name in row["backends"]))
    names = list(dict.fromkeys(NAMES.values()))
    cells = []
    for backend in backends:
        counts = Counter(NAMES[row["backends"][backend]["verdict"]] for row in rows if backend in row["backends"])
        cells.append([backend, *(counts[name] for name in names)])
    return ["## Verdicts", "", *table(("backend", *names), cells), ""]


def _families(rows: list[dict[str, Any]]) -> list[str]:
    cells = []
    for family in sorted({row["draw"]["family"] for row in rows}):
        own = [row for row in rows if row["draw"]["family"] == family]
        right = sum(bool(row["backends"]) and all(each["verdict"] == "right" for each in row["backends"].values()) for row in own)
        cells.append([f"`{family}`", len(own), right])
    return ["## Families", "", "Draws, and those of them that are right in all exports.", "", *table(("family", "draws", "right"), cells), ""]


def _findings(rows: list[dict[str, Any]]) -> list[str]:
    """What is not right, by message."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        name = f"{row['draw']['family']} {row['draw']['index']}"
        if "invalid" in row:
            found.setdefault(("", "invalid draw", row["invalid"]), []).append(name)
        for backend, each in row["backends"].items():
            if each["verdict"] != "right":
                note = each.get("caught") or each.get("note") or ""
                found.setdefault((backend, NAMES[each["verdict"]], note), []).append(name)
    cells = ([backend, verdict, ", ".join(names), note] for (backend, verdict, note), names in sorted(found.items()))
    return ["## What is not right", "", *table(("backend", "verdict", "draws", "message"), cells)]
