"""A twin exported for an engine and run in it: greedy tokens beside eager's, one prompt at a time and in a padded batch."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from ..check.checks import ENGINES
from ..check.rows import Row
from ..check.tokens import NEW_TOKENS, ExpectedRun, expected_runs, run_bundle
from ..run.bundles import open_bundle
from ..run.runners import BundleProcess, RunError, find_runner
from .families import Family, read_families
from .worker import Report

#: Names of tools: this and an engine.
PREFIX = "bundle-"
#: Kinds that generate text; the rest is none of an engine's that does nothing else.
_KINDS = {"genai": ("causal LM",), "optimum": ("causal LM", "seq2seq"), "transformersjs": ("causal LM", "seq2seq")}
_MORE = {"genai": ("whisper", "llava", "qwen2_vl", "qwen2_5_vl", "qwen3_vl", "paligemma", "idefics3", "smolvlm", "internvl",
                   "llava_next", "llava_onevision", "got_ocr2", "mllama", "phi4_multimodal", "qwen3_5")}  # fmt: skip
#: Causal LMs besides those of the list of popular families.
_OTHERS = ("helium", "arcee", "apertus", "seed_oss", "olmo3", "ministral", "exaone_moe", "dots1", "bitnet", "granitemoeshared",
           "granitemoehybrid", "hunyuan_v1_moe", "ernie4_5_moe", "persimmon", "biogpt", "xglm", "gpt_neox_japanese", "mpt",
           "diffllama", "doge", "flex_olmo", "lfm2_moe", "nanochat", "vaultgemma", "youtu", "solar_open")  # fmt: skip


def bundle_families(engine: str, only: str = "") -> list[Family]:
    """What is tried where no list is given: families that generate text, and architectures that the list lacks. `only` names
    some of them, or any other model type."""
    from transformers import CONFIG_MAPPING

    known = read_families()
    chosen = [each for each in known if each.kind in _KINDS.get(engine, ()) or each.name in _MORE.get(engine, ())]
    chosen += [Family(name, name, "causal LM") for name in _OTHERS if name in CONFIG_MAPPING]
    if not only:
        return chosen
    by_name = {each.name: each for each in (*known, *chosen)}
    return [by_name.get(name, Family(name, name, "other")) for name in only.split(",")]


def run(model_type: str, engine: str, program: str, report: Report) -> None:
    """Refused: our program or the engine says why it cannot be. Wrong: other tokens than eager's."""
    from transformers import CONFIG_MAPPING

    from ..capture.twin import build, save, shrink

    report.step("build the twin")
    config = shrink(CONFIG_MAPPING[model_type]())
    twin = build(config)
    report.update(**{"class": type(twin).__name__})
    with tempfile.TemporaryDirectory(prefix="argosy-bundle-") as name:
        folder = Path(name) / model_type
        save(twin, folder)
        report.step("export")
        refusal = export(program, engine, folder, Path(name) / "bundle")
        if refusal:
            report.finish("refused", refusal)
            return
        bundle = open_bundle(Path(name) / "bundle")
        runner = find_runner(bundle)
        report.step("run the eager model")
        runs = expected_runs(twin, None, NEW_TOKENS, batches=runner.batches, own_settings=runner.own_settings)
        report.update(distinct=min((each.distinct for each in runs), default=0))
        report.step(f"open it in {runner.title}")
        try:
            process = BundleProcess(bundle)
        except RunError as error:
            report.finish("refused", f"{runner.title}: {without(str(error), name)}")
            return
        report.step(f"run it in {runner.title}")
        with process:
            tolerance = ENGINES["onnx"].twin_tolerance
            rows = [run_bundle(process, each, NEW_TOKENS, tolerance) for each in runs]
    finish(rows, runs, name, report)


def finish(rows: list[Row], runs: list[ExpectedRun], folder: str, report: Report) -> None:
    single = [row for row, each in zip(rows, runs, strict=True) if len(each.prompts) == 1]
    batched = [row for row, each in zip(rows, runs, strict=True) if len(each.prompts) > 1]
    report.update(single=verdict(single), batch=verdict(batched))
    notes = [f"{row.shape}: {without(row.note, folder)}" for row in rows if row.note]
    if any(row.ok is False for row in rows):
        report.finish("wrong", "; ".join(notes)[:600])
    elif all(row.ok for row in rows) and rows:
        report.finish("ok", "; ".join(notes)[:600])
    else:
        report.finish("not compared", "; ".join(notes)[:600])


def verdict(rows: list[Row]) -> dict[str, Any] | None:
    """``ok`` and how many tokens agree, of how many; None if there was no such run."""
    if not rows:
        return None
    tokens = [row.tokens or (0, 0) for row in rows]
    return {"ok": all(row.ok for row in rows), "agree": sum(each[0] for each in tokens), "tokens": sum(each[1] for each in tokens)}


def export(program: str, engine: str, folder: Path, output: Path) -> str:
    """Why there is no bundle; "" if there is one."""
    command = [program, "export", "onnx", "--model", str(folder), "--for", engine, "--check", "off", "-o", str(output)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode == 0:
        return ""
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    errors = list(dict.fromkeys(line for line in lines if line.startswith("error"))) or lines[-1:]
    return without("; ".join(errors) or f"exit code {done.returncode}", str(folder.parent))[:600]


def without(text: str, folder: str) -> str:
    """Without names of temporary folders, which differ in every run."""
    return text.replace(f"{folder}/", "").replace(folder, "")
