"""What an export costs in quality: its logits, embeddings or words beside those of the model as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import torch


class Measure(Protocol):
    def figures(self) -> dict[str, Any]:
        """For programs; empty: nothing was measured."""

    def text(self) -> str:
        """The same for people."""


@dataclass
class Quality:
    """Logits: sums over the tokens that were compared, or over rows of which each has one class."""

    #: what the best logit is, and what there is one for
    best: str = "token"
    each: str = "tokens"
    tokens: int = 0
    agreed: int = 0
    divergence: float = 0.0
    #: of the tokens that follow in a text, in nats; None where there is no text
    surprise: tuple[float, float] | None = None
    followed: int = 0

    def add(self, model: torch.Tensor, export: torch.Tensor, following: torch.Tensor | None = None) -> None:
        """Logits [tokens, vocabulary] of both. ``following`` [tokens] are the ids that come next in a text; -1: none does."""
        one, other = (each.detach().double().log_softmax(-1) for each in (model, export))
        self.tokens += len(one)
        self.agreed += int((one.argmax(-1) == other.argmax(-1)).sum())
        self.divergence += float((one.exp() * (one - other)).sum())
        if following is not None:
            rows = (following >= 0).nonzero()[:, 0]
            new = [-float(each[rows, following[rows]].sum()) for each in (one, other)]
            had = self.surprise or (0.0, 0.0)
            self.surprise = (had[0] + new[0], had[1] + new[1])
            self.followed += len(rows)

    def figures(self) -> dict[str, Any]:
        """The share of tokens whose best one is the same, nats, and perplexities where there is a text."""
        if not self.tokens:
            return {}
        found = {self.each: self.tokens, "agreement": self.agreed / self.tokens, "kl": self.divergence / self.tokens}
        if self.surprise and self.followed:
            found["perplexity_before"], found["perplexity"] = self._perplexities()
        return found

    def _perplexities(self) -> tuple[float, float]:
        assert self.surprise
        before, after = (math.exp(min(each / self.followed, 700.0)) for each in self.surprise)
        return before, after

    def text(self) -> str:
        if not self.tokens:
            return "nothing to measure: no logits"
        parts = [f"best {self.best} as the unquantised model's in {100 * self.agreed / self.tokens:.1f} % of {self.tokens} {self.each}",
                 f"KL divergence {self.divergence / self.tokens:.2g}"]  # fmt: skip
        if self.surprise and self.followed:
            before, after = self._perplexities()
            parts.append(f"perplexity {after:.4g} instead of {before:.4g}")
        return ", ".join(parts)


@dataclass
class Nearness:
    """Vectors: one for each row that was compared."""

    #: what they are, and what there is one for
    output: str
    each: str
    cosines: list[float] = field(default_factory=list)

    def add(self, model: torch.Tensor, export: torch.Tensor) -> None:
        """Two vectors of numbers. One without a direction (all zeros, or not finite) is as far off as can be, unless both are equal."""
        one, other = (each.detach().double().flatten() for each in (model, export))
        found = float(torch.dot(one, other) / (one.norm() * other.norm()))
        if not math.isfinite(found):
            found = float(torch.equal(one, other))
        self.cosines.append(max(-1.0, min(1.0, found)))

    def figures(self) -> dict[str, Any]:
        """The cosines' mean, and the least."""
        if not self.cosines:
            return {}
        return {self.each: len(self.cosines), "output": self.output, "cosine": math.fsum(self.cosines) / len(self.cosines),
                "least_cosine": min(self.cosines)}  # fmt: skip

    def text(self) -> str:
        found = self.figures()
        if not found:
            return "nothing to measure: no outputs"
        return (f"cosine of {self.output} with the unquantised model's at least {_short_of_one(found['least_cosine'])}, "
                f"on average {_short_of_one(found['cosine'])}, over {len(self.cosines)} {self.each}")  # fmt: skip


def _short_of_one(value: float) -> str:
    """With so many digits that it is 1 only if it is."""
    digits = 4
    while digits < 12 and float(f"{value:.{digits}f}") == 1.0 != value:
        digits += 1
    return f"{value:.{digits}f}"


@dataclass
class WordError:
    """Words, or tokens where there is no tokenizer: what was left out, added or changed."""

    #: "words" or "tokens", and what they are heard in
    unit: str
    each: str
    heard: int = 0
    words: int = 0
    errors: int = 0

    def add(self, model: Sequence[Any], export: Sequence[Any]) -> None:
        self.heard += 1
        self.words += len(model)
        self.errors += edits(model, export)

    def figures(self) -> dict[str, Any]:
        """The share of the model's words that the export has wrong; more than 1 if it adds many."""
        if not self.words:
            return {}
        return {self.each: self.heard, self.unit: self.words, "word_error": self.errors / self.words}

    def text(self) -> str:
        if not self.words:
            return f"nothing to measure: the model says nothing to the {self.each}"
        return (f"word error {100 * self.errors / self.words:.1f} % of the unquantised model's {self.words} {self.unit} "
                f"in {self.heard} {self.each}")  # fmt: skip


def edits(one: Sequence[Any], other: Sequence[Any]) -> int:
    """How many items have to be taken out, put in or changed to make one sequence of the other."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        before, row[0] = row[0], i
        for j, right in enumerate(other, 1):
            before, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, before + (left != right))
    return row[-1]
