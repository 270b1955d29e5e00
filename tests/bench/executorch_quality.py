"""What quantisation costs: perplexity and greedy tokens of the trained decoder, in ExecuTorch beside eager.

    python tests/bench/executorch_quality.py [--argosy build/release/apps/cli/argosy] [--tokens 8192]

Prints a row for each encoding: perplexity on text that the model was not trained on, the share of positions at which the most
likely token is eager's, and how many greedy tokens agree before the first that differs.
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "tools"), str(REPOSITORY / "python")]

from argosy.check.executorch_worker import open_method, open_program  # noqa: E402
from train_decoder import corpus, stream  # noqa: E402

MODEL = REPOSITORY / "tests/fixtures/trained-decoder"
LENGTH = 128
PROMPTS = ("def read(self", "import os\n\n\nclass ", "    for name in ", '"""The ')
ENCODINGS = {
    "fp32": (),
    "8da4w, 8w embedding": ("--qlinear", "8da4w", "--qembedding", "8w"),
    "8da8w": ("--qlinear", "8da8w"),
    "4w": ("--qlinear", "4w"),
    "8w": ("--qlinear", "8w"),
    "8a8w": ("--qlinear", "8a8w"),
    "4w embedding": ("--qembedding", "4w"),
}


#: Tokens that activations are seen on: the end of the same text, which is not measured.
CALIBRATION = 4096


class Program:
    """forward(tokens, positions) of a program with caches."""

    def __init__(self, argosy: Path, arguments: tuple[str, ...], folder: Path) -> None:
        path = folder / "model.pte"
        command = [argosy, "export", "executorch", "--model", MODEL, "--task", "text-generation", "--all-logits"]
        subprocess.run([*map(str, command), "--check", "off", *arguments, "-o", str(path)], check=True, capture_output=True)
        self.program = open_program(str(path))
        self.method = open_method(self.program, "forward")

    def __call__(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        positions = torch.arange(start, start + tokens.shape[1])
        return self.method([tokens, positions])[0]


class Eager:
    def __init__(self) -> None:
        self.model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
        self.cache = None

    @torch.no_grad()
    def __call__(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        out = self.model(tokens, past_key_values=self.cache if start else None, use_cache=True)
        self.cache = out.past_key_values
        return out.logits


def likelihood(model, tokens: torch.Tensor) -> tuple[float, torch.Tensor]:
    """Perplexity over windows of the text, and the most likely token at every position."""
    loss, best = 0.0, []
    for window in tokens[: len(tokens) // LENGTH * LENGTH].view(-1, 1, LENGTH):
        logits = model(window, 0)[0]
        loss += torch.nn.functional.cross_entropy(logits[:-1], window[0, 1:], reduction="sum").item()
        best.append(logits.argmax(-1))
    return math.exp(loss / (len(best) * (LENGTH - 1))), torch.cat(best)


def greedy(model, tokens: torch.Tensor, count: int = 48) -> list[int]:
    found: list[int] = []
    start = 0
    for _ in range(count):
        found.append(int(model(tokens, start)[0, -1].argmax()))
        start += tokens.shape[1]
        tokens = torch.tensor([found[-1:]])
    return found


def agreeing(a: list[int], b: list[int]) -> int:
    return next((i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x != y), len(a))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--argosy", type=Path, default=REPOSITORY / "build/release/apps/cli/argosy")
    parser.add_argument("--tokens", type=int, default=8192)
    options = parser.parse_args()
    tokenizer = AutoTokenizer.from_pretrained(MODEL)
    whole = stream(tokenizer, corpus()[1])
    text, seen = whole[: options.tokens], whole[options.tokens :][-CALIBRATION:]
    prompts = [tokenizer(prompt, return_tensors="pt").input_ids for prompt in PROMPTS]
    eager = Eager()
    perplexity, best = likelihood(eager, text)
    expected = [greedy(eager, prompt) for prompt in prompts]
    print("| weights | perplexity | same token as eager | greedy tokens that agree, of 48 |\n|---|---:|---:|---:|")
    print(f"| eager | {perplexity:.3f} | | |", flush=True)
    for name, arguments in ENCODINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            if "8a8w" in arguments:
                calibration = Path(folder) / "seen.txt"
                calibration.write_text(tokenizer.decode(seen))
                arguments = (*arguments, "--calibrate", str(calibration))
            program = Program(options.argosy, arguments, Path(folder))
            perplexity, found = likelihood(program, text)
            same = [agreeing(greedy(program, prompt), tokens) for prompt, tokens in zip(prompts, expected, strict=True)]
        share = (found == best).float().mean().item()
        print(f"| {name} | {perplexity:.3f} | {100 * share:.1f} % | {', '.join(map(str, same))} |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
