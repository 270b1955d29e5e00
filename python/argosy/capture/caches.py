"""Caches as a graph wants them: full length in every layer, and with a past of zero tokens when there is none."""

from __future__ import annotations

import copy
import inspect
import sys
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor


def full_length_cache(model: torch.nn.Module, *, only_windows: bool = False) -> Any | None:
    """An empty cache for ``model`` whose sliding layers keep every token, or None where the model must make its own, and with
    ``only_windows`` where no layer slides.

    A sliding layer counts its tokens in a Python int, which a trace would freeze; the window itself is in the mask, so a
    layer that forgets nothing computes the same.
    """
    try:
        from transformers.cache_utils import DynamicCache, DynamicLayer, EncoderDecoderCache
    except ImportError:
        return None
    config = model.config
    if _has_own_cache(model) or "config" not in inspect.signature(DynamicCache.__init__).parameters:
        return None
    cache = DynamicCache(config=config.get_text_config(decoder=True))
    if only_windows and not any(getattr(layer, "is_sliding", False) for layer in cache.layers):
        return None
    cache.layers = [_without_window(layer, DynamicLayer) for layer in cache.layers]
    if config.is_encoder_decoder:
        return EncoderDecoderCache(cache, DynamicCache())
    return cache


def _has_own_cache(model: torch.nn.Module) -> bool:
    """Whether the model's code brings a cache class (MiniMax), without which its layers do not work."""
    from transformers.cache_utils import Cache

    names = vars(sys.modules[type(model).__module__])
    classes = [item for item in names.values() if isinstance(item, type) and item.__module__ == names["__name__"]]
    return any(issubclass(item, Cache) for item in classes)


def _without_window(layer: Any, full_layer: type) -> Any:
    if not getattr(layer, "is_sliding", False):
        return layer
    if not hasattr(layer, "conv_states"):
        return full_layer()
    from transformers.cache_utils import LinearAttentionAndFullAttentionLayer

    return LinearAttentionAndFullAttentionLayer(number_of_states=layer.number_of_states)


def emptied(cache: Any) -> Any:
    """``cache`` with a past of zero tokens: keys and values of length 0, other states zero; cross attention stays."""
    if isinstance(cache, torch.Tensor):
        return torch.zeros_like(cache)
    if isinstance(cache, dict):
        return {key: emptied(item) for key, item in cache.items()}
    if isinstance(cache, (list, tuple)):
        return type(cache)(emptied(item) for item in cache)
    if not hasattr(cache, "__dict__") or isinstance(cache, type):
        return cache
    result = copy.copy(cache)
    for name, part in vars(cache).items():
        if name == "cross_attention_cache":
            continue
        if name in ("keys", "values", "indexer_keys") and isinstance(part, torch.Tensor):
            result.__dict__[name] = part.narrow(-2, 0, 0).contiguous()
        elif name in ("layers", "self_attention_cache") or isinstance(part, (torch.Tensor, dict, list)):
            result.__dict__[name] = emptied(part)
    return result


def on_cpu(value: Any) -> Any:
    """``value`` with every tensor that has no memory replaced by one on the CPU whose memory is never touched."""
    from ..structures import flatten

    def real(tensor: torch.Tensor) -> torch.Tensor:
        if tensor.is_meta or isinstance(tensor, FakeTensor):
            return torch.empty([int(size) for size in tensor.shape], dtype=tensor.dtype)
        return tensor

    leaves, structure = flatten(value)
    tensors = [real(tensor) for _, tensor in leaves]
    return structure.rebuild(iter(tensors))
