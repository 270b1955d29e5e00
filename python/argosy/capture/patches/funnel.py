"""Relative positions of Funnel, for any length of text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ...patching import register_patch


@dataclass(frozen=True)
class _Places:
    """Places of tokens after pooling: evenly spaced, perhaps behind one that stands apart. Numbers may be symbols."""

    apart: int | None
    start: Any
    step: int
    count: Any

    @property
    def first(self) -> Any:
        return self.start if self.apart is None else self.apart

    @property
    def last(self) -> Any:
        return self.start + self.step * (self.count - 1)

    @property
    def length(self) -> Any:
        return self.count + (self.apart is not None)

    def pooled(self, apart: int | None, truncate: bool) -> _Places:
        """Every second place; the first one is replaced by ``apart`` if there is one."""
        start, count = self.start, self.count
        if apart is not None:
            if self.apart is None:
                start, count = start + self.step, count - 1
            count = count - 1 if truncate else count
        return _Places(apart, start, 2 * self.step, (count + 1) // 2)


@register_patch(
    "capture",
    "transformers.models.funnel.modeling_funnel.FunnelAttentionStructure.get_position_embeds",
    reason="it lists the places of all tokens in Python, which fixes the length of a text at that of the trace",
)
def _places_by_arithmetic(original: Callable) -> Callable:
    def get_position_embeds(self: Any, seq_len: Any, dtype: torch.dtype, device: torch.device) -> Any:
        if self.config.attention_type == "factorized":
            return original(self, seq_len, dtype, device)
        half = self.config.d_model // 2
        frequencies = 1 / (10000 ** (torch.arange(half, device=device).to(dtype) / half))

        def embedded(places: _Places, stride: int, pooled: _Places, shift: int) -> torch.Tensor:
            farthest = pooled.first - places.first + shift * pooled.length * stride
            nearest = pooled.first - places.last
            count = (farthest - nearest) // stride + 1
            distances = farthest - stride * torch.arange(count, device=device)
            angles = distances.to(dtype)[:, None] * frequencies
            return torch.cat([torch.sin(angles), torch.cos(angles)], dim=-1)

        places = _Places(None, 0, 1, seq_len)
        found = []
        for block in range(self.config.num_blocks):
            to_pooled = None
            if block:
                apart = 1 - 2**block if self.config.separate_cls else None
                pooled = places.pooled(apart, self.config.truncate_seq)
                to_pooled = embedded(places, 2 ** (block - 1), pooled, 2)
                places = pooled
            found.append([embedded(places, 2**block, places, 1), to_pooled])
        return found

    return get_position_embeds


@register_patch(
    "capture",
    "transformers.models.funnel.modeling_funnel._relative_shift_gather",
    reason="it shifts by reshaping, and torch takes minutes to prove that sizes fit",
)
def _shifted_by_index(original: Callable) -> Callable:
    def shifted(positional_attn: torch.Tensor, context_len: Any, shift: int) -> torch.Tensor:
        queries = torch.arange(positional_attn.shape[2], device=positional_attn.device)
        keys = torch.arange(context_len, device=positional_attn.device)
        columns = shift * (positional_attn.shape[2] - queries)[:, None] + keys
        return positional_attn.gather(-1, columns.expand(*positional_attn.shape[:2], -1, -1))

    return shifted
