#!/usr/bin/env python3
"""Trains the small decoder of tests/fixtures/trained-decoder, on the sources of Python's own standard library.

    python tools/train_decoder.py -o tests/fixtures/trained-decoder

Checks of greedy tokens and of quantisation mean little with random weights, whose best tokens are nearly tied; this model has
learnt something, so that its answers differ by prompt and its best token leads. It is a llama with grouped queries, a byte-level
BPE tokenizer and weights in bfloat16. The choice of text, its order and the seeds are fixed; sources differ with the version of
Python, and sums with the machine, so another run makes a model as good, not the same bytes. It takes
some 20 minutes of one core; training.json has what came of it.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import sysconfig
import time
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import GenerationConfig, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

#: Packages whose modules are read, besides the modules at the top.
PACKAGES = ("asyncio", "collections", "concurrent", "email", "html", "http", "importlib", "json", "logging",
            "multiprocessing", "unittest", "urllib", "xml")  # fmt: skip
#: Modules that are only measured with; the test measures with the first.
HELD_OUT = ("textwrap", "fractions", "shelve", "sched", "bisect", "configparser")
VOCABULARY = 2048
END = "<|endoftext|>"
LENGTH = 256
SEED = 20261115


def corpus() -> tuple[list[str], list[str]]:
    """Sources to learn from and to measure with, one text a module."""
    root = Path(sysconfig.get_path("stdlib"))
    files = sorted(root.glob("*.py"))
    for package in PACKAGES:
        files += sorted(file for file in (root / package).rglob("*.py") if "test" not in file.relative_to(root).parts)
    training, held_out = [], []
    for file in files:
        text = file.read_text(encoding="utf-8", errors="strict")
        if file.parent == root and file.stem in HELD_OUT:
            held_out.append(text)
        elif file.name.startswith("_sysconfigdata"):
            continue  # of one machine
        else:
            training.append(text)
    return training, held_out


def train_tokenizer(texts: list[str]) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(vocab_size=VOCABULARY, special_tokens=[END], show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())  # fmt: skip
    tokenizer.train_from_iterator(texts, trainer)
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, bos_token=END, eos_token=END, pad_token=END,
                                   model_max_length=1024, clean_up_tokenization_spaces=False)  # fmt: skip


def new_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=VOCABULARY, hidden_size=256, intermediate_size=640, num_hidden_layers=4, num_attention_heads=8,
        num_key_value_heads=2, head_dim=32, max_position_embeddings=1024, tie_word_embeddings=True,
        bos_token_id=0, eos_token_id=0, pad_token_id=0, rms_norm_eps=1e-5,
    )  # fmt: skip
    return LlamaForCausalLM(config)


def stream(tokenizer: PreTrainedTokenizerFast, texts: list[str]) -> torch.Tensor:
    """All tokens of all texts, an end before each."""
    ids: list[int] = []
    for text in texts:
        ids.append(tokenizer.eos_token_id)
        ids += tokenizer.encode(text, add_special_tokens=False)
    return torch.tensor(ids)


def windows(tokens: torch.Tensor, batch: int, steps: int):
    """Batches of windows: each pass over the text cuts it at another place, and takes the windows in another order."""
    random = torch.Generator().manual_seed(SEED)
    pending: list[torch.Tensor] = []
    for _ in range(steps):
        while len(pending) < batch:
            first = int(torch.randint(LENGTH, (1,), generator=random))
            count = (len(tokens) - first - 1) // LENGTH
            starts = first + LENGTH * torch.randperm(count, generator=random)
            pending += [tokens[start : start + LENGTH + 1] for start in starts]
        yield torch.stack(pending[:batch])
        pending = pending[batch:]


def loss_of(model: LlamaForCausalLM, batch: torch.Tensor) -> torch.Tensor:
    logits = model(batch[:, :-1], use_cache=False).logits
    return torch.nn.functional.cross_entropy(logits.float().flatten(0, 1), batch[:, 1:].flatten())


def optimizers(model: LlamaForCausalLM, rate: float) -> list[torch.optim.Optimizer]:
    """Muon for the matrices of layers, which needs half the steps; AdamW for the rest."""
    inner = [each for each in model.model.layers.parameters() if each.dim() == 2]
    known = {id(each) for each in inner}
    rest = [each for each in model.parameters() if id(each) not in known]
    return [torch.optim.Muon(inner, lr=rate, momentum=0.95, weight_decay=0.01),
            torch.optim.AdamW(rest, lr=rate / 5, betas=(0.9, 0.98), weight_decay=0.0)]  # fmt: skip


def train(model: LlamaForCausalLM, tokens: torch.Tensor, held_out: torch.Tensor, steps: int, batch: int, rate: float) -> None:
    used = optimizers(model, rate)
    rates = [group["lr"] for each in used for group in each.param_groups]
    warm = max(1, steps // 20)
    start = time.perf_counter()
    model.train()
    for step, part in enumerate(windows(tokens, batch, steps)):
        share = (step + 1) / warm if step < warm else max(0.02, (steps - step) / (steps - warm))
        for group, full in zip((group for each in used for group in each.param_groups), rates, strict=True):
            group["lr"] = full * share
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, part)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for each in used:
            each.step()
            each.zero_grad()
        if step % 50 == 0 or step == steps - 1:
            seconds = time.perf_counter() - start
            print(f"step {step}: loss {loss.item():.3f}, held out {measure(model, held_out[: 16 * LENGTH])[0]:.3f}, "
                  f"{seconds:.0f} s, {time.process_time():.0f} s of CPU", flush=True)  # fmt: skip
            model.train()


@torch.no_grad()
def measure(model: LlamaForCausalLM, tokens: torch.Tensor) -> tuple[float, float]:
    """Mean loss, and the median lead of the best logit."""
    model.eval()
    count = (len(tokens) - 1) // LENGTH
    parts = torch.stack([tokens[i * LENGTH : (i + 1) * LENGTH + 1] for i in range(count)])
    losses, leads = [], []
    for part in parts.split(8):
        logits = model(part[:, :-1], use_cache=False).logits.float()
        losses.append(torch.nn.functional.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()))
        best = logits.topk(2).values
        leads.append((best[..., 0] - best[..., 1]).flatten())
    return float(torch.stack(losses).mean()), float(torch.cat(leads).median())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=1200)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--rate", type=float, default=0.02)
    options = parser.parse_args()
    torch.manual_seed(SEED)
    start = time.perf_counter()
    texts, held_out_texts = corpus()
    tokenizer = train_tokenizer(texts)
    tokens, held_out = stream(tokenizer, texts), stream(tokenizer, held_out_texts)
    model = new_model()
    print(f"{sum(map(len, texts)) / 1e6:.1f} MB of text, {len(tokens)} tokens, {len(held_out)} held out, "
          f"{model.num_parameters() / 1e6:.2f} M parameters", flush=True)  # fmt: skip
    train(model, tokens, held_out, options.steps, options.batch, options.rate)
    model = model.to(torch.bfloat16)
    model.generation_config = GenerationConfig(bos_token_id=0, eos_token_id=0, pad_token_id=0)
    model.save_pretrained(options.output)
    tokenizer.save_pretrained(options.output)
    loss, lead = measure(model.float(), held_out)
    card = {"python": sys.version.split()[0], "torch": torch.__version__, "steps": options.steps, "tokens": len(tokens),
            "held_out_tokens": len(held_out), "held_out_loss": round(loss, 4), "held_out_perplexity": round(math.exp(loss), 2),
            "median_lead": round(lead, 3), "minutes": round((time.perf_counter() - start) / 60, 1)}  # fmt: skip
    (options.output / "training.json").write_text(json.dumps(card, indent=1) + "\n")
    print(json.dumps(card))
    return 0


if __name__ == "__main__":
    sys.exit(main())
