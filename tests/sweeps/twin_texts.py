"""Greedy texts of small random models that say something when they are compared.

Random weights like to repeat one token, and then a wrong cache is not seen; or two tokens are nearly as likely, and
then the order of additions decides. So several prompts are tried, and the text with the most different tokens of those
without near ties is taken.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

NEW_TOKENS = 32
PROMPTS = 24
PROMPT_LENGTH = 7
#: Between the best token and the next, in logits.
MARGIN = 1e-4


@dataclass
class Text:
    prompt: list[int]
    tokens: list[int]  # after the prompt
    distinct: int
    row: int  # of the prompts that were tried


def never_stops(model: Any) -> None:
    """All texts have the same length: no token ends them, and none is forced or forbidden."""
    settings = model.generation_config
    for name in ("eos_token_id", "forced_eos_token_id", "forced_bos_token_id", "bad_words_ids", "suppress_tokens",
                 "begin_suppress_tokens", "no_repeat_ngram_size", "num_beams", "length_penalty", "early_stopping", "cache_implementation"):  # fmt: skip
        if getattr(settings, name, None) is not None:
            setattr(settings, name, None)
    settings.do_sample = False
    if settings.pad_token_id is None:
        settings.pad_token_id = 0
    for part in (model.config, model.config.get_text_config()):
        if getattr(part, "eos_token_id", None) is not None:
            part.eos_token_id = None


def random_prompts(vocabulary: int, count: int = PROMPTS, length: int = PROMPT_LENGTH, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randint(5, vocabulary - 5, (count, length), generator=generator)


def best_text(model: Any, inputs: dict[str, torch.Tensor], prompts: torch.Tensor, start: int) -> Text:
    """`inputs` go to ``generate`` for all prompts at once; texts begin after `start` tokens of what it returns."""
    never_stops(model)
    with torch.no_grad():
        made = model.generate(**inputs, max_new_tokens=NEW_TOKENS, output_scores=True, return_dict_in_generate=True)
    tokens = made.sequences[:, start:]
    top = torch.stack(made.scores).topk(2, dim=-1).values  # [step, row, 2]
    margins = (top[..., 0] - top[..., 1]).min(dim=0).values
    texts = [
        Text(prompts[row].tolist(), tokens[row].tolist(), len(set(tokens[row].tolist())), row)
        for row in range(len(tokens)) if margins[row] > MARGIN or len(tokens) == 1
    ]  # fmt: skip
    if not texts:
        raise AssertionError("all texts have near ties")
    return max(texts, key=lambda text: text.distinct)


#: What embeddings of tokens, matrices of attention and other matrices are multiplied by, one after the other.
_FACTORS = ((1, 1, 1), (1, 4, 1), (10, 1, 1), (100, 1, 3), (0.5, 2, 1), (0.2, 4, 1))


def with_varied_text(model: Any, distinct: Callable[[Any], int], wanted: int = 8) -> Any:
    """The model, or one of other weights, where its text has too few different tokens: random weights may make a model say
    what its last token says, or what its place in the text says, whatever else came before."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    for embeddings, attention, others in _FACTORS:
        with torch.no_grad():
            for name, weight in model.named_parameters():
                factor = 1.0
                if any(part in name for part in ("embed_tokens", "shared", "wte", "word_embeddings", "lm_head")):
                    factor = embeddings
                elif weight.dim() == 2 and "embed" not in name:
                    factor = attention if "att" in name else others
                weight.copy_(before[name] * factor)
        if distinct(model) >= wanted:
            break
    return model
