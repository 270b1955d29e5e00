"""Attention masks that functions of indices describe."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable
from typing import Any

import torch

from ...patching import register_patch


def _of_all_indices(mask_function: Callable, batch: torch.Tensor, head: torch.Tensor, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
    """The mask for each batch, head, query and key, by indices that broadcast."""
    found = mask_function(batch[:, None, None, None], head[None, :, None, None], query[None, None, :, None], key[None, None, None, :])
    return found.expand(batch.shape[0], head.shape[0], query.shape[0], key.shape[0])


@register_patch(
    "capture",
    "transformers.masking_utils._vmap_for_bhqkv",
    versions="transformers<5",
    reason="torch.vmap leaves nodes in the graph that torch cannot serialise; indices that broadcast give the same mask",
)
def _broadcast_instead_of_vmap(original: Callable) -> Callable:
    def broadcast(mask_function: Callable, bh_indices: bool = True) -> Callable:
        def mask(batch: Any, head: Any, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
            if not bh_indices:
                return mask_function(batch, head, query[:, None], key[None, :])
            return _of_all_indices(mask_function, batch, head, query, key)

        return mask

    return broadcast


@register_patch(
    "capture",
    "transformers.masking_utils._vmap_expansion_sdpa",
    reason="the same, of masks that a model describes by functions of its own: such functions compare and index, which "
    "indices that broadcast do as well",
)
def _indices_that_broadcast(original: Callable) -> Callable:
    def expansion(mask_function: Callable) -> Callable:
        return functools.partial(_of_all_indices, mask_function)

    return expansion


@register_patch(
    "capture",
    "transformers.masking_utils._ignore_bidirectional_mask_sdpa",
    reason="a mask that hides nothing is made in a trace only, where some models then find it to be of a wrong size",
)
def _none_where_nothing_is_hidden(original: Callable) -> Callable:
    def ignore(padding_mask: torch.Tensor | None, kv_length: Any, local_attention_size: int | None = None) -> bool:
        if padding_mask is None and local_attention_size is None:
            return True
        return original(padding_mask, kv_length, local_attention_size)

    return ignore


@register_patch(
    "capture",
    "transformers.masking_utils.TransformGetItemToIndex",
    reason="only needed inside torch.vmap, see above",
)
def _no_transform(original: type) -> Callable:
    return contextlib.nullcontext
