"""Models that see and hear, in ONNX Runtime GenAI beside eager: one picture or sound, greedy tokens compared.

    python -m argosy.coverage.media [--only A,B] [--program argosy] [--table docs/coverage/genai-media.md]

The engine's own processor prepares real files where it has one for the architecture; else both sides get the same tensors.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from ..check.media_runs import NEW_TOKENS, MediaRun, compare
from ..errors import ExportError
from ..run.runners import RunError
from .bundles import export, without
from .media_twins import media_twin, save_media_twin

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
        if refusal := export(program, "genai", twin, place / "bundle"):
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


def table(runs: list[MediaRun], versions: str) -> str:
    good = [run for run in runs if run.ok and run.distinct >= _DISTINCT]
    lines = [
        "# Models that see and hear, in ONNX Runtime GenAI",
        "",
        f"Made by `python -m argosy.coverage.media` with {versions}. Each is a twin (a tiny random model of the architecture) exported "
        f"with `--for genai`; {NEW_TOKENS} greedy tokens of the engine beside eager `generate`'s, of which at least {_DISTINCT} are distinct: weights are those of the first of {_SEEDS} seeds for which eager's are; a seed whose tokens differ from eager's ends the search and is what the row shows. "
        "*Engine*: a real picture or sound goes through the engine's own processor on one side and transformers' on the other; the "
        "difference is the largest of any pixel or bin. *Given*: the engine has no processor for the architecture, both sides get the same tensors.",
        "",
        f"{len(good)} of {len(runs)} agree in every token.",
        "",
        "| model type | class | prepared by | tokens that agree | distinct | difference | what refuses, and why |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for run in runs:
        pairs = zip(run.engine, run.eager, strict=False)
        agree = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(run.engine), len(run.eager)))
        tokens = "" if run.refusal else f"{agree} of {len(run.eager)}"
        difference = "" if run.difference is None else f"{run.difference:.1e}"
        distinct = "" if run.refusal else str(run.distinct)
        reason = run.refusal.replace("|", "\\|").replace("\n", " ")
        lines.append(
            f"| {run.model_type} | {run.model_class} | {run.prepared_by} | {tokens} | {distinct} | {difference} | {reason} |"
        )
    return "\n".join(lines) + "\n"


def runs_of(names: list[str], program: str) -> Iterator[MediaRun]:
    with tempfile.TemporaryDirectory(prefix="argosy-media-") as folder:
        for name in names:
            run = run_type(name, program, Path(folder))
            state = "ok" if run.ok else run.refusal or f"{run.engine} instead of {run.eager}"
            print(f"{name}: {state} ({run.prepared_by}, {run.distinct} distinct)", flush=True)
            yield run


def main(arguments: list[str] | None = None) -> int:
    import importlib.metadata

    parser = argparse.ArgumentParser(prog="python -m argosy.coverage.media", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--only", default=",".join(MODEL_TYPES), metavar="A,B", help="model types")
    parser.add_argument("--program", default="argosy", help="the command-line program that exports")
    parser.add_argument("--table", type=Path, help="where the report goes")
    options = parser.parse_args(arguments)
    try:
        runs = list(runs_of(options.only.split(","), options.program))
    except ExportError as error:
        print(f"error[{error.code}]: {error}", file=sys.stderr)
        return 1
    packages = ("onnxruntime-genai", "transformers", "torch")
    versions = ", ".join(f"{name} {importlib.metadata.version(name)}" for name in packages)
    if options.table is not None:
        options.table.write_text(table(runs, versions), encoding="utf-8")
    return 0 if all(run.ok or run.refusal for run in runs) else 1


if __name__ == "__main__":
    sys.stdout.flush()
    sys.exit(main())
