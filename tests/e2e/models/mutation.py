"""Models that change their buffers or their inputs in place."""

from __future__ import annotations

import torch
from torch import nn
from transformers import StaticCache

from .case import BATCH, DYNAMIC, Decompose, Inputs, ModelCase, Sample, floats, make_distinct, tokens
from .decoders import SIZES, causal_lm
from .pytrees import register_caches

CACHE_LENGTH = 16


class RunningStatistics(nn.Module):
    """Keeps a counter, a running mean and a ring of recent rows in buffers, one of them not persistent."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.ones(6))
        self.register_buffer("count", torch.zeros((), dtype=torch.int64))
        self.register_buffer("mean", torch.zeros(6))
        self.register_buffer("recent", torch.zeros(4, 6), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(x.shape[0])
        self.mean.lerp_(x.mean(0), 0.1)
        self.recent.copy_(torch.cat([self.recent[1:], x[-1:]]))
        self.recent[0, :2] = 1.5
        return (x - self.mean) * self.scale + self.recent.sum(0) / self.count


class InPlaceInputs(nn.Module):
    """Writes into its inputs through views and by index."""

    def forward(self, x: torch.Tensor, slots: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
        x[:, 1:3].mul_(2.0)
        x.view(-1)[0] = 7.0
        slots.index_put_((torch.arange(values.shape[0]),), values)
        return x.sum() + slots.select(0, 0)


def static_cache_step(
    model_type: str, name: str, decompose: Decompose = Decompose.NOTHING, other_past: int = 6, **settings
) -> ModelCase:
    """Decoding into a preallocated cache: index_copy_ on inputs. A step may hold any number of new tokens."""

    def build() -> Sample:
        register_caches()
        module = causal_lm(model_type, {**SIZES, **settings})
        config = module.config

        def step(past: int, new: int) -> Inputs:
            cache = StaticCache(config=config, max_cache_len=CACHE_LENGTH)
            with torch.no_grad():
                module(input_ids=tokens(2, past), past_key_values=cache, use_cache=True)
            return Inputs(kwargs={"input_ids": tokens(2, new), "past_key_values": cache, "use_cache": True})

        traced = step(4, 3)
        leaves = len(torch.utils._pytree.tree_leaves(traced.kwargs["past_key_values"]))
        shapes = {"input_ids": {1: DYNAMIC}, "past_key_values": [None] * leaves, "use_cache": None}
        return Sample(module, traced, shapes, step(other_past, 2))

    return ModelCase(name, "mutation", build, decompose=decompose)


def buffers(name: str, decompose: Decompose = Decompose.NOTHING) -> ModelCase:
    def build() -> Sample:
        return Sample(make_distinct(RunningStatistics()), Inputs((floats(3, 6),)), (BATCH,), Inputs((floats(5, 6),)))

    return ModelCase(name, "mutation", build, decompose=decompose)


def in_place_inputs() -> ModelCase:
    def inputs(rows: int, count: int) -> Inputs:
        return Inputs((floats(rows, 4), floats(8, 3), floats(count, 3)))

    def build() -> Sample:
        return Sample(InPlaceInputs().eval(), inputs(3, 2), (BATCH, None, BATCH), inputs(5, 4))

    return ModelCase("in_place_inputs", "mutation", build)


CASES = [
    static_cache_step("llama", "llama_static_cache"),
    static_cache_step("qwen2", "qwen2_static_cache_functional", decompose=Decompose.WRITES),
    static_cache_step(
        "gemma2", "gemma2_static_cache", other_past=4, head_dim=8, sliding_window=8, query_pre_attn_scalar=8
    ),
    buffers("buffer_statistics"),
    buffers("buffer_statistics_functional", decompose=Decompose.WRITES),
    in_place_inputs(),
]
