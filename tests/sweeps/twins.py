"""Tries twins of many model types, each in a process of its own, and prints which run.

    python tests/sweeps twins llama bert …
    python tests/sweeps twins --families FILE --resume

The file is a list of families: family,model_type,kind. Without any of these, the popular families. The sweep `types` exports twins too.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from .families import read_families
from .journal import Journal, Key
from .pages import installed
from .processes import add_options, run_sweep


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
    add_options(parser, seconds=120)
    options = parser.parse_args(arguments)
    kinds = {family.model_type: family.kind for family in read_families(options.families)}
    jobs = [TwinJob(model_type) for model_type in options.model_types or kinds]
    journal = Journal(options.work / "twins.jsonl", installed("torch", "transformers"))
    results = run_sweep(jobs, journal, options, _import_once)
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


def _import_once() -> None:
    """Imports what every trial needs, before any process is forked; threads would not survive that."""
    import torch
    import transformers
    from transformers import CONFIG_MAPPING, GenerationMixin, PreTrainedModel  # noqa: F401  transformers loads lazily
    from transformers.models.auto import modeling_auto  # noqa: F401

    from . import trial  # noqa: F401

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
