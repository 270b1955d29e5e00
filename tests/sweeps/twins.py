"""Tries twins of many model types, each in a process of its own, and prints which run.

    python tests/sweeps twins llama bert …
    python tests/sweeps twins --families FILE --resume
    python tests/sweeps twins --all --output docs/coverage

The file is a list of families: family,model_type,kind. Without any of these, the popular families. A page says of each type whether
its twin runs, or why not; and what the data of the sweep `onnx` in the same folder has of it.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .families import read_families
from .journal import Journal, Key
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep


#: A model type, its kind, and what came of its twin and of its export.
Row = tuple[str, str, dict[str, Any], dict[str, Any] | None]


@dataclass(frozen=True)
class TwinJob:
    model_type: str

    @property
    def key(self) -> Key:
        return self.model_type, "twin"

    def run(self, result: Path) -> None:
        from .trial import try_twin

        result.write_text(json.dumps(try_twin(self.model_type).to_dict()), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps twins", description="tries twins of model types")
    parser.add_argument("model_types", nargs="*", help="model types as transformers names them")
    parser.add_argument("--families", type=Path, help="CSV file: family,model_type,kind")
    parser.add_argument("--all", action="store_true", help="all types that transformers has a class of")
    parser.add_argument("--output", type=Path, help="where the page goes; without it there is none")
    parser.add_argument("--no-run", action="store_true", help="runs nothing; says what the data has")
    add_options(parser, seconds=120)
    options = parser.parse_args(arguments)
    kinds = {family.model_type: family.kind for family in read_families(options.families)}
    if options.all:
        kinds = {model_type: kinds.get(model_type, "other") for model_type in types_with_a_class()}
    jobs = [TwinJob(model_type) for model_type in options.model_types or kinds]
    journal = Journal(options.work / "twins.jsonl", installed("torch", "transformers"))
    results = journal.read() if options.no_run else run_sweep(jobs, journal, options, _import_once)
    if options.no_run:
        jobs = [job for job in jobs if job.key in results]
    if options.output is not None:
        onnx = Journal(options.work / "onnx.jsonl")
        onnx.versions = onnx.last_versions()
        rows = [(job.model_type, kinds.get(job.model_type, "other"), results[job.key], onnx.read().get((job.model_type, "onnx"))) for job in jobs]
        write_page(options.output / "types.md", page(rows, {**journal.versions, **onnx.versions}))
    tried: Counter[str] = Counter()
    good: Counter[str] = Counter()
    for job in jobs:
        kind = kinds.get(job.model_type, "other")
        tried[kind] += 1
        good[kind] += results[job.key]["status"] == "ok"
    for kind, count in sorted(tried.items()):
        print(f"{kind:12} {good[kind]:4} of {count}")
    print(f"{'all':12} {good.total():4} of {tried.total()}")
    return 0 if good == tried else 1


def types_with_a_class() -> list[str]:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin.classes import has_class

    return [model_type for model_type in sorted(CONFIG_MAPPING) if has_class(model_type)]


def page(rows: list[Row], versions: dict[str, str]) -> list[str]:
    """The text of the page: a row has a type, its kind, what came of its twin and what of its export, if that was tried."""
    run = [row for row in rows if row[2]["status"] == "ok"]
    exported = [export for *_, export in rows if export is not None]
    right = sum(export["status"] == "ok" for export in exported)
    wrong = sum(export["status"] == "wrong" for export in exported)
    listed = sum(kind != "other" for _, kind, *_ in rows)
    listed_run = sum(kind != "other" for _, kind, *_ in run)
    failures = Counter(_reason(twin) for _, _, twin, _ in rows if twin["status"] != "ok")
    return [
        "# Model types", "",
        "Made by `python tests/sweeps twins --all --output docs/coverage`. Each model type of transformers with a class: whether a small "
        "model of its architecture ([twin](../twins.md)) builds, runs at all sizes and generates; and what came of it in ONNX Runtime, "
        "of those that were tried by `python tests/sweeps onnx --families FILE`. Of several runs of a type, the last counts; "
        "a run that goes on where another stopped does not run its types again.", "",
        f"Versions: {versions_text(versions)}.", "",
        f"- Twins that run: **{len(run)} of {len(rows)}**; of the popular families' types {listed_run} of {listed}.",
        f"- Exports tried: {len(exported)}. Right in all components: {right}; wrong: {wrong}; failed: {len(exported) - right - wrong}.", "",
        "## Why twins do not run", "", *table(("reason", "types"), failures.most_common()), "",
        "## All types", "",
        *table(("type", "kind", "class", "twin", "ONNX Runtime"),
               ((name, kind, twin.get("model_class", ""), _said(twin), _said(export) if export else "not tried")
                for name, kind, twin, export in rows)),
    ]  # fmt: skip


def _reason(outcome: dict[str, Any]) -> str:
    """The stage and the kind of the error, which many types share."""
    return f"{outcome['status']}: {outcome.get('reason', '').partition(':')[0]}"


def _said(outcome: dict[str, Any]) -> str:
    return "ok" if outcome["status"] == "ok" else f"{outcome['status']}: {outcome.get('reason', '')}"[:160]


def _import_once() -> None:
    """Imports what every trial needs, before any process is forked; threads would not survive that."""
    import torch
    import transformers
    from transformers import CONFIG_MAPPING, GenerationMixin, PreTrainedModel  # noqa: F401  transformers loads lazily
    from transformers.models.auto import modeling_auto  # noqa: F401

    from . import trial  # noqa: F401

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
