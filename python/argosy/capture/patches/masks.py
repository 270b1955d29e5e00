"""Attention masks of older transformers."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from ...patching import register_patch


@register_patch(
    "capture",
    "transformers.masking_utils._vmap_for_bhqkv",
    versions="transformers<5",
    reason="torch.vmap leaves nodes in the graph that torch cannot serialise; indices that broadcast give the same mask",
)
def _broadcast_instead_of_vmap(original: Callable) -> Callable:
    def broadcast(mask_function: Callable, bh_indices: bool = True) -> Callable:
        def mask(batch: Any, head: Any, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            query, key = query[:, None], key[None, :]
            if not bh_indices:
                return mask_function(batch, head, query, key)
            found = mask_function(batch[:, None, None, None], head[None, :, None, None], query, key)
            return found.expand(batch.shape[0], head.shape[0], query.shape[0], key.shape[1])

        return mask

    return broadcast


@register_patch(
    "capture",
    "transformers.masking_utils.TransformGetItemToIndex",
    versions="transformers<5",
    reason="only needed inside torch.vmap, see above",
)
def _no_transform(original: type) -> Callable:
    return contextlib.nullcontext
