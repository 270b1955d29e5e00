"""What an export costs in quality: its logits beside those of the model as it is."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch


@dataclass
class Quality:
    """Sums over the tokens that were compared."""

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

    def figures(self) -> dict[str, float]:
        """For programs: the share of tokens whose best one is the same, nats, and perplexities where there is a text."""
        found = {"tokens": self.tokens, "agreement": self.agreed / self.tokens, "kl": self.divergence / self.tokens}
        if self.surprise and self.followed:
            found["perplexity_before"], found["perplexity"] = self._perplexities()
        return found

    def _perplexities(self) -> tuple[float, float]:
        assert self.surprise
        before, after = (math.exp(min(each / self.followed, 700.0)) for each in self.surprise)
        return before, after

    def text(self) -> str:
        """The same for people."""
        if not self.tokens:
            return "nothing to measure: no logits"
        parts = [f"best token as the unquantised model's in {100 * self.agreed / self.tokens:.1f} % of {self.tokens} tokens",
                 f"KL divergence {self.divergence / self.tokens:.2g}"]  # fmt: skip
        if self.surprise and self.followed:
            before, after = self._perplexities()
            parts.append(f"perplexity {after:.4g} instead of {before:.4g}")
        return ", ".join(parts)
