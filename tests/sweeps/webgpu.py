"""Twins exported with ``--device webgpu`` and run on ONNX Runtime's WebGPU kernels, beside its CPU kernels and the eager model.

    python tests/sweeps webgpu --python VENV/bin/python [--only llama,vit] [--table docs/coverage/webgpu.md]

VENV has onnxruntime-webgpu, which excludes onnxruntime ($ARGOSY_WEBGPU_PYTHON names its Python, too), and perhaps
onnxruntime-genai (installed with --no-deps), in which decoders then generate text on WebGPU. Without a GPU the
kernels run on SwiftShader, which Chromium has: $VK_ICD_FILENAMES names its ICD file (docs/how-to/devices.md).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from . import PROGRAM
from .configurations import configuration
from .exporting import export, without
from .journal import Journal, Key
from .outcome import Report, first_line
from .pages import installed, table, write_page
from .processes import add_options, run_sweep
from .worker import preload

WORKER = Path(__file__).parent / "workers/webgpu_worker.py"
DECODERS = """llama qwen3 gemma3_text phi3 mistral gpt2 smollm3 olmo2 granite qwen2 gemma2 gpt_neox opt bloom falcon cohere
stablelm starcoder2 lfm2 qwen3_next qwen3_moe gpt_oss""".split()
ENCODERS = "bert distilbert roberta vit convnext swin clip wav2vec2 whisper t5".split()
#: Tokens of each call, step by step, for each row: what is shorter is padded at its end, as the engine does it.
TEXTS = (((7,), (1,), (3,), (1,), (1,)), ((7, 5), (1, 1), (1, 1)))
#: Of the largest value; both compute in float32.
TOLERANCE = 1e-4
#: That the engine makes of the first step's prompt.
NEW_TOKENS = 12
#: Inserted by the runtime; not nodes of ours.
_COPIES = ("MemcpyFromHost", "MemcpyToHost")


def text_steps(call: tuple[tuple[int, ...], ...], vocabulary: int, seed: int) -> list[dict[str, Any]]:
    import numpy

    random = numpy.random.default_rng(seed)
    mask = numpy.zeros((len(call[0]), 0), numpy.int64)
    steps = []
    for lengths in call:
        longest = max(lengths)
        new = numpy.array([[1] * length + [0] * (longest - length) for length in lengths])
        before = mask.sum(axis=1, keepdims=True)
        mask = numpy.concatenate([mask, new], axis=1)
        steps.append({"input_ids": random.integers(5, vocabulary - 5, new.shape), "attention_mask": mask,
                      "position_ids": before + numpy.arange(longest)})  # fmt: skip
    return steps


def write_job(folder: Path, graph: Path, calls: list[list[dict[str, Any]]], states: list[tuple[str, str]], is_text: bool) -> None:
    import numpy

    names = [[f"call.{i}.{step}.npz" for step in range(len(steps))] for i, steps in enumerate(calls)]
    for steps, files in zip(calls, names, strict=True):
        for arrays, file in zip(steps, files, strict=True):
            numpy.savez(folder / file, **arrays)
    job = {"graph": str(graph), "calls": names, "states": states, "bundle": str(graph.parent) if is_text else "",
           "prompt": calls[0][0]["input_ids"][0].tolist() if is_text else [], "new_tokens": NEW_TOKENS}  # fmt: skip
    (folder / "job.json").write_text(json.dumps(job), encoding="utf-8")


def states_of(bundle: Path) -> list[tuple[str, str]]:
    """Inputs and the outputs that they continue with, by their names in the graph."""
    manifest = json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))
    renamed = manifest["graphs"][0]["renamed"]
    cache = next((each.get("cache") for each in manifest["components"] if each["name"] == manifest["graphs"][0]["component"]), None)
    named = [(each["path"], each["output"]) for each in (cache or {}).get("states", [])]
    return [(renamed.get(name, name), renamed.get(output, output)) for name, output in named]


def largest_difference(expected: Any, found: Any) -> float:
    import numpy

    if expected.size == 0:
        return 0.0
    difference = numpy.abs(expected.astype(numpy.float64) - found.astype(numpy.float64)).max()
    return float(difference / max(1.0, numpy.abs(expected.astype(numpy.float64)).max()))


def compare(folder: Path, calls: list[list[dict[str, Any]]]) -> tuple[float, str]:
    """The largest relative difference between CPU and WebGPU over all outputs of all steps, and where it is. NaN counts as wrong."""
    import numpy

    worst, where = 0.0, ""
    for i, steps in enumerate(calls):
        for step in range(len(steps)):
            with numpy.load(folder / f"cpu.{i}.{step}.npz") as cpu, numpy.load(folder / f"webgpu.{i}.{step}.npz") as gpu:
                for name in cpu.files:
                    difference = largest_difference(cpu[name], gpu[name])
                    if not difference <= worst:
                        worst, where = difference, f"{name} in step {step + 1} of call {i + 1}"
    return worst, where


def eager_text(twin: Any, steps: list[dict[str, Any]], folder: Path) -> float:
    """How far the logits behind each step of the first call, a row alone, are from the eager model's over all tokens at once."""
    import numpy
    import torch

    tokens, worst = [], 0.0
    for step, arrays in enumerate(steps):
        tokens += arrays["input_ids"][0].tolist()
        with torch.no_grad():
            expected = twin(torch.tensor([tokens])).logits[0, -1].numpy()
        with numpy.load(folder / f"webgpu.0.{step}.npz") as found:
            worst = max(worst, largest_difference(expected, found["logits"][0, -1]))
    return worst


def engine_tokens(twin: Any, prompt: Any, made: dict[str, Any]) -> tuple[str, bool]:
    """What came of the text in the engine on WebGPU beside its CPU and the eager model, and whether that is right."""
    import torch

    if not made or made["webgpu"] is None:
        return "–", True
    if made["webgpu"]["device"] != "WebGPU":
        return f"ran on {made['webgpu']['device']}", False
    twin.generation_config.eos_token_id = None
    with torch.no_grad():
        expected = twin.generate(torch.tensor(prompt), attention_mask=torch.ones(prompt.shape, dtype=torch.int64),
                                 max_new_tokens=NEW_TOKENS, do_sample=False)[0, prompt.shape[1] :].tolist()  # fmt: skip
    found = made["webgpu"]["tokens"]  # the engine stops at a token that ends a text
    same = bool(found) and found == made["cpu"]["tokens"] and found == expected[: len(found)]
    return f"{len(found)} as eager" if same else f"{found}, the CPU {made['cpu']['tokens']}, eager {expected}", same


def eager_call(twin: Any, inputs: dict[str, Any], folder: Path) -> float | None:
    """The same of a model that is run once; None if no output has a name that the model knows."""
    import numpy
    import torch

    with torch.no_grad():
        expected = twin(**inputs)
    with numpy.load(folder / "webgpu.0.0.npz") as found:
        both = [name for name in found.files if isinstance(getattr(expected, name, None), torch.Tensor)]
        return max((largest_difference(getattr(expected, name).numpy(), found[name]) for name in both), default=None)


@dataclass(frozen=True)
class WebgpuJob:
    family: str
    program: str
    python: str

    @property
    def key(self) -> Key:
        return (self.family,)

    def run(self, result: Path) -> None:
        report = Report(result)
        try:
            self.try_out(report)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
            report.finish("failed", first_line(error))

    def try_out(self, report: Report) -> None:
        import torch
        from argosy.capture.twin import Sizes, build, sample_inputs, save, shrink
        is_text = self.family in DECODERS
        report.step("build the twin")
        config = shrink(configuration(self.family))
        if self.family == "lfm2":
            config.layer_types = ["conv", "full_attention"]  # the default has no convolution
        twin = build(config)
        report.update(**{"class": type(twin).__name__})
        with tempfile.TemporaryDirectory(prefix="argosy-webgpu-") as name:
            folder = Path(name)
            save(twin, folder / "twin")
            twin = type(twin).from_pretrained(folder / "twin").eval()  # not all weights are saved
            report.step("export")
            engine = "genai" if is_text else "plain"
            refusal, _ = export(self.program, "onnx", "--model", folder / "twin", "--for", engine, "--device", "webgpu",
                                "--check", "off", "-o", folder / "bundle")  # fmt: skip
            if refusal:
                return report.finish("refused", without(refusal, name))
            manifest = json.loads((folder / "bundle/bundle.json").read_text(encoding="utf-8"))
            graph = manifest["graphs"][0]
            report.update(engine=engine, component=graph["component"])
            report.step("run it")
            sample = None
            if is_text:
                calls = [text_steps(call, twin.config.get_text_config().vocab_size, i) for i, call in enumerate(TEXTS)]
            else:
                sample = {key: value for key, value in sample_inputs(twin, Sizes()).items() if isinstance(value, torch.Tensor)}
                calls = [[{key: value.numpy() for key, value in sample.items()}]]
            write_job(folder, folder / "bundle" / graph["file"], calls, states_of(folder / "bundle"), is_text)
            done = subprocess.run([self.python, str(WORKER), name], capture_output=True, text=True, env=own_environment(), timeout=900)
            lines = [line for line in done.stdout.splitlines() if line.startswith('{"version"')]
            if not lines:
                said = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
                return report.finish("failed", without(" | ".join(said[-2:])[-400:], name))
            found = json.loads(lines[-1])
            worst, where = compare(folder, calls)
            report.update(version=found["version"], nodes=found["webgpu"]["nodes"], seconds=found["webgpu"]["seconds"], worst=worst,
                          eager=eager_text(twin, calls[0], folder) if is_text else eager_call(twin, sample or {}, folder))  # fmt: skip
            tokens, agree = engine_tokens(twin, calls[0][0]["input_ids"], found.get("engine", {})) if is_text else ("–", True)
            report.update(tokens=tokens)
        wrong = not worst <= TOLERANCE
        far = report.values["eager"] is not None and not report.values["eager"] <= TOLERANCE
        if not agree:
            return report.finish("wrong", "other tokens in the engine")
        if wrong or far:
            return report.finish("wrong", where if wrong else "CPU and WebGPU agree, and differ from the eager model")
        return report.finish("ok")


def own_environment() -> dict[str, str]:
    """Without the sources of this project, which are for another Python. Vulkan's loader wants a folder of its own."""
    kept = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return {"XDG_RUNTIME_DIR": tempfile.gettempdir(), **kept}


def counted(nodes: dict[str, dict[str, int]], provider: str) -> Counter[str]:
    return Counter({op: count for op, count in nodes.get(provider, {}).items() if op not in _COPIES})


def page(jobs: list[WebgpuJob], results: dict[Key, dict[str, Any]], versions: dict[str, str]) -> list[str]:
    rows, left = [], Counter()
    for job in jobs:
        outcome = results[job.key]
        nodes = outcome.get("nodes", {})
        here, there = counted(nodes, "WebGpuExecutionProvider"), counted(nodes, "CPUExecutionProvider")
        left += there
        copies = sum(nodes.get("WebGpuExecutionProvider", {}).get(op, 0) for op in _COPIES)
        shown = [f"{outcome[key]:.1e}" if outcome.get(key) is not None else "–" for key in ("worst", "eager")]
        verdict = outcome["status"] + (f": {outcome['reason']}" if outcome.get("reason") else "")
        rows.append([f"`{job.family}`", outcome.get("component", "–"), outcome.get("engine", "–"), here.total(), there.total(),
                     copies, *shown, outcome.get("tokens", "–"), verdict])  # fmt: skip
    good = sum(results[job.key]["status"] == "ok" for job in jobs)
    used = next((results[job.key]["version"] for job in jobs if "version" in results[job.key]), "?")
    return [
        "# Bundles on WebGPU", "",
        "Written by `python tests/sweeps webgpu`: small models with random weights, exported with `--device webgpu` and run on the WebGPU",
        f"kernels of onnxruntime-webgpu {used} and on its CPU kernels. Without a GPU: the kernels ran on SwiftShader, Chromium's software",
        f"device. Exported with torch {versions['torch']}, transformers {versions['transformers']}.", "",
        "Decoders run five steps (7, 1, 3, 1 and 1 tokens) and a batch of two rows, the shorter one padded at its end, with the caches that",
        "each device made itself; encoders run once. Differences are the largest of any output or cache, as a part of its largest value (or of 1):",
        f"of WebGPU to the CPU, and of WebGPU's logits (or outputs) to the eager model; up to {TOLERANCE:g} is `ok`.",
        f"`tokens`: up to {NEW_TOKENS} greedy tokens in ONNX Runtime GenAI on WebGPU are those of the same engine on the CPU and of `generate` of transformers; –: not run.", "",
        f"{good} of {len(jobs)} agree.", "",
        *table(("model type", "graph", "`--for`", "nodes on WebGPU", "nodes on the CPU", "copies between them", "to the CPU", "to eager", "tokens", ""), rows),
        "", "Ops that ran on the CPU, in all graphs: "
        + ", ".join(f"{op} ({count})" for op, count in left.most_common()) + ". Most compute",
        "sizes, positions and masks in int64, which the provider leaves there; mixtures of experts are loops over sequences of tensors, too.",
    ]  # fmt: skip


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps webgpu", description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--python", default=os.environ.get("ARGOSY_WEBGPU_PYTHON", ""), help="one with onnxruntime-webgpu")
    parser.add_argument("--only", default="", help="model types, separated by commas")
    parser.add_argument("--table", type=Path)
    add_options(parser, seconds=600)
    options = parser.parse_args(arguments)
    if not options.python:
        parser.error("--python or $ARGOSY_WEBGPU_PYTHON: the Python that has onnxruntime-webgpu")
    families = [*DECODERS, *ENCODERS]
    only = options.only.split(",") if options.only else families
    if unknown := [name for name in only if name not in families]:
        parser.error(f"--only: {', '.join(unknown)}: none of {', '.join(families)}")
    versions = installed("torch", "transformers")
    journal = Journal(options.work / "webgpu.jsonl", versions)
    jobs = [WebgpuJob(family, options.program, options.python) for family in only]
    results = run_sweep(jobs, journal, options, preload)
    print(f"{sum(results[job.key]['status'] == 'ok' for job in jobs)} of {len(jobs)} agree")
    if options.table:
        write_page(options.table, page(jobs, results, versions))
    return 0 if all(results[job.key]["status"] == "ok" for job in jobs) else 1
