"""Greedy tokens of a text-generation program, in a process of its own: a runtime that aborts takes nothing else along.

    python generation_worker.py MODEL.pte TOKENIZER.json PROMPT COUNT

Prints, as JSON, those of calls of the program's method with the prompt at once, with the prompt in pieces, and those of
ExecuTorch's TextLLMRunner, with a tokenizer whose tokens are letters (letter_tokenizer)."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def tokens_of(size: int) -> dict[str, int]:
    """Token i is the letter of that code, where there is one that can be seen."""
    return {chr(i) if 32 <= i < 127 else f"<{i}>": i for i in range(size)}


def letter_tokenizer(size: int) -> dict:
    return {
        "version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": None, "post_processor": None,
        "decoder": {"type": "Fuse"},
        "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
                  "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": tokens_of(size), "merges": []},
    }  # fmt: skip


def by_runner(program: str, tokenizer: str, prompt: str, count: int) -> list[int]:
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
    from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

    runner = TextLLMRunner(program, tokenizer)
    pieces: list[str] = []
    settings = GenerationConfig(echo=False, max_new_tokens=count, temperature=0.0, num_bos=0, num_eos=0)
    runner.generate(prompt, settings, pieces.append)
    known = json.loads(Path(tokenizer).read_text(encoding="utf-8"))["model"]["vocab"]
    return [known[piece] for piece in pieces if piece]


def by_methods(program: str, prompt: str, count: int) -> list[list[int]]:
    import torch
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
    from executorch.runtime import Runtime

    opened = Runtime.get().load_program(program)
    forward = opened.load_method("forward")
    ends = set(opened.load_method("get_eos_ids").execute([])) if "get_eos_ids" in opened.method_names else set()
    found = []
    for size in (len(prompt), 3):  # the second time over what the first one left in the caches
        position, given, tokens = 0, list(prompt.encode()), []
        while len(tokens) < count:
            for start in range(0, len(given), size):
                part = given[start : start + size]
                positions = torch.arange(position, position + len(part))
                logits = forward.execute([torch.tensor([part]), positions])[0]
                position += len(part)
            tokens.append(int(logits[0, -1].argmax()))
            given = tokens[-1:]
            if tokens[-1] in ends:
                break
        found.append(tokens)
    return found


if __name__ == "__main__":
    path, tokenizer_path, text, wanted = sys.argv[1:]
    found = by_methods(path, text, int(wanted))
    found.append(by_runner(path, tokenizer_path, text, int(wanted)))
    print(json.dumps({"tokens": found}), flush=True)
