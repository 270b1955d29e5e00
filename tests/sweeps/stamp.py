"""Stamped captures beside whole traces, node by node: twins of all popular families, as wide as twins are, with many layers.

    python tests/sweeps stamp [MODEL_TYPE …] [--layers 24] [--table FILE.md]

Exits with 1 if a stamped capture differs from the trace. ``equal``: inputs, outputs, ops, arguments, shapes, storages, places in the
model's code, names of weights, constants and the whole manifest. ``whole``: it is not stamped, and the table says why.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .families import read_families
from .journal import Journal, Key
from .outcome import first_line
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload


@dataclass(frozen=True)
class StampJob:
    model_type: str
    layers: int

    @property
    def key(self) -> Key:
        return self.model_type, "stamp"

    def run(self, result: Path) -> None:
        try:
            outcome = compare(deep_config(self.model_type, self.layers))
        except Exception as error:
            outcome = {"status": "error", "reason": first_line(error)}
        result.write_text(json.dumps(outcome), encoding="utf-8")


def deep_config(model_type: str, layers: int) -> Any:
    """The configuration of a family's twin, with as many layers in each stack."""
    from transformers import CONFIG_MAPPING

    from argosy.capture.layer_kinds import DEPTH_FIELDS
    from argosy.capture.twin.request import nested
    from argosy.capture.twin.shrink import shrink

    config = shrink(CONFIG_MAPPING[model_type]())
    for part in nested(config):
        own = [value for name, value in vars(part).items() if name in DEPTH_FIELDS and isinstance(value, int)]
        for name, value in list(vars(part).items()):
            if name in DEPTH_FIELDS and isinstance(value, int):
                vars(part)[name] = layers
            elif isinstance(value, list) and len(value) in own and _is_of_layers(name, value):
                vars(part)[name] = [value[i % len(value)] for i in range(layers)]
    return config


def _is_of_layers(name: str, value: list) -> bool:
    """Whether a list that is as long as there are layers has an entry for each: their kinds, or for which of them something holds."""
    return all(isinstance(each, str) for each in value) or (name.endswith("_layers") and set(value) <= {0, 1})


def compare(config: Any) -> dict[str, Any]:
    import torch

    from argosy.capture.configuration import canonical
    from argosy.capture.session import open_session, require_limits, session_content, trace_session
    from argosy.capture.stamp_difference import difference
    from argosy.capture.stamping import NotStamped, stamped_content

    torch.set_num_threads(1)
    session = open_session(config)
    configuration = canonical(config.to_dict())
    start = time.process_time()
    try:
        stamped = stamped_content(session, configuration)
    except NotStamped as error:
        return {"status": "whole", "reason": str(error)[:2000]}
    middle = time.process_time()
    trace_session(session)
    require_limits(session)
    whole = session_content(session, configuration)
    seconds = {"stamped": round(middle - start, 1), "whole": round(time.process_time() - middle, 1)}
    found = difference(stamped, whole)
    return {"status": "differs" if found else "equal", "reason": found[:3000], **seconds}


def write_table(path: Path, jobs: list[StampJob], results: dict[Key, dict[str, Any]], layers: int) -> None:
    kinds = {family.model_type: family.kind for family in read_families(None)}
    rows = []
    counts = dict.fromkeys(("equal", "whole", "differs", "error"), 0)
    for job in jobs:
        outcome = results[job.key]
        status = outcome["status"]
        counts[status if status in counts else "error"] += 1
        reason = outcome.get("reason", "").partition("\n")[0][:160].replace("|", "/")
        rows.append((job.model_type, kinds.get(job.model_type, ""), status, str(outcome.get("stamped", "")),
                     str(outcome.get("whole", "")), reason))  # fmt: skip
    text = [
        "# Stamped captures",
        "",
        f"Captures of twins with {layers} layers in each stack, stamped from few ([how](../capture.md#deep-models)), beside their whole traces. "
        "`equal`: node by node, and all of the manifest. `whole`: not stamped but traced whole, for the reason given. `error`: there is "
        f"no trace to compare with. Seconds are CPU time without imports and twin. {versions_text(installed('torch', 'transformers'))}.",
        "",
        f"Of {len(jobs)} families {counts['equal']} are equal, {counts['whole']} are traced whole, {counts['differs']} differ, {counts['error']} have no trace.",
        "",
        *table(("model type", "kind", "result", "stamped s", "whole s", "why"), rows),
    ]  # fmt: skip
    write_page(path, text)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps stamp", description="stamped captures beside whole traces")
    parser.add_argument("model_types", nargs="*", help="model types as transformers names them; else the popular families")
    parser.add_argument("--layers", type=int, default=24, help="of each stack")
    parser.add_argument("--table", type=Path, help="page to write")
    add_options(parser, seconds=400)
    options = parser.parse_args(arguments)
    types = options.model_types or [family.model_type for family in read_families(None)]
    jobs = [StampJob(each, options.layers) for each in dict.fromkeys(types)]
    journal = Journal(options.work / "stamp.jsonl", {**installed("torch", "transformers"), "layers": str(options.layers)})
    results = run_sweep(jobs, journal, options, _preload)  # type: ignore[arg-type]
    if options.table:
        write_table(options.table, jobs, results, options.layers)
    return int(any(results[job.key]["status"] == "differs" for job in jobs))


def _preload() -> None:
    from core import find_core

    preload()
    find_core()
