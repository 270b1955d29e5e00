"""Recurrent layers for any number of new tokens on any past.

A graph serves prompts and single steps alike, so a layer must start from the state that it is given, whatever the number
of new tokens, and the number of nodes must not depend on that number. The loops of transformers over the tokens become
``scan``: one node, whose body is a step, and which starts from a state.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

import torch
import torch.nn.functional as F

from ...patching import register_patch

#: States that a layer has read from its cache and that its scans have yet to start from, in the order of the scans.
_to_start_from: ContextVar[tuple[torch.Tensor, ...]] = ContextVar("_to_start_from", default=())


def scan(step: Callable, state: tuple[torch.Tensor, ...], sequences: tuple[torch.Tensor, ...], constants: tuple = ()):
    """``step(*state, *tokens, *constants)`` gives the next states and an output for each token of ``sequences``, whose
    first axis is the sequence. Returns the last states and the outputs, likewise along the first axis.

    torch's own ``scan`` compiles ``step`` with dynamo first, which takes longer than the rest of a trace; the op itself
    traces it as any other function.
    """
    from torch._higher_order_ops.scan import scan_op

    *last, outputs = scan_op(step, list(state), list(sequences), constants)
    return last, outputs


# ---- states ----------------------------------------------------------------------------------------------------------


@register_patch(
    "capture",
    "transformers.cache_utils.Cache.get_recurrent_state",
    reason="selective scans are called without the state of the cache, so several tokens on a past forget it",
)
def _remember_state(original: Callable) -> Callable:
    def get_recurrent_state(self: Any, layer_idx: int, state_idx: int = 0) -> torch.Tensor | None:
        state = original(self, layer_idx, state_idx)
        # Layers with heads (zamba) scan one head after the other.
        heads = () if state is None else state.unbind(1) if state.dim() == 4 else (state,)
        _to_start_from.set(tuple(heads))
        return state

    return get_recurrent_state


@register_patch(
    "capture",
    "transformers.cache_utils.Cache.update_recurrent_state",
    reason="selective scans are called without the state of the cache, so several tokens on a past forget it",
)
def _forget_state(original: Callable) -> Callable:
    def update_recurrent_state(self: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
        _to_start_from.set(())
        return original(self, *args, **kwargs)

    return update_recurrent_state


@register_patch(
    "capture",
    "transformers.cache_utils.LinearAttentionLayer.update_conv_state",
    reason="states are written in place to keep their address, which makes graphs write to their inputs",
)
def _new_conv_state(original: Callable) -> Callable:
    def update_conv_state(self: Any, conv_states: torch.Tensor, state_idx: int = 0, **kwargs: Any) -> torch.Tensor:
        if not self.has_previous_state[state_idx] or self.record_past:
            return original(self, conv_states, state_idx, **kwargs)
        before = self.conv_states[state_idx]
        everything = torch.cat([before, conv_states], dim=-1)
        self.conv_states[state_idx] = _as(everything[..., -self.conv_kernel_size[state_idx] :], before)
        return everything

    return update_conv_state


@register_patch(
    "capture",
    "transformers.cache_utils.LinearAttentionLayer.update_recurrent_state",
    reason="states are written in place to keep their address, which makes graphs write to their inputs",
)
def _new_recurrent_state(original: Callable) -> Callable:
    def update_recurrent_state(
        self: Any, recurrent_states: torch.Tensor, state_idx: int = 0, **kwargs: Any
    ) -> torch.Tensor:
        if not self.is_recurrent_states_initialized[state_idx]:
            return original(self, recurrent_states, state_idx, **kwargs)
        self.recurrent_states[state_idx] = _as(recurrent_states, self.recurrent_states[state_idx])
        return self.recurrent_states[state_idx]

    return update_recurrent_state


def _as(state: torch.Tensor, before: torch.Tensor) -> torch.Tensor:
    return state if state.dtype == before.dtype else state.to(before.dtype)


def _next_state() -> torch.Tensor | None:
    states = _to_start_from.get()
    _to_start_from.set(states[1:])
    return states[0] if states else None


# ---- padding ---------------------------------------------------------------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.apply_mask_to_padding_states",
    reason="the mask is as long as past and new tokens together, the states are those of the new tokens",
)
def _mask_new_tokens(original: Callable) -> Callable:
    def apply_mask_to_padding_states(hidden_states: torch.Tensor, attention_mask: torch.Tensor | None) -> torch.Tensor:
        if attention_mask is not None:
            attention_mask = attention_mask[:, -hidden_states.shape[1] :]
        return original(hidden_states, attention_mask)

    return apply_mask_to_padding_states


# ---- selective scan: mamba, falcon_mamba, jamba, zamba ---------------------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.mamba_selective_scan",
    reason="a loop over the tokens is unrolled by a trace, and begins with zeros whatever the cache holds",
)
def _selective_scan_from_state(original: Callable) -> Callable:
    def mamba_selective_scan(
        hidden_states: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        D: torch.Tensor | None = None,
        z: torch.Tensor | None = None,
        delta_bias: torch.Tensor | None = None,
        delta_softplus: bool = False,
        return_last_state: bool = False,
        **kwargs: Any,
    ) -> Any:
        """``hidden_states`` and ``dt`` are [batch, channels, tokens], ``B`` and ``C`` [batch, state, tokens]."""
        dtype = hidden_states.dtype
        if delta_bias is not None:
            dt = dt + delta_bias.to(dt.dtype)[..., None]
        if delta_softplus:
            dt = F.softplus(dt)
        state = _next_state()
        if state is None:
            state = hidden_states.new_zeros(hidden_states.shape[0], *A.shape, dtype=torch.float32)
        tokens = tuple(each.movedim(-1, 0) for each in (hidden_states, dt, B, C))
        (last,), outputs = scan(_selective_step, (state.float(),), tokens, (A,))
        output = outputs.to(dtype).movedim(0, -1)
        if D is not None:
            output = output + hidden_states * D[None, :, None]
        if z is not None:
            output = output * F.silu(z)
        return (output, last) if return_last_state else output

    return mamba_selective_scan


def _selective_step(state, x, dt, b, c, a):
    decay = torch.exp(a.unsqueeze(0) * dt.unsqueeze(-1))
    state = decay * state + dt.unsqueeze(-1) * b.unsqueeze(1).float() * x.unsqueeze(-1).float()
    output = torch.matmul(state.to(x.dtype), c.unsqueeze(-1)).squeeze(-1)
    return state, output


# ---- real-gated linear recurrent unit: recurrent_gemma ---------------------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.RecurrentGemmaRglru._rnn_scan",
    reason="a loop over the tokens is unrolled by a trace, and a single token takes a branch of its own",
)
def _linear_unit_from_state(original: Callable) -> Callable:
    def _rnn_scan(
        self: Any,
        hidden_states: torch.Tensor,
        recurrent_gate: torch.Tensor,
        reset: torch.Tensor,
        recurrent_states: torch.Tensor | None,
        acc_dtype: torch.dtype = torch.float32,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if recurrent_states is None:
            recurrent_states = torch.zeros_like(hidden_states[:, 0], dtype=acc_dtype)
        inputs = (hidden_states.to(acc_dtype), (recurrent_gate * ~reset).to(acc_dtype))
        tokens = tuple(each.movedim(1, 0) for each in inputs)
        (last,), outputs = scan(_linear_unit_step, (recurrent_states.to(acc_dtype),), tokens)
        return outputs.movedim(0, 1).to(hidden_states.dtype), last

    return _rnn_scan


def _linear_unit_step(state, x, gate):
    state = gate * state + x
    return state, state.clone()
