"""Text generation of small models of many architectures in ExecuTorch's own runner, beside the eager model.

    python tests/executorch/generation_sweep.py [--program build/release/apps/cli/argosy] [--recipe xnnpack] [FAMILY…]

Every model is exported for text-generation, generates greedily in TextLLMRunner and by calls of its method, with the prompt at
once and in pieces; the tokens are to be those of `generate` of transformers. Writes a table to --table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
WORKER = Path(__file__).with_name("generation_worker.py")
FAMILIES = """llama qwen3 gemma3 smollm3 phi3 olmo gpt2 qwen2 mistral gemma gemma2 granite olmo2 stablelm starcoder2 phi gpt_neox
gptj opt bloom falcon cohere cohere2 glm4 exaone4 helium nemotron lfm2 mixtral qwen2_moe qwen3_moe gpt_oss deepseek_v3 falcon_h1
bamba""".split()
PROMPT = "Argosy sails 7 seas"
HEAD = """# Text generation in ExecuTorch's runner

Small models of these architectures, exported by `argosy export executorch --task text-generation --max-seq-len 64`, generate 12
tokens greedily: in `TextLLMRunner`, and by calls of the program's method with the prompt at once and in pieces. `as eager`: all three are
the tokens of `generate` of transformers. Written by `python tests/executorch/generation_sweep.py --table`.
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
    from generation_worker import letter_tokenizer

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


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("families", nargs="*", default=FAMILIES)
    parser.add_argument("--program", default=str(ROOT / "build/release/apps/cli/argosy"))
    parser.add_argument("--recipe", default="xnnpack")
    parser.add_argument("--twins", type=Path, default=None, help="folder of models that are made already")
    parser.add_argument("--work", type=Path, default=Path("/tmp/argosy-generation"))
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--table", type=Path)
    options, more = parser.parse_known_args()
    sys.path[:0] = [str(ROOT / "python"), str(Path(__file__).parent)]
    rows = []
    for family in options.families or FAMILIES:
        twin = (options.twins or options.work / "twins") / family
        try:
            if not (twin / "config.json").exists():
                make_twin(family, twin)
            problems = compare(
                options.program, twin, options.work / family, options.count, "--recipe", options.recipe, *more
            )
        except Exception as error:
            problems = [str(error)]
        rows.append((family, problems))
        print(family, "; ".join(problems) or "equal", flush=True)
    right = sum(not problems for _, problems in rows)
    print(f"{right} of {len(rows)} equal")
    if options.table:
        lines = [HEAD, "| model | recipe | tokens |", "|---|---|---|"]
        lines += [f"| `{name}` | {options.recipe} | {'; '.join(problems) or 'as eager'} |" for name, problems in rows]
        options.table.write_text("\n".join(lines) + f"\n\n{right} of {len(rows)}.\n", encoding="utf-8")
    return 0 if right == len(rows) else 1


if __name__ == "__main__":
    sys.exit(main())
