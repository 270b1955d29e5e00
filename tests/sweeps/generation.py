"""Text generation of small models of many architectures in ExecuTorch's own runner, beside the eager model.

    python tests/sweeps generation [--recipe xnnpack] [FAMILY…]

Every model is exported for text-generation, generates greedily in TextLLMRunner and by calls of its method, with the prompt at
once and in pieces; the tokens are to be those of `generate` of transformers. Writes a table to --table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from . import PROGRAM, ROOT
from .journal import Journal, Key
from .pages import installed, table, write_page
from .processes import add_options, run_sweep
from .worker import preload
from .workers.generation_worker import letter_tokenizer

WORKER = Path(__file__).parent / "workers/generation_worker.py"
FAMILIES = """llama qwen3 gemma3 smollm3 phi3 olmo gpt2 qwen2 mistral gemma gemma2 granite olmo2 stablelm starcoder2 phi gpt_neox
gptj opt bloom falcon cohere cohere2 glm4 exaone4 helium nemotron lfm2 mixtral qwen2_moe qwen3_moe gpt_oss deepseek_v3 falcon_h1
bamba""".split()
PROMPT = "Argosy sails 7 seas"
HEAD = """# Text generation in ExecuTorch's runner

Small models of these architectures, exported by `argosy export executorch --task text-generation --max-seq-len 64`, generate 12
tokens greedily: in `TextLLMRunner`, and by calls of the program's method with the prompt at once and in pieces. `as eager`: all three are
the tokens of `generate` of transformers. Written by `python tests/sweeps generation --table`.
"""


def make_twin(family: str, folder: Path) -> None:
    """Own process: a model of a family that fails takes nothing else along."""
    code = (
        "import sys, os; from pathlib import Path; from transformers import AutoConfig\n"
        "from argosy.capture.twin import build, save, shrink\n"
        "save(build(shrink(AutoConfig.for_model(sys.argv[1]))), Path(sys.argv[2]))\nos._exit(0)"
    )
    subprocess.run([sys.executable, "-c", code, family, str(folder)], check=True, capture_output=True)


def vocabulary_size(folder: Path) -> int:
    """The runner samples among as many logits as the tokenizer has tokens, whether there are so many or not."""
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    return config.get("vocab_size") or config["text_config"]["vocab_size"]


def eager_tokens(folder: Path, prompt: str, count: int) -> list[int]:
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    ids = torch.tensor([list(prompt.encode())])
    with torch.no_grad():
        result = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False)
    return result[0, ids.shape[1] :].tolist()


def run_worker(program: Path, tokenizer: Path, prompt: str, count: int) -> list[list[int]]:
    command = [sys.executable, str(WORKER), str(program), str(tokenizer), prompt, str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    for line in reversed(done.stdout.splitlines()):
        if line.startswith('{"tokens"'):
            return json.loads(line)["tokens"]
    lines = [line for line in (done.stderr + done.stdout).splitlines() if line.strip()]
    raise RuntimeError(f"exit {done.returncode}: " + " | ".join(lines[-3:])[-300:])


def export(argosy: str, model: Path, output: Path, *options: str, task: str = "text-generation", check: str = "off") -> None:
    command = [argosy, "export", "executorch", "--model", str(model), "--task", task, "--check", check,
               "-o", str(output), *options]  # fmt: skip
    environment = os.environ | {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if line.startswith("error")]
        raise RuntimeError((lines or done.stderr.splitlines()[-1:] or ["?"])[0])


def compare(argosy: str, model: Path, work: Path, count: int, *options: str) -> list[str]:
    """What is wrong; empty: nothing."""
    program, tokenizer = work / "model.pte", work / "tokenizer.json"
    work.mkdir(parents=True, exist_ok=True)
    program.unlink(missing_ok=True)
    tokenizer.write_text(json.dumps(letter_tokenizer(vocabulary_size(model)), ensure_ascii=False), encoding="utf-8")
    export(argosy, model, program, "--max-seq-len", "64", *options)
    expected = eager_tokens(model, PROMPT, count)
    ends = json.loads((model / "config.json").read_text(encoding="utf-8")).get("eos_token_id")
    without_end = [token for token in expected if token not in (ends if isinstance(ends, list) else [ends])]
    at_once, in_pieces, of_runner = run_worker(program, tokenizer, PROMPT, count)
    problems = []
    if at_once != expected:
        problems.append(f"prompt at once: {at_once}, eager {expected}")
    if in_pieces != expected:
        problems.append(f"prompt in pieces: {in_pieces}, eager {expected}")
    if of_runner[: len(without_end)] != without_end:
        problems.append(f"runner: {of_runner}, eager {expected}")
    return problems


@dataclass(frozen=True)
class GenerationJob:
    family: str
    program: str
    #: of the twin, where it is not made yet, and of what is exported
    work: Path
    count: int
    recipe: str
    options: tuple[str, ...]

    @property
    def key(self) -> Key:
        return self.family, self.recipe, *self.options

    def run(self, result: Path) -> None:
        twin = self.work / "twins" / self.family
        if not (twin / "config.json").exists():
            make_twin(self.family, twin)
        try:
            problems = compare(self.program, twin, self.work / self.family, self.count, "--recipe", self.recipe, *self.options)
        except Exception as error:  # noqa: BLE001 - whatever it is, it is shown
            problems = [str(error)]
        result.write_text(json.dumps({"status": "wrong" if problems else "ok", "reason": "; ".join(problems)}), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps generation", description=__doc__.split("\n", 1)[0])
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--recipe", default="xnnpack")
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--table", type=Path)
    add_options(parser, seconds=600)
    options, more = parser.parse_known_args(arguments)
    journal = Journal(options.work / "generation.jsonl", installed("torch", "transformers", "executorch"))
    folder = (options.work / "generation").absolute()
    jobs = [GenerationJob(family, options.program, folder, options.count, options.recipe, tuple(more)) for family in options.families]
    results = run_sweep(jobs, journal, options, preload)
    right = sum(results[job.key]["status"] == "ok" for job in jobs)
    print(f"{right} of {len(jobs)} equal")
    if options.table:
        rows = ([f"`{job.family}`", options.recipe, results[job.key]["reason"] or "as eager"] for job in jobs)
        write_page(options.table, [HEAD, *table(("model", "recipe", "tokens"), rows), "", f"{right} of {len(jobs)}."])
    return 0 if right == len(jobs) else 1
