"""A twin exported for an engine and run in it: greedy tokens beside eager's, one prompt at a time and in a padded batch."""

from __future__ import annotations

import copy
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from argosy.check.engines import ENGINES
from argosy.check.rows import Row
from argosy.check.tokens import NEW_TOKENS, ExpectedRun, expected_runs, run_bundle
from argosy.run.bundles import open_bundle
from argosy.run.runners import RUNNERS, BundleProcess, EngineMissing, RunError
from .configurations import configuration
from .exporting import export_bundle, without
from .families import Family, read_families
from .outcome import Report

_LARGEST_SCALE = 64
#: A window that no text of ours leaves.
_WIDE = 64
#: Names of tools: this and an engine.
PREFIX = "bundle-"
#: Kinds that go on from text. Models that see and hear are compared by media.py.
_KINDS = {"genai": ("causal LM",), "optimum": ("causal LM", "seq2seq"), "transformersjs": ("causal LM", "seq2seq")}
#: Causal LMs besides those of the list of popular families.
_OTHERS = ("helium", "arcee", "apertus", "seed_oss", "olmo3", "ministral", "exaone_moe", "bitnet", "granitemoeshared",
           "granitemoehybrid", "hunyuan_v1_moe", "ernie4_5_moe", "persimmon", "biogpt", "xglm", "gpt_neox_japanese", "mpt",
           "diffllama", "doge", "flex_olmo", "lfm2_moe", "nanochat", "vaultgemma", "youtu", "solar_open")  # fmt: skip


def bundle_families(engine: str, only: str = "") -> list[Family]:
    """What is tried where no list is given: families that generate text, and architectures that the list lacks. `only` names
    some of them, or any other model type."""
    from transformers import CONFIG_MAPPING

    known = read_families()
    chosen = [each for each in known if each.kind in _KINDS.get(engine, ())]
    chosen += [Family(name, name, "causal LM") for name in _OTHERS if name in CONFIG_MAPPING]
    if not only:
        return chosen
    by_name = {each.name: each for each in (*known, *chosen)}
    return [by_name.get(name, Family(name, name, "other")) for name in only.split(",")]


def run(model_type: str, engine: str, program: str, report: Report, engine_python: str = "") -> None:
    """Refused: our program or the engine says why it cannot be. Wrong: other tokens than eager's."""
    from argosy.capture.twin import shrink

    config = shrink(configuration(model_type))
    rows = run_twin(config, engine, program, report, engine_python=engine_python)
    if rows is None:
        return
    windows = window_names(config)
    if RUNNERS[engine].pads_behind and windows and all(row.ok for row in rows[:-1]) and (rows[-1].excused or rows[-1].ok is False):
        # Padding between a prompt and its continuation takes room in a window. A larger one shows that nothing else is wrong.
        wide = run_twin(config, engine, program, report, windows)
        if wide is not None and all(row.ok for row in wide):
            rows[-1] = wide[-1]
            rows[-1].note = f"padded batches only within the window ({', '.join(windows)}), here {_WIDE}: the engine pads behind prompts"
    finish(rows, report)


def window_names(config: Any) -> list[str]:
    """Names of settings that bound how far back a token looks, and are smaller than our texts."""
    text = config.get_text_config(decoder=True)
    found = {name: getattr(text, name, None) for name in ("sliding_window", "window_size", "attention_chunk_size")}
    return [name for name, value in found.items() if isinstance(value, int) and 0 < value < _WIDE]


def run_twin(config: Any, engine: str, program: str, report: Report, widened: Sequence[str] = (), engine_python: str = "") -> list[Row] | None:
    """One row a run: prompts one by one, then as a batch. None if there is nothing to compare; the report says why. `widened`:
    settings of windows that are to be out of reach."""
    from argosy.capture.twin import build, save

    report.step("build the twin")
    twin = build(config)
    if widened:
        twin = with_settings(twin, dict.fromkeys(widened, _WIDE))
    if not twin.can_generate():
        report.finish("refused", "generates no text")
        return None
    if twin.generation_config.eos_token_id is None:  # default configurations may lack it, checkpoints have one
        twin.generation_config.eos_token_id = config.get_text_config(decoder=True).vocab_size - 1
    report.update(**{"class": type(twin).__name__})
    report.step("run the eager model")
    runner = RUNNERS[engine]
    scale, runs = lively(twin, lambda: expected_runs(twin, None, NEW_TOKENS, batches=runner.batches,
                                                     own_settings=runner.own_settings,
                                                     pads_behind=runner.pads_behind))  # fmt: skip
    report.update(distinct=min((each.distinct for each in runs), default=0), scale=scale)
    with tempfile.TemporaryDirectory(prefix="argosy-bundle-") as name:
        save(twin, Path(name) / "twin")
        report.step("export")
        refusal, _ = export_bundle(program, engine, Path(name) / "twin", Path(name) / "bundle")
        if refusal:
            report.finish("refused", refusal)
            return None
        report.update(**recognised(Path(name) / "bundle"))
        report.step(f"open it in {runner.title}")
        try:
            process = BundleProcess(open_bundle(Path(name) / "bundle"), engine_python or None)
        except EngineMissing:
            raise
        except RunError as error:
            report.finish("refused", f"{runner.title}: {without(str(error), name)}")
            return None
        report.step(f"run it in {runner.title}")
        report.update(engine=process.opened["version"])
        with process:
            rows = [run_bundle(process, each, NEW_TOKENS, ENGINES["onnx"].twin_tolerance) for each in runs]
    for row, each in zip(rows, runs, strict=True):
        row.note = without(row.note, name)
        row.component = "single" if len(each.prompts) == 1 else "batch"
    return rows


def recognised(bundle: Path) -> dict[str, str]:
    """How much of a decoder's graph the engine's own ops compute: attention (of layers with keys), norms, rotary embeddings."""
    import onnx

    file = bundle / "model.onnx"
    if not file.exists():
        return {}
    graph = onnx.load(file, load_external_data=False).graph
    ops = Counter(node.op_type for node in graph.node)
    layers = sum(each.name.endswith(".key") for each in graph.input)
    norms = ops["SimplifiedLayerNormalization"] + ops["SkipSimplifiedLayerNormalization"] + ops["LayerNormalization"]
    left = f", {ops['ReduceMean']} left" if ops["ReduceMean"] else ""
    # Attention that turns queries and keys by itself, or ops that turn one of the two.
    inside = sum(each.name == "do_rotary" and each.i for node in graph.node for each in node.attribute)
    rotary = f"{ops['RotaryEmbedding'] + 2 * inside}" + (f", {2 * inside} in attention" if inside else "")
    return {
        "attention": f"{ops['GroupQueryAttention']} of {layers}", "norms": f"{norms}{left}", "rotary": rotary,
    }  # fmt: skip


def with_settings(model: Any, settings: dict[str, int]) -> Any:
    """A model of the same weights whose text configuration has other settings."""
    config = copy.deepcopy(model.config)
    for name, value in settings.items():
        setattr(config.get_text_config(decoder=True), name, value)
    changed = type(model)(config).eval()
    changed.load_state_dict(model.state_dict())
    return changed


def lively(twin: Any, runs: Callable[[], list[ExpectedRun]]) -> tuple[int, list[ExpectedRun]]:
    """Scales the weights until continuations have enough distinct tokens, and says by how much: at their usual size the layers
    of a random model change little, and one whose head is its embedding says the last token again."""
    scale, found = 1, runs()
    while scale < _LARGEST_SCALE and any(each.tokens and each.distinct * 4 < NEW_TOKENS for each in found):
        scale *= 2
        scale_layers(twin, 2.0)
        found = runs()
    return scale, found


def scale_layers(model: Any, factor: float) -> None:
    """Every matrix but those of embeddings."""
    import torch

    kept = {id(each) for module in model.modules() if isinstance(module, torch.nn.Embedding) for each in module.parameters()}
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() >= 2 and id(parameter) not in kept:
                parameter.mul_(factor)


def finish(rows: list[Row], report: Report) -> None:
    for kind in ("single", "batch"):
        report.update(**{kind: verdict([row for row in rows if row.component == kind])})
    notes = "; ".join(f"{row.shape}: {row.note}" for row in rows if row.note)[:600]
    if rows and all(row.ok is False and row.tokens is None for row in rows):  # the engine says no to every run
        report.finish("refused", rows[0].note)
    elif any(row.ok is False for row in rows):
        report.finish("wrong", notes)
    elif not rows or not all(row.ok for row in rows):
        report.finish("not compared", notes)
    else:
        report.finish("ok" if report.values.get("distinct", 0) * 4 >= NEW_TOKENS else "repeats itself", notes)


def verdict(rows: list[Row]) -> dict[str, Any] | None:
    """``ok`` and how many tokens agree, of how many; None if there was no such run."""
    if not rows:
        return None
    tokens = [row.tokens or (0, 0) for row in rows]
    return {"ok": all(row.ok for row in rows), "agree": sum(each[0] for each in tokens), "tokens": sum(each[1] for each in tokens)}
