"""Tries twins of many model types, each in a process of its own, and prints which run.

    python -m argosy.coverage.twins llama bert …
    python -m argosy.coverage.twins --families FILE --results RESULTS.jsonl     # skips what RESULTS has already

The file is a list of families as ``argosy.coverage`` reads them. Without either, the popular families.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

from .families import read_families


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.coverage.twins", description="tries twins of model types")
    parser.add_argument("model_types", nargs="*", help="model types as transformers names them")
    parser.add_argument("--families", type=Path, help="CSV file: family,model_type,kind")
    parser.add_argument(
        "--results", type=Path, help="JSON lines, one a model type; kept up to date, read when resuming"
    )
    parser.add_argument("--timeout", type=float, default=120, help="seconds for one model type")
    options = parser.parse_args(arguments)
    _import_once()
    families = {family.model_type: family.kind for family in read_families(options.families)}
    wanted = options.model_types or list(families)
    done = _read_results(options.results)
    results = []
    for model_type in wanted:
        result = done.get(model_type)
        if result is None:
            result = {**_try_apart(model_type, options.timeout), "kind": families.get(model_type, "")}
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(result) + "\n")
        print(
            f"{result['status']:9} {model_type:28} {result.get('model_class', ''):44} {result.get('reason', '')}",
            flush=True,
        )
        results.append(result)
    _print_summary(results)
    return 0 if all(result["status"] == "ok" for result in results) else 1


def _import_once() -> None:
    """Imports what every trial needs, before any process is forked; threads would not survive that."""
    import torch
    import transformers
    from transformers import CONFIG_MAPPING, GenerationMixin, PreTrainedModel  # noqa: F401  transformers loads lazily
    from transformers.models.auto import modeling_auto  # noqa: F401

    from ..capture.twin import trial  # noqa: F401

    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()


def _try_apart(model_type: str, timeout: float) -> dict[str, Any]:
    """Tries one model type in a child that inherits what is imported already: starting anew costs more than the trial."""
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=_try_here, args=(model_type, sender))
    child.start()
    sender.close()
    result: dict[str, Any] = {"model_type": model_type, "status": "timeout", "reason": f"not done after {timeout:g} s"}
    try:
        if receiver.poll(timeout):
            result = receiver.recv()
    except EOFError:
        child.join()
        result.update(status="crash", reason=f"exit code {child.exitcode}")
    child.kill()
    child.join()
    return result


def _try_here(model_type: str, sender: Any) -> None:
    from ..capture.twin.trial import try_twin

    sender.send(try_twin(model_type).to_dict())
    sender.close()
    os._exit(0)  # without destructors, which crash in some versions of torch


def _read_results(path: Path | None) -> dict[str, dict[str, Any]]:
    if path is None or not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text().splitlines() if line.strip())
    return {row["model_type"]: row for row in rows}


def _print_summary(results: list[dict[str, Any]]) -> None:
    tried = Counter(result.get("kind", "") for result in results)
    good = Counter(result.get("kind", "") for result in results if result["status"] == "ok")
    for kind, count in sorted(tried.items()):
        print(f"{kind or 'other':12} {good[kind]:4} of {count}")
    print(f"{'all':12} {good.total():4} of {tried.total()}")


if __name__ == "__main__":
    sys.exit(main())
