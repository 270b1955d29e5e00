"""Changes for encoders of packed media and for the merge of features, for the time of a trace."""

from __future__ import annotations

import contextlib
import copy
import inspect
import os
from collections.abc import Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.overrides import TorchFunctionMode

#: The implementation of attention that models hand packed sequences to in one call, with their boundaries.
_PACKED = "flash_attention_2"


@contextlib.contextmanager
def encoder_patches(part: torch.nn.Module) -> Iterator[None]:
    """What a trace of the encoders in ``part`` needs changed; nothing outside a trace."""
    if not torch.compiler.is_exporting():
        yield
        return
    with packed_attention(part), NothingLeftOut():
        yield


@contextlib.contextmanager
def merge_patches() -> Iterator[None]:
    """What a trace of the merge needs changed; nothing outside a trace."""
    if not torch.compiler.is_exporting():
        yield
        return
    with scatter_by_rows(), without_checks():
        yield


@contextlib.contextmanager
def live_patches(model: torch.nn.Module) -> Iterator[None]:
    """What a trace of a whole model that sees or hears needs changed, or of any part of it: calls are the caller's own."""
    with packed_attention(model), scatter_by_rows(), without_checks(), deepstack_by_rows(model):
        yield


# ---- packed sequences --------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def packed_attention(part: torch.nn.Module) -> Iterator[None]:
    """Attention that takes ``cu_seqlens`` runs as one call under a block-diagonal mask.

    Reason: without flash attention models split the sequence at ``cu_seqlens.tolist()`` and loop over the pieces, which
    fixes their number and sizes in a trace.
    """
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    modules = [module for module in part.modules() if _is_packed(module)]
    if not modules:
        yield
        return
    with contextlib.ExitStack() as stack:
        mapping = getattr(ALL_ATTENTION_FUNCTIONS, "_local_mapping", None)
        had = None if mapping is None else mapping.get(_PACKED)
        ALL_ATTENTION_FUNCTIONS[_PACKED] = segmented_attention
        stack.callback(_restore, ALL_ATTENTION_FUNCTIONS, had)
        for module in modules:
            stack.enter_context(_asking_for_packed(module))
        yield


def _is_packed(module: torch.nn.Module) -> bool:
    parameters = inspect.signature(module.forward).parameters
    config = getattr(module, "config", None)
    is_attention = "cu_seqlens" in parameters and hasattr(config, "_attn_implementation")
    return is_attention and not any(_takes_lengths(child) for child in module.children())


def _takes_lengths(module: torch.nn.Module) -> bool:
    return any("cu_seqlens" in inspect.signature(each.forward).parameters for each in module.modules())


def _restore(functions: Any, had: Any) -> None:
    if had is None:
        functions.pop(_PACKED, None)
    else:
        functions[_PACKED] = had


@contextlib.contextmanager
def _asking_for_packed(module: torch.nn.Module) -> Iterator[None]:
    config, forward = module.config, module.forward
    own = copy.copy(config)
    own.__dict__["_attn_implementation_internal"] = _PACKED
    had = vars(module).get("forward")

    def with_length(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("max_seqlen") is None and "max_seqlen" in inspect.signature(forward).parameters:
            kwargs["max_seqlen"] = 0  # only a kernel would read it; computing it reads values
        return forward(*args, **kwargs)

    module.__dict__["config"] = own
    module.__dict__["forward"] = with_length
    try:
        yield
    finally:
        module.__dict__["config"] = config
        module.__dict__.pop("forward")
        if had is not None:
            module.__dict__["forward"] = had


def segmented_attention(module: torch.nn.Module, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor,
                        attention_mask: torch.Tensor | None, scaling: float | None = None, dropout: float = 0.0,
                        cu_seq_lens_q: torch.Tensor | None = None, **kwargs: Any) -> tuple[torch.Tensor, None]:  # fmt: skip
    """Each token attends to the tokens between the same two boundaries. query, key, value: [1, heads, tokens, width]."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    mask = attention_mask
    if cu_seq_lens_q is not None:
        places = torch.arange(query.shape[2], device=query.device)
        # With the first boundary, which all tokens are behind: a single sequence is no special case then.
        segments = (places[:, None] >= cu_seq_lens_q[None, :]).sum(-1)
        mask = (segments[:, None] == segments[None, :])[None, None]
    output = torch.nn.functional.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scaling)
    return output.transpose(1, 2).contiguous(), None


class NothingLeftOut(TorchFunctionMode):
    """Choosing some of the entries of an axis by a condition chooses all of them.

    Reason: encoders leave out pictures that are padding, which makes the number of pictures depend on values. A graph is
    given no such pictures.
    """

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.__getitem__:
            index = args[1]
            if isinstance(index, FakeTensor) and index.dtype == torch.bool and index.dim() == 1:
                return args[0]
        return function(*args, **(kwargs or {}))


# ---- the merge ---------------------------------------------------------------------------------------------------------


def masked_scatter_rows(self: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> torch.Tensor:
    """``masked_scatter`` as a running count, a gather and a choice. A row of zeros in front of the source makes an empty
    source legal. Places beyond the last row of the source keep what they have: a generated token may be a placeholder,
    for which there are no features."""
    if mask.dim() == self.dim() and (mask.shape[-1] == 1 or mask.stride(-1) == 0):
        mask, width = mask[..., 0], self.shape[-1]
    elif mask.dim() == self.dim() - 1:
        width = self.shape[-1]
    else:
        mask, width = mask.expand_as(self), 1
    rows = torch.cat([source.new_zeros(1, width), source.reshape(-1, width)])
    count = mask.reshape(-1).long().cumsum(0).reshape(mask.shape)
    mask = mask & (count < rows.shape[0])
    picked = rows[count * mask].to(self.dtype)
    return torch.where(mask, picked[..., 0], self) if width == 1 else torch.where(mask.unsqueeze(-1), picked, self)


@contextlib.contextmanager
def scatter_by_rows() -> Iterator[None]:
    """Reason: ``masked_scatter`` reads its source element by element, which few runtimes can do, and a trace of it is
    bound to as many features as it saw."""
    original = torch.Tensor.masked_scatter
    torch.Tensor.masked_scatter = masked_scatter_rows
    try:
        yield
    finally:
        torch.Tensor.masked_scatter = original


@contextlib.contextmanager
def without_checks() -> Iterator[None]:
    """Reason: the check that placeholders and features are equally many compares values, and a graph has to run without
    any features too."""
    name = "TRANSFORMERS_DISABLE_TORCH_CHECK"
    before = os.environ.get(name)
    os.environ[name] = "1"
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(name)
        else:
            os.environ[name] = before


# ---- the language model ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def decode_patches(part: torch.nn.Module) -> Iterator[None]:
    """What a trace of the language model on embeddings needs changed; nothing outside a trace."""
    if not torch.compiler.is_exporting():
        yield
        return
    with deepstack_by_rows(part), always_the_first_call():
        yield


@contextlib.contextmanager
def deepstack_by_rows(part: torch.nn.Module) -> Iterator[None]:
    """Reason: language models that add features of images to hidden states between layers do so at the places of a boolean
    mask, whose number a trace (and the meta device) would have to know."""
    owners = [module for module in part.modules() if hasattr(type(module), "_deepstack_process")]

    def process(
        hidden_states: torch.Tensor, visual_pos_masks: torch.Tensor, visual_embeds: torch.Tensor
    ) -> torch.Tensor:
        zeros = torch.zeros_like(hidden_states)
        return hidden_states + masked_scatter_rows(zeros, visual_pos_masks, visual_embeds.to(hidden_states.dtype))

    for module in owners:
        module.__dict__["_deepstack_process"] = process
    try:
        yield
    finally:
        for module in owners:
            module.__dict__.pop("_deepstack_process")


@contextlib.contextmanager
def always_the_first_call() -> Iterator[None]:
    """A cache says that it is new. Reason: models that let a prompt attend in both directions do so only while the cache is
    new; later tokens are not marked as part of a prompt, so that the code for prompts is right for them too, while in a
    trace, where there is always a past (of zero tokens, perhaps), it would be missing."""
    from transformers.cache_utils import Cache

    before = vars(Cache).get("is_initialized")
    if before is None:
        yield
        return
    Cache.is_initialized = property(lambda self: False)
    try:
        yield
    finally:
        Cache.is_initialized = before
