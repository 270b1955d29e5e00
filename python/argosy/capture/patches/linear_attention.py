"""Linear attention with a state of keys and values: a scan over the tokens that starts from the state of the cache.

Transformers computes prompts in chunks and unrolls the loops over them; which loop is taken, and how often it runs,
depends on the number of tokens. A step for each token computes the same for any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F

from ...patching import register_patch
from .recurrent import scan

# ---- gated delta rule: qwen3_next, qwen3_5, olmo_hybrid, kimi_linear -------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.torch_chunk_gated_delta_rule",
    "*.modeling_*.chunk_kimi_delta_attention",
    reason="loops over chunks and over the tokens of a chunk are unrolled by a trace, as many as its sequence had",
)
def _delta_rule_by_token(original: Callable) -> Callable:
    def gated_delta_rule(
        query: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        g: torch.Tensor,
        beta: torch.Tensor,
        chunk_size: int = 64,
        initial_state: torch.Tensor | None = None,
        output_final_state: bool = False,
        use_qk_l2norm_in_kernel: bool = False,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor | None]:
        """Tensors are [batch, tokens, heads, …]; ``g``, the logarithm of the decay, is one number a head or a channel."""
        dtype = query.dtype
        query, key, value, g, beta = (each.float() for each in (query, key, value, g, beta))
        if use_qk_l2norm_in_kernel:
            query, key = _normalised(query), _normalised(key)
        query = query * query.shape[-1] ** -0.5
        decay = g.exp() if g.dim() == key.dim() else g.exp().unsqueeze(-1)
        if initial_state is None:
            initial_state = value.new_zeros(value.shape[0], value.shape[2], key.shape[-1], value.shape[-1])
        tokens = tuple(each.movedim(1, 0) for each in (query, key, value, decay, beta))
        (last,), outputs = scan(_delta_step, (initial_state.float(),), tokens)
        return outputs.movedim(0, 1).to(dtype), last if output_final_state else None

    return gated_delta_rule


def _normalised(vectors: torch.Tensor) -> torch.Tensor:
    return vectors * torch.rsqrt((vectors * vectors).sum(dim=-1, keepdim=True) + 1e-6)


def _delta_step(state, query, key, value, decay, beta):
    state = state * decay.unsqueeze(-1)
    remembered = (state * key.unsqueeze(-1)).sum(dim=-2)
    state = state + key.unsqueeze(-1) * ((value - remembered) * beta.unsqueeze(-1)).unsqueeze(-2)
    return state, (state * query.unsqueeze(-1)).sum(dim=-2)


# ---- state spaces with heads: mamba2, bamba, falcon_h1, granitemoehybrid, nemotron_h, zamba2 -------------------------


@register_patch(
    "capture",
    "*.modeling_*.mamba2_chunk_scan",
    reason="any number of tokens is filled up to whole chunks, so that one token costs as much as 256 of them",
)
def _state_space_by_token(original: Callable) -> Callable:
    def mamba2_chunk_scan(
        hidden_states: torch.Tensor,
        dt: torch.Tensor,
        A: torch.Tensor,
        B: torch.Tensor,
        C: torch.Tensor,
        chunk_size: int,
        D: torch.Tensor | None = None,
        dt_bias: torch.Tensor | None = None,
        initial_states: torch.Tensor | None = None,
        dt_softplus: bool = False,
        dt_limit: tuple[float, float] = (0.0, float("inf")),
        return_final_states: bool = False,
        **kwargs: Any,
    ) -> Any:
        """``hidden_states`` are [batch, tokens, heads, width], ``dt`` [batch, tokens, heads], ``B`` and ``C`` [batch,
        tokens, groups, state]."""
        heads = hidden_states.shape[2]
        if dt_bias is not None:
            dt = dt + dt_bias.to(dt.dtype)
        if dt_softplus:
            dt = F.softplus(dt)
        dt = torch.clamp(dt, min=dt_limit[0], max=dt_limit[1]).float()
        hidden_states = hidden_states.float()
        key, query = (each.float().repeat_interleave(heads // each.shape[2], dim=2) for each in (B, C))
        value, decay = hidden_states * dt.unsqueeze(-1), torch.exp(A.float() * dt).unsqueeze(-1)
        if initial_states is None:
            initial_states = value.new_zeros(value.shape[0], heads, value.shape[-1], key.shape[-1])
        tokens = tuple(each.movedim(1, 0) for each in (query, key, value, decay))
        (last,), outputs = scan(_state_space_step, (initial_states.float(),), tokens)
        output = outputs.movedim(0, 1)
        if D is not None:
            output = output + D.unsqueeze(-1) * hidden_states
        return (output, last) if return_final_states else output

    return mamba2_chunk_scan


def _state_space_step(state, query, key, value, decay):
    state = state * decay.unsqueeze(-1) + value.unsqueeze(-1) * key.unsqueeze(-2)
    return state, torch.matmul(state, query.unsqueeze(-1)).squeeze(-1)


# ---- RWKV-4 ----------------------------------------------------------------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.rwkv_linear_attention",
    reason="a loop over the tokens is unrolled by a trace",
)
def _rwkv_by_token(original: Callable) -> Callable:
    def rwkv_linear_attention(
        time_decay: torch.Tensor,
        time_first: torch.Tensor,
        key: torch.Tensor,
        value: torch.Tensor,
        state: tuple[torch.Tensor, ...] | None = None,
        return_state: bool = False,
    ) -> tuple[torch.Tensor, list[torch.Tensor] | None]:
        if state is None:
            zeros = torch.zeros_like(key[:, 0], dtype=torch.float32)
            state = (zeros, zeros.clone(), zeros - 1e38)
        numerator, denominator, largest = state
        # A denominator of zero is a state of no tokens: so a past of none is zeros here as in every other cache.
        largest = torch.where(denominator == 0, -1e38, largest)
        tokens = (key.float().movedim(1, 0), value.movedim(1, 0))
        constants = (-torch.exp(time_decay), time_first)
        last, outputs = scan(_rwkv_step, (numerator, denominator, largest), tokens, constants)
        return outputs.movedim(0, 1).to(key.dtype), list(last)

    return rwkv_linear_attention


def _rwkv_step(numerator, denominator, largest, key, value, decay, first):
    """States are scaled by the exponential of ``largest``, so that no exponential overflows."""
    now = key + first
    top = torch.maximum(largest, now)
    before, this = torch.exp(largest - top), torch.exp(now - top)
    output = (before * numerator + this * value) / (before * denominator + this)
    top = torch.maximum(largest + decay, key)
    before, this = torch.exp(largest + decay - top), torch.exp(key - top)
    return before * numerator + this * value, before * denominator + this, top, output


@register_patch(
    "capture",
    "*.modeling_*.RwkvModel.forward",
    reason="layers write to slices of the states that the model is given",
)
def _rwkv_own_states(original: Callable) -> Callable:
    def forward(self: Any, *args: Any, state: list[torch.Tensor] | None = None, **kwargs: Any) -> Any:
        return original(self, *args, state=None if state is None else [each.clone() for each in state], **kwargs)

    return forward


@register_patch(
    "capture",
    "*.modeling_*.RwkvModel._rescale_layers",
    reason="the first call divides weights in place, which a graph must neither do nor expect of its weights",
)
def _rwkv_weights_as_saved(original: Callable) -> Callable:
    def _rescale_layers(self: Any) -> None:
        self.layers_are_rescaled = not self.training

    return _rescale_layers


@register_patch(
    "capture",
    "*.modeling_*.RwkvSelfAttention.forward",
    "*.modeling_*.RwkvFeedForward.forward",
    reason="weights are as saved, so what they give is divided instead; powers of two make that exact",
)
def _rwkv_rescaled_outputs(original: Callable) -> Callable:
    def forward(self: Any, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, Any]:
        output, state = original(self, *args, **kwargs)
        every = self.config.rescale_every
        power = self.layer_id // every if every > 0 and not self.training else 0
        return (output / 2**power if power else output), state

    return forward


# ---- lightning attention: minimax ------------------------------------------------------------------------------------


@register_patch(
    "capture",
    "*.modeling_*.MiniMaxLightningAttention.forward",
    reason="loops over blocks, or over tokens when there is a past, are unrolled by a trace",
)
def _lightning_by_token(original: Callable) -> Callable:
    def forward(
        self: Any,
        hidden_states: torch.Tensor,
        position_embeddings: Any = None,
        attention_mask: torch.Tensor | None = None,
        past_key_values: Any = None,
        **kwargs: Any,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        batch, length, _ = hidden_states.shape
        mixed = self.act_fn(self.qkv_proj(hidden_states))
        if attention_mask is not None:
            mixed = mixed * attention_mask[:, -length:, None].to(mixed.dtype)
        mixed = mixed.reshape(batch, length, self.num_attention_heads, 3 * self.head_dim)
        tokens = tuple(each.movedim(1, 0) for each in torch.split(mixed, self.head_dim, dim=3))
        state = None if past_key_values is None else past_key_values.get_linear_cache(self.layer_idx)
        if state is None:
            state = mixed.new_zeros(batch, self.num_attention_heads, self.head_dim, self.head_dim)
        (last,), outputs = scan(_lightning_step, (state,), tokens, (torch.exp(-self.slope_rate),))
        if past_key_values is not None:
            past_key_values.set_linear_cache(self.layer_idx, last)
        output = self.norm(outputs.movedim(0, 1).reshape(batch, length, self.num_attention_heads * self.head_dim))
        return self.out_proj(torch.sigmoid(self.output_gate(hidden_states)) * output), last

    return forward


def _lightning_step(state, query, key, value, decay):
    state = decay * state + key.unsqueeze(-1) * value.unsqueeze(-2)
    return state, torch.matmul(query.unsqueeze(-2), state).squeeze(-2)
