"""Attention as one op of a graph, so that a backend need not find it among matrix products.

``argosy::attention`` takes keys and values as the cache holds them (not repeated for grouped queries), mask, attention sinks,
scale, soft cap and window. Captures have it only where asked for (``--attention whole``); what leaves through a ``.pt2`` file
is plain ATen, in which the pass ``decompose-structures`` writes it.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

NAME = "argosy"

#: Arguments that attention functions are given and do not compute with.
_WITHOUT_EFFECT = {
    "cache_position", "output_attentions", "output_hidden_states", "position_embeddings", "position_ids", "return_dict",
    "use_cache",
}  # fmt: skip


@torch.library.custom_op("argosy::attention", mutates_args=())
def attention(
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    mask: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    softcap: float,
    window: int,
) -> torch.Tensor:
    """[batch, heads, sequence, width] each; keys and values may have fewer heads. ``mask`` is true (or 0) where a query may
    look; it already has the ``window`` in it, which is told for those who want to skip what it hides. 0 is none."""
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, 1), value.repeat_interleave(groups, 1)
    if not softcap and sinks is None:
        return torch.nn.functional.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=scale
        ).contiguous()
    scores = query @ key.transpose(-1, -2) * scale
    if softcap:
        scores = torch.tanh(scores / softcap) * softcap
    if mask is not None:
        lowest = torch.finfo(scores.dtype).min
        scores = scores.masked_fill(~mask, lowest) if mask.dtype is torch.bool else scores + mask
    if sinks is not None:
        column = sinks.reshape(1, -1, 1, 1).expand(scores.shape[0], -1, scores.shape[2], 1)
        weights = torch.cat([scores, column], -1).softmax(-1)[..., :-1]
    else:
        weights = scores.softmax(-1, dtype=torch.float32).to(query.dtype)
    return (weights @ value).contiguous()


@attention.register_fake
def _(query, key, value, mask, sinks, scale, softcap, window):
    return query.new_empty((*query.shape[:-1], value.shape[-1]))


def attention_forward(
    module: torch.nn.Module,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    sliding_window: int | None = None,
    softcap: float | None = None,
    s_aux: torch.Tensor | None = None,
    **kwargs: Any,
) -> tuple[torch.Tensor, None]:
    """An attention function of transformers. An argument that it does not know, or a causal order that no mask tells, goes
    to the function that would have been called without it."""
    causal = attention_mask is None and (getattr(module, "is_causal", True) if is_causal is None else is_causal)
    unknown = [
        name for name, item in kwargs.items() if item is not None and item is not False and name not in _WITHOUT_EFFECT
    ]
    if unknown or causal or dropout:
        known = {"dropout": dropout, "scaling": scaling, "is_causal": is_causal, "sliding_window": sliding_window}
        return _otherwise(module, softcap, s_aux)(module, query, key, value, attention_mask, **known, **kwargs)
    scale = float(query.shape[-1] ** -0.5 if scaling is None else scaling)
    result = torch.ops.argosy.attention(
        query, key, value, attention_mask, s_aux, scale, float(softcap or 0.0), int(sliding_window or 0)
    )
    return result.transpose(1, 2).contiguous(), None


def _otherwise(module: torch.nn.Module, softcap: float | None, sinks: torch.Tensor | None) -> Callable:
    if softcap is None and sinks is None:
        from transformers.integrations.sdpa_attention import sdpa_attention_forward

        return sdpa_attention_forward
    own = sys.modules[type(module).__module__].eager_attention_forward
    extra = {name: item for name, item in (("softcap", softcap), ("s_aux", sinks)) if item is not None}
    return lambda *args, **kwargs: own(*args, **{**kwargs, **extra})


@contextlib.contextmanager
def whole_attention(model: torch.nn.Module) -> Iterator[None]:
    """Attention of ``model`` is one op for a with block, where its code lets a function be chosen."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface, sdpa_mask

    AttentionInterface.register(NAME, attention_forward)
    AttentionMaskInterface.register(NAME, sdpa_mask)
    configs = {id(part.config): part.config for part in model.modules() if hasattr(part, "config")}
    before = {key: getattr(config, "_attn_implementation", None) for key, config in configs.items()}
    model.set_attn_implementation(NAME)
    try:
        yield
    finally:
        for key, config in configs.items():
            config._attn_implementation = before[key]
