"""Rows of tables, and of sequences of several lengths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ...patching import register_patch


@register_patch(
    "capture",
    "torch.nn.functional.embedding_bag",
    reason="torch writes bags of one size as a flat list with the places where they begin, which runtimes have no op for; as rows "
    "they are a choice and a sum",
)
def _bags_as_rows(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def embedding_bag(input: torch.Tensor, weight: torch.Tensor, offsets: torch.Tensor | None = None, max_norm: float | None = None,
                      norm_type: float = 2, scale_grad_by_freq: bool = False, mode: str = "mean", sparse: bool = False,
                      per_sample_weights: torch.Tensor | None = None, *args: Any, **kwargs: Any) -> torch.Tensor:  # fmt: skip
        further = [value for value in (*args, *kwargs.values()) if value not in (False, None)]
        if input.dim() != 2 or max_norm is not None or mode not in ("sum", "mean") or further:
            return original(input, weight, offsets, max_norm, norm_type, scale_grad_by_freq, mode, sparse, per_sample_weights,
                            *args, **kwargs)  # fmt: skip
        rows = torch.nn.functional.embedding(input, weight)
        if per_sample_weights is not None:
            rows = rows * per_sample_weights.unsqueeze(-1)
        return rows.sum(1) if mode == "sum" else rows.mean(1)

    return embedding_bag


@register_patch(
    "capture",
    "torch.nn.utils.rnn.pad_sequence",
    reason="one op for any number of sequences, which runtimes lack",
)
def _padded_one_by_one(original: Callable[..., torch.Tensor]) -> Callable[..., torch.Tensor]:
    def pad_sequence(sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right") -> torch.Tensor:
        parts = list(sequences)
        longest = parts[0].shape[0]
        for part in parts[1:]:
            longest = torch.sym_max(longest, part.shape[0])
        padded = []
        for part in parts:
            missing = longest - part.shape[0]
            ends = (0, missing) if padding_side == "right" else (missing, 0)
            padded.append(torch.nn.functional.pad(part, (0, 0) * (part.dim() - 1) + ends, value=padding_value))
        return torch.stack(padded, dim=0 if batch_first else 1)

    return pad_sequence
