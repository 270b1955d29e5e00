"""The trained decoder of tests/fixtures: a small model whose answers mean something, for checks of greedy tokens and of
quantisation. tools/train_decoder.py made it."""

from __future__ import annotations

import math
import sysconfig
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

FOLDER = Path(__file__).resolve().parents[1] / "fixtures/trained-decoder"
PROMPTS = ("def __init__(self, ", "class Reader:\n    def ", "    if not isinstance(", "Return the number of ")


@pytest.fixture(scope="module")
def model():
    return AutoModelForCausalLM.from_pretrained(FOLDER, dtype=torch.float32, local_files_only=True).eval()


@pytest.fixture(scope="module")
def tokenizer():
    return AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)


def test_is_small() -> None:
    assert sum(file.stat().st_size for file in FOLDER.iterdir()) <= 8_000_000


def test_knows_text_that_it_was_not_trained_on(model, tokenizer) -> None:
    text = (Path(sysconfig.get_path("stdlib")) / "textwrap.py").read_text(encoding="utf-8")
    ids = torch.tensor([tokenizer(text)["input_ids"][:2049]])
    parts = torch.stack([ids[0, start : start + 257] for start in range(0, 2048, 256)])
    with torch.no_grad():
        logits = model(parts[:, :-1]).logits
    loss = torch.nn.functional.cross_entropy(logits.flatten(0, 1), parts[:, 1:].flatten())
    assert math.exp(loss) < 40  # one of 2048 by chance
    best = logits.topk(2).values
    assert (best[..., 0] - best[..., 1]).median() > 0.5


def test_answers_are_clear_and_differ(model, tokenizer) -> None:
    answers = []
    for prompt in PROMPTS:
        ids = tokenizer(prompt, return_tensors="pt")
        made = model.generate(**ids, max_new_tokens=32, do_sample=False)[0, ids["input_ids"].shape[1] :]
        assert len(set(made.tolist())) >= 8, tokenizer.decode(made)
        answers.append(tuple(made.tolist()))
    assert len(set(answers)) == len(PROMPTS)


def test_its_tokenizer_gives_text_back(tokenizer) -> None:
    text = "class A:\n\tdef f(self):  # ünïcödé\n        return 'x'\n"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == text
