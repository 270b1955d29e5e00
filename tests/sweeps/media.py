"""Models that see and hear, in ONNX Runtime GenAI beside eager: one picture or sound, greedy tokens compared.

    python tests/sweeps media [--only A,B] [--resume] [--table docs/coverage/genai-media.md]

The engine's own processor prepares real files where it has one for the architecture; else both sides get the same tensors.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from argosy.check.media_runs import NEW_TOKENS, MediaRun, compare
from argosy.run.runners import RunError

from . import PROGRAM
from .exporting import export_bundle, without
from .journal import Journal, Key
from .media_twins import media_twin, save_media_twin
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload

_DISTINCT = 8
_SEEDS = 8
#: What is tried where no list is given.
MODEL_TYPES = ("whisper", "gemma3", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "qwen3_vl_moe", "qwen3_5", "qwen3_5_moe", "llava",
               "paligemma", "internvl", "idefics3", "smolvlm", "got_ocr2", "aya_vision", "cohere2_vision", "deepseek_vl",
               "vipllava", "fast_vlm", "llava_next", "llava_onevision", "mistral3", "glm4v", "lfm2_vl", "blip-2", "mllama",
               "voxtral", "phi4_multimodal", "moonshine")  # fmt: skip


def run_type(model_type: str, program: str, folder: Path) -> MediaRun:
    """The first of a few twins whose eager tokens are of enough kinds to show something."""
    best = MediaRun(model_type)
    for seed in range(_SEEDS):
        place = folder / f"{model_type}-{seed}"
        place.mkdir()
        try:
            model = media_twin(model_type, seed)
            twin = save_media_twin(model, place / model_type)
        except Exception as error:  # noqa: BLE001 - models are others' code
            return MediaRun(model_type, refusal=f"the twin cannot be made: {type(error).__name__}: {str(error)[:200]}")
        refusal, _ = export_bundle(program, "genai", twin, place / "bundle")
        if refusal:
            return MediaRun(model_type, type(model).__name__, refusal=refusal.replace(sys.executable, "python"))
        try:
            run = compare(model, twin, place / "bundle", place)
        except RunError as error:
            return MediaRun(
                model_type, type(model).__name__, refusal=f"ONNX Runtime GenAI: {without(str(error), str(place))}"
            )
        if not run.ok or run.distinct >= _DISTINCT:
            return run
        if run.distinct > best.distinct:
            best = run
    return best


@dataclass(frozen=True)
class MediaJob:
    model_type: str
    program: str

    @property
    def key(self) -> Key:
        return self.model_type, "media"

    def run(self, result: Path) -> None:
        with tempfile.TemporaryDirectory(prefix="argosy-media-") as folder:
            run = run_type(self.model_type, self.program, Path(folder))
        status = "ok" if run.ok else "refused" if run.refusal else "wrong"
        reason = run.refusal or ("" if run.ok else f"{run.engine} instead of {run.eager}")
        result.write_text(json.dumps({"status": status, "reason": reason, "run": asdict(run)}), encoding="utf-8")


def run_of(model_type: str, outcome: dict[str, Any]) -> MediaRun:
    """What a job found; a job that was ended has refused."""
    return MediaRun(**outcome["run"]) if "run" in outcome else MediaRun(model_type, refusal=f"{outcome['status']}: {outcome['reason']}")


def page(runs: list[MediaRun], versions: dict[str, str]) -> list[str]:
    good = [run for run in runs if run.ok and run.distinct >= _DISTINCT]
    lines = [
        "# Models that see and hear, in ONNX Runtime GenAI",
        "",
        f"Written by `python tests/sweeps media` with {versions_text(versions)}; not edited by hand. Each is a twin (a tiny random model of the architecture) exported "
        f"with `--for genai`; {NEW_TOKENS} greedy tokens of the engine beside eager `generate`'s, of which at least {_DISTINCT} are distinct: weights are those of the first of {_SEEDS} seeds for which eager's are; a seed whose tokens differ from eager's ends the search and is what the row shows. "
        "*Engine*: a real picture or sound goes through the engine's own processor on one side and transformers' on the other; the "
        "difference is the largest of any pixel or bin. *Given*: the engine has no processor for the architecture, both sides get the same tensors.",
        "",
        f"{len(good)} of {len(runs)} agree in every token.",
        "",
    ]
    head = ("model type", "class", "prepared by", "tokens that agree", "distinct", "difference", "what refuses, and why")
    return [*lines, *table(head, map(_cells, runs))]


def _cells(run: MediaRun) -> list[Any]:
    pairs = zip(run.engine, run.eager, strict=False)
    agree = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(run.engine), len(run.eager)))
    difference = "" if run.difference is None else f"{run.difference:.1e}"
    tokens, distinct = ("", "") if run.refusal else (f"{agree} of {len(run.eager)}", run.distinct)
    return [run.model_type, run.model_class, run.prepared_by, tokens, distinct, difference, run.refusal]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps media", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default=",".join(MODEL_TYPES), metavar="A,B", help="model types")
    parser.add_argument("--program", default=str(PROGRAM), help="the command-line program that exports")
    parser.add_argument("--table", type=Path, help="where the page goes")
    add_options(parser, seconds=600)
    options = parser.parse_args(arguments)
    journal = Journal(options.work / "media.jsonl", installed("onnxruntime-genai", "transformers", "torch"))
    jobs = [MediaJob(name, options.program) for name in options.only.split(",")]
    results = run_sweep(jobs, journal, options, preload)
    runs = [run_of(job.model_type, results[job.key]) for job in jobs]
    if options.table is not None:
        write_page(options.table, page(runs, journal.versions))
    return 0 if all(run.ok or run.refusal for run in runs) else 1
