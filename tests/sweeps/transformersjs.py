"""Twins of many kinds, and the real MiniLM if it is given, exported for transformers.js and run in it beside PyTorch.

    python tests/sweeps transformersjs --package NODE_MODULES/@huggingface/transformers [--minilm FOLDER] [--table docs/coverage/transformersjs.md]

Needs Node 20; with ``--browser`` Chromium too. Takes a minute for each model whose capture is not in the cache.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from . import PROGRAM
from . import transformersjs_cases as cases
from .configurations import configuration
from .exporting import export_bundle
from .pages import table, write_page
from .twin_texts import with_varied_text

DECODERS = (
    "llama", "mistral", "mixtral", "qwen2", "qwen3", "qwen3_moe", "gemma2", "gemma3_text", "phi", "phi3", "gpt2", "gpt_neox",
    "opt", "bloom", "falcon", "olmo2", "granite", "cohere", "starcoder2", "stablelm", "smollm3", "deepseek_v3", "glm4", "lfm2",
    "gptj", "gpt_bigcode", "gpt_oss", "qwen3_next", "falcon_h1", "exaone4", "nemotron", "mamba",
)  # fmt: skip
SEQ2SEQ = ("t5", "mt5", "bart", "mbart", "marian", "m2m_100", "pegasus")


@dataclass
class Row:
    model_type: str
    kind: str
    what: str = ""
    facts: str = ""
    verdict: str = ""
    notes: list[str] = field(default_factory=list)


def makers(kind: str) -> list[Callable[..., cases.Case]]:
    return {
        "decoder": [cases.decoder, cases.padded_decoder], "seq2seq": [cases.seq2seq], "speech": [cases.whisper], "caption": [cases.caption],
        "image classes": [cases.image_classes], "detection": [cases.detection], "image and text": [cases.zero_shot],
        "letters": [cases.speech_text], "vision-language": [cases.image_text], "sentences": [cases.features],
        "audio-language": [cases.audio_text],
    }[kind]  # fmt: skip


PLAN = (
    *((name, "decoder") for name in DECODERS), *((name, "seq2seq") for name in SEQ2SEQ), ("whisper", "speech"),
    ("vision-encoder-decoder", "caption"), *((name, "image classes") for name in ("vit", "deit", "swin")),
    *((name, "detection") for name in ("detr", "yolos")),
    *((name, "image and text") for name in ("clip", "siglip")), ("wav2vec2", "letters"), ("hubert", "letters"),
    *((name, "vision-language") for name in ("llava", "smolvlm", "idefics3")), ("voxtral", "audio-language"),
)  # fmt: skip


def make_twin(model_type: str, kind: str, folder: Path) -> Any:
    from argosy.capture.twin import build, save, shrink
    config = shrink(configuration(model_type))
    if model_type == "lfm2":
        config.layer_types = ["conv", "full_attention"]  # the default has no convolution
    model = build(config)
    if kind in ("decoder", "seq2seq", "speech", "caption", "vision-language", "audio-language"):
        model = with_varied_text(model, lambda each: makers(kind)[0](each, model_type, folder).distinct)
    save(model, folder)
    model = type(model).from_pretrained(folder).eval()  # not all weights are saved
    if kind == "image and text":
        # As checkpoints say it; the engine fills texts up to it for some models.
        settings = json.loads((folder / "tokenizer_config.json").read_text())
        settings["model_max_length"] = model.config.text_config.max_position_embeddings
        (folder / "tokenizer_config.json").write_text(json.dumps(settings))
    return model


def export(program: str, folder: Path, output: Path, options: tuple[str, ...] = ()) -> tuple[str, list[str]]:
    """Why there is no bundle, or what the user is told."""
    refusal, said = export_bundle(program, "transformersjs", folder, output, options)
    return refusal, [line.split("warning: ", 1)[-1] for line in said.splitlines() if "config.json calls" in line]


def as_stored(model: Any, bundle: Path) -> contextlib.AbstractContextManager:
    """While it is entered, the model computes with the weights that the bundle stores in few bits."""
    from argosy.check.schemes import QuantizedModel

    quantized = json.loads((bundle / "bundle.json").read_text(encoding="utf-8")).get("quantized", [])
    return QuantizedModel(model, quantized) if quantized else contextlib.nullcontext()


def run(
    program: str, package: Path, plan: list[tuple[str, str]], minilm: Path | None, scratch: Path, options: tuple[str, ...] = (), browser: str = ""
) -> list[Row]:  # fmt: skip
    cases.quiet()
    rows, asked = [], []
    for model_type, kind in plan:
        folder = scratch / "twins" / model_type
        print(f"{model_type} …", end="", file=sys.stderr, flush=True)
        try:
            model = make_twin(model_type, kind, folder)
            refusal, notes = export(program, folder, scratch / "bundles" / model_type, options)
            with contextlib.nullcontext() if refusal else as_stored(model, scratch / "bundles" / model_type):
                made = [maker(model, model_type, folder) for maker in makers(kind)]
        except Exception as error:
            rows.append(Row(model_type, kind, verdict=f"no reference: {type(error).__name__}: {str(error)[:200]}"))
            continue
        print(" exported" if not refusal else f" {refusal}", file=sys.stderr, flush=True)
        for case in made:
            rows.append(Row(model_type, kind, case.what, case.facts, f"refused: {refusal}" if refusal else "", notes))
            if not refusal:
                asked.append((rows[-1], case))
    if minilm:
        rows += _minilm(program, minilm, scratch, asked, options)
    verdicts = cases.run_cases(package, scratch / "bundles", [case for _, case in asked], scratch, timeout=3000, browser=browser)
    for row, case in asked:
        row.verdict = verdicts[case.key] or "ok"
    return rows


def _minilm(program: str, folder: Path, scratch: Path, asked: list[tuple[Row, cases.Case]], options: tuple[str, ...]) -> list[Row]:
    from transformers import AutoModel

    # What is stored in few bits is held against the model as it is.
    least = 0.9999 if "--quantize" not in options else 0.99 if options[options.index("--quantize") + 1].startswith("int8") else 0.95
    case = cases.features(AutoModel.from_pretrained(folder).eval(), "minilm", folder, least=least)
    refusal, _ = export(program, folder, scratch / "bundles" / "minilm", options)
    row = Row("bert (all-MiniLM-L6-v2)", "sentences", case.what, case.facts, refusal)
    if not refusal:
        asked.append((row, case))
    return [row]


def page(rows: list[Row], quantize: str, browser: str) -> list[str]:
    good = sum(row.verdict == "ok" for row in rows)
    where = {"": "in Node 20", "wasm": "in headless Chromium, on wasm,", "webgpu": "in headless Chromium, on WebGPU (SwiftShader),"}[browser]
    how, flags = (f", weights stored as {quantize}", f" --quantize {quantize}") if quantize else ("", "")
    more = f" --browser {browser}" if browser else ""
    device = " --device webgpu" if browser == "webgpu" else ""
    lines = [
        f"# Models in transformers.js{f' in a browser ({browser})' if browser else ''}{how}", "",
        f"Written by `python tests/sweeps transformersjs{flags}{more}`: small models with random weights (and one real one), exported with `--for transformersjs{flags}{device}` and run",
        f"in transformers.js 4.3.1 {where} beside PyTorch{' with the same weights (the real one: beside the model as it is)' if quantize else ''}. Tokens are greedy and compared one by one.", "",
        f"{good} of {len(rows)} runs agree.", "",
    ]  # fmt: skip
    cells = []
    notes: list[str] = []
    for row in rows:
        mark = ""
        for note in row.notes:
            if note not in notes:
                notes.append(note)
            mark += f" [{notes.index(note) + 1}]"
        cells.append([f"{row.model_type}{mark}", row.what, row.facts, row.verdict])
    lines += table(("model type", "run", "reference", "result"), cells)
    if notes:
        lines += ["", "Notes of the exports:", "", *(f"{i}. {note}" for i, note in enumerate(notes, 1))]
    return lines


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps transformersjs", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--package", type=Path, required=True)
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--quantize", default="", help="as export takes it: weights in few bits, beside PyTorch with the same weights")
    parser.add_argument("--browser", choices=("wasm", "webgpu"), default="", help="in headless Chromium, not in Node")
    parser.add_argument("--only", default="", help="model types, separated by commas")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--scratch", type=Path, help="kept; by default a temporary folder")
    options = parser.parse_args(arguments)
    only = options.only.split(",") if options.only else []
    plan = [each for each in PLAN if not only or each[0] in only]
    with contextlib.ExitStack() as stack:
        scratch = options.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="argosy-js-")))
        (scratch / "bundles").mkdir(parents=True, exist_ok=True)
        # Activations are left as they are: random models are near ties.
        quantize = ("--quantize", options.quantize, "--accuracy-level", "1") if options.quantize else ()
        device = ("--device", "webgpu") if options.browser == "webgpu" else ()
        rows = run(options.program, options.package, plan, options.minilm, scratch, (*quantize, *device), options.browser)
    for row in rows:
        print(f"{row.model_type:24} {row.what:36} {row.facts:28} {row.verdict}")
    if options.table:
        write_page(options.table, page(rows, options.quantize, options.browser))
    return 0 if all(row.verdict == "ok" for row in rows) else 1
