"""What a model that generates answers to a text or to sounds, and how far another's answers are from that. Engines give tokens, and
not all of them logits: so PyTorch computes both, with the arithmetic that a bundle's tokens agree with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from .quality import Measure, Quality, WordError
from .rows import Row, quality_row
from .sounds import hears, transcripts
from .texts import text_logits


@dataclass
class Answers:
    """``logits`` [tokens, vocabulary] of a text and the ids that follow in it, or the words of each sound."""

    logits: tuple[torch.Tensor, torch.Tensor] | None = None
    words: list[list[Any]] | None = None
    unit: str = ""

    def rows(self, other: Answers | None) -> list[Row]:
        """What ``other`` costs beside this; none if they are not of one kind."""
        measure: Measure
        if other is None:
            return []
        if self.logits is not None and other.logits is not None:
            measure = quality = Quality()
            quality.add(self.logits[0], other.logits[0], self.logits[1])
        elif self.words is not None and other.words is not None:
            measure = error = WordError(self.unit, "sounds")
            for one, another in zip(self.words, other.words, strict=True):
                error.add(one, another)
        else:
            return []
        return [quality_row(measure, how=" (by PyTorch with the same arithmetic)")]


def answers(model: torch.nn.Module, folder: Path, text: Path | None, audio: Path | None) -> Answers | None:
    """None for models that neither read a text nor hear by themselves."""
    if hears(model):
        found = transcripts(model, folder, audio)
        return None if found is None else Answers(words=found[0], unit=found[1])
    logits = text_logits(model, folder, text)
    return None if logits is None else Answers(logits=logits)
