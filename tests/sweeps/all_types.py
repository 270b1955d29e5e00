"""Tries all model types that transformers has a class of in ONNX Runtime, and writes the page of them.

    python tests/sweeps types --jobs 2 --resume
    python tests/sweeps types --only bert,vit
    python tests/sweeps types --no-run

The data is that of the sweep `onnx`: a type that was tried there need not be tried again.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from pathlib import Path
from typing import Any

from . import PROGRAM
from .families import Family, read_families
from .family_sweep import FamilyJob
from .journal import Journal, Key
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload

#: A model type, its kind, and what came of it if it was tried.
Row = tuple[str, str, dict[str, Any] | None]

_ENGINE = "onnx"
_COMMON = 30
#: What differs from type to type in messages that mean the same: what is quoted, shapes, numbers, names of classes.
_PARTICULAR = re.compile(r"'[^']*'|`[^`]*`|\[[^\]]*\]|\([^)]*\)|\b[A-Z]\w+(?:Model|Config|Encoder|Decoder|For\w+)\b|\d+(?:\.\d+)?(?:e-?\d+)?")
_LONGEST_REASON, _LONGEST_GROUP = 200, 110


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps types", description="tries all model types in ONNX Runtime")
    parser.add_argument("--only", default="", metavar="A,B", help="only these types; the page keeps what the data has of others")
    parser.add_argument("--no-run", action="store_true", help="runs nothing; writes the page of what the data has")
    parser.add_argument("--program", default=str(PROGRAM), help="the command-line program that exports")
    parser.add_argument("--output", type=Path, default=Path("docs/coverage"), help="where the page goes")
    add_options(parser, seconds=120)
    options = parser.parse_args(arguments)
    kinds = {family.model_type: family.kind for family in read_families()}
    types = types_with_a_class()
    journal = Journal(options.work / f"{_ENGINE}.jsonl", installed("torch", "transformers", "onnxruntime"))
    if options.no_run:
        journal.versions = journal.last_versions(_is_ours)
    else:
        wanted = [name.strip() for name in options.only.split(",") if name.strip()] or types
        jobs = [FamilyJob(Family(name, name, kinds.get(name, "other")), _ENGINE, options.program) for name in wanted]
        run_sweep(jobs, journal, options, lambda: preload((_ENGINE,)))
    results = journal.read()
    rows = [(name, kinds.get(name, "other"), results.get((name, _ENGINE))) for name in types]
    write_page(options.output / "types.md", page(rows, journal.versions))
    for text in _counts(rows):
        print(text)
    return 0


def _is_ours(key: Key) -> bool:
    return key[1] == _ENGINE


def types_with_a_class() -> list[str]:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin.classes import has_class

    return [model_type for model_type in sorted(CONFIG_MAPPING) if has_class(model_type)]


def page(rows: list[Row], versions: dict[str, str]) -> list[str]:
    """The text of the page."""
    reasons = Counter(_group(outcome) for _, _, outcome in rows if outcome and outcome["status"] != "ok")
    common = [(count, stage, text) for (stage, text), count in reasons.most_common(_COMMON)]
    return [
        "# Model types", "",
        "Made by `python tests/sweeps types`. Each model type of transformers with a class: a small model of its default configuration "
        "([twin](../twins.md)) is built and run, captured, exported by the command and compared with eager in ONNX Runtime, at all edge shapes. "
        "A type is *right* if all its components are; one whose twin cannot be made or called counts as failed. "
        "Of several runs of a type, the last counts. Until all are tried, those that were are no sample: types that were worked on are "
        "among them.", "",
        f"Versions: {versions_text(versions)}.", "",
        *_counts(rows), "",
        f"## The {len(common)} most frequent reasons", "", *table(("types", "what failed", "reason"), common), "",
        "## All types", "",
        *table(("type", "kind", "class", "outcome", "reason"),
               ((name, kind, (outcome or {}).get("class", ""), stage(outcome), _reason(outcome)) for name, kind, outcome in rows)),
    ]  # fmt: skip


def _counts(rows: list[Row]) -> list[str]:
    """Lines of counts, as shares of all types."""
    outcomes = [outcome for *_, outcome in rows]
    popular = [outcome for _, kind, outcome in rows if kind != "other"]
    stages = Counter(stage(outcome) for outcome in outcomes)
    right, wrong, untried = (stages[name] for name in ("right", "wrong", "not tried"))
    counts = {
        "tried": len(rows) - untried,
        "twin runs": sum(bool(outcome and outcome.get("twin")) for outcome in outcomes),
        "captured": sum(bool(outcome and outcome.get("captured")) for outcome in outcomes),
        "**right in all components**": right,
        "wrong, which the check tells": wrong,
        "failed": len(rows) - untried - right - wrong,
        "not tried": untried,
    }
    lines = [f"- {name}: {count} of {len(rows)} ({100 * count / max(1, len(rows)):.1f} %)" for name, count in counts.items()]
    tried = [outcome for outcome in popular if outcome is not None]
    good = sum(stage(outcome) == "right" for outcome in tried)
    return [
        *lines,
        f"- right of those tried: {right} of {len(rows) - untried}",
        f"- right of the popular families' {len(popular)} types: {good} of {len(tried)} tried",
    ]


def stage(outcome: dict[str, Any] | None) -> str:
    """How a type ended; where it failed, the first thing that there is not."""
    if outcome is None:
        return "not tried"
    if outcome["status"] in ("ok", "wrong"):
        return "right" if outcome["status"] == "ok" else "wrong"
    if not outcome.get("class"):
        return "no twin"
    if not outcome.get("twin"):
        return "twin does not run"
    if not outcome.get("captured"):
        return "not captured"
    return "not exported" if _reason(outcome).startswith("exporting the twin") else "not compared"


def _reason(outcome: dict[str, Any] | None) -> str:
    return (outcome or {}).get("reason", "")[:_LONGEST_REASON]


def _group(outcome: dict[str, Any]) -> tuple[str, str]:
    """The stage and the reason without what is particular to a type."""
    ended, reason = stage(outcome), outcome.get("reason", "")
    if ended == "wrong":  # outputs are off in as many ways as there are types
        return ended, re.sub(r"^\S+ at .*?\((\w+)[^)]*\): .*", r"first in calls of kind '\1'", reason.partition(";")[0])
    if outcome["status"] == "failed":
        reason = reason.partition(": ")[2]  # it begins with the step
    return ended, _PARTICULAR.sub("…", reason)[:_LONGEST_GROUP]
