"""Twins of several kinds, and the real MiniLM if it is given, exported for Optimum and run in it beside PyTorch.

    python tests/sweeps optimum --python ENVIRONMENT/bin/python [--minilm FOLDER] [--table docs/coverage/optimum.md]

ENVIRONMENT has optimum-onnx 0.1.0, which needs transformers below 4.58 and so cannot share ours.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from . import PROGRAM
from . import transformersjs_cases as cases
from .exporting import export_bundle
from .pages import table, write_page
from .transformersjs import make_twin

WORKER = Path(__file__).parent / "workers/optimum_worker.py"
DECODERS = ("llama", "mistral", "mixtral", "qwen2", "qwen3", "gemma2", "phi3", "gpt2", "bloom", "falcon", "olmo2", "starcoder2", "deepseek_v3")  # fmt: skip
SEQ2SEQ = ("t5", "mt5", "bart", "marian")
PLAN = (*((name, "decoder") for name in DECODERS), *((name, "seq2seq") for name in SEQ2SEQ), ("whisper", "speech"),
        ("vit", "image classes"), ("bert", "masked text"))  # fmt: skip


@dataclass
class Row:
    model_type: str
    what: str
    facts: str
    verdict: str = ""
    request: dict[str, Any] | None = None
    judge: Callable[[Any], str] | None = None


def close_to(expected: torch.Tensor) -> Callable[[Any], str]:
    def judge(answer: dict[str, Any]) -> str:
        found = torch.tensor(answer["data"]).reshape(answer["dims"])
        if found.shape != expected.shape:
            return f"shape {answer['dims']}"
        worst = (found - expected).abs().max().item()
        return "" if worst < 1e-4 * max(1, expected.abs().max().item()) else f"differs by {worst}"

    return judge


def rows_of(model: Any, model_type: str, kind: str, folder: Path) -> list[Row]:
    if kind in ("decoder", "seq2seq", "speech"):
        makers = [cases.decoder, cases.padded_decoder] if kind == "decoder" else [{"seq2seq": cases.seq2seq, "speech": cases.whisper}[kind]]
        return [_generating(maker(model, model_type, folder)) for maker in makers]
    generator = torch.Generator().manual_seed(0)
    if kind == "image classes":
        inputs = {"pixel_values": torch.randn(2, 3, 32, 32, generator=generator)}
        name = "ORTModelForImageClassification"
    else:
        ids = torch.randint(5, 100, (2, 11), generator=generator)
        inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        name = "ORTModelForMaskedLM"
    with torch.no_grad():
        expected = model(**inputs).logits
    request = {"call": "forward", "class": name, "inputs": {each: cases.spec(value) for each, value in inputs.items()}, "output": "logits"}
    return [Row(model_type, name, "logits within 1e-4", request=request, judge=close_to(expected))]


def _generating(case: cases.Case) -> Row:
    request = dict(case.request, **{"class": case.request["auto"].replace("AutoModel", "ORTModel")})
    facts = case.facts
    if request["class"] == "ORTModelForSpeechSeq2Seq":
        request |= {"call": "steps", "start": request["options"]["decoder_input_ids"][0],
                    "inputs": {"input_features": request["inputs"]["inputs"]}}  # fmt: skip
    return Row(case.name, f"{request['class']}{', padded batch of 3' if 'padded' in case.what else ''}", facts, request=request, judge=case.judge)


def minilm_row(folder: Path) -> Row:
    from transformers import AutoModel, AutoTokenizer

    texts = list(cases.SENTENCES)
    batch = AutoTokenizer.from_pretrained(folder)(texts, padding=True, return_tensors="pt")
    with torch.no_grad():
        expected = AutoModel.from_pretrained(folder).eval()(**batch).last_hidden_state
    request = {"call": "forward", "class": "ORTModelForFeatureExtraction", "inputs": {}, "texts": texts, "output": "last_hidden_state"}
    return Row("bert (all-MiniLM-L6-v2)", "ORTModelForFeatureExtraction", "hidden states of 3 texts within 1e-4", request=request, judge=close_to(expected))


def run(program: str, python: str, plan: list[tuple[str, str]], minilm: Path | None, scratch: Path) -> list[Row]:
    cases.quiet()
    rows: list[Row] = []
    for model_type, kind in plan:
        print(f"{model_type} …", file=sys.stderr, flush=True)
        folder = scratch / "twins" / model_type
        made = rows_of(make_twin(model_type, kind, folder), model_type, kind, folder)
        refusal, _ = export_bundle(program, "optimum", folder, scratch / "bundles" / model_type)
        for row in made:
            row.verdict = f"refused: {refusal}" if refusal else ""
            row.request["model"] = str(scratch / "bundles" / model_type)
        rows += made
    if minilm:
        row = minilm_row(minilm)
        row.verdict, _ = export_bundle(program, "optimum", minilm, scratch / "bundles" / "minilm")
        row.request["model"] = str(scratch / "bundles" / "minilm")
        rows.append(row)
    asked = [row for row in rows if not row.verdict]
    file = scratch / "requests.json"
    file.write_text(json.dumps({"requests": [{"name": str(i), **row.request} for i, row in enumerate(asked)]}))
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run([python, str(WORKER), str(file)], capture_output=True, text=True, check=False, env=environment)
    answers = {answer["name"]: answer for line in done.stdout.splitlines() if line.startswith("{") for answer in [json.loads(line)]}
    for i, row in enumerate(asked):
        answer = answers.get(str(i), {"error": f"no answer: {done.stderr[-300:]}"})
        row.verdict = answer.get("error") or row.judge(answer["result"]) or "ok"
    return rows


def page(rows: list[Row]) -> list[str]:
    lines = [
        "# Models in Optimum", "",
        "Written by `python tests/sweeps optimum`: small models with random weights (and one real one), exported with `--for optimum` and run by",
        "optimum-onnx 0.1.0 in an environment of its own, beside PyTorch. Tokens are greedy and compared one by one.", "",
        f"{sum(row.verdict == 'ok' for row in rows)} of {len(rows)} runs agree.", "",
    ]  # fmt: skip
    cells = ([row.model_type, row.what, row.facts, row.verdict] for row in rows)
    return [*lines, *table(("model type", "class", "reference", "result"), cells)]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps optimum", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--python", required=True, help="of an environment with optimum-onnx")
    parser.add_argument("--minilm", type=Path)
    parser.add_argument("--only", default="", help="model types, separated by commas")
    parser.add_argument("--table", type=Path)
    parser.add_argument("--scratch", type=Path, help="kept; by default a temporary folder")
    options = parser.parse_args(arguments)
    only = options.only.split(",") if options.only else []
    with contextlib.ExitStack() as stack:
        scratch = options.scratch or Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="argosy-optimum-")))
        (scratch / "bundles").mkdir(parents=True, exist_ok=True)
        rows = run(options.program, options.python, [each for each in PLAN if not only or each[0] in only], options.minilm, scratch)
    for row in rows:
        print(f"{row.model_type:24} {row.what:44} {row.facts:28} {row.verdict}")
    if options.table:
        write_page(options.table, page(rows))
    return 0 if all(row.verdict == "ok" for row in rows) else 1
