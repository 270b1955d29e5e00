"""Values of configuration fields as real checkpoints have them, at small width. A function draws one field or a few that go
together; limits and windows are small enough for prompts of some forty tokens to cross them."""

from __future__ import annotations

import random
from typing import Any

#: Odd, prime and round ones.
VOCABULARIES = (96, 97, 101, 128, 131, 199, 250, 251, 256, 257)
#: Shorter than every prompt, near their lengths, and longer than all.
WINDOWS = (3, 4, 8, 13, 16, 24, 31, 200)
LIMITS = (16, 24, 32)
ROPES = ("default", "default", "linear", "dynamic", "yarn", "llama3")


def chance(rng: random.Random, share: float) -> bool:
    return rng.random() < share


def heads(rng: random.Random, *, equal: bool = False, own_size: bool = True) -> dict[str, Any]:
    """Width, heads, grouped heads and, unless it follows from these, the size of a head."""
    count, groups = rng.choice(((4, 4), (4, 2), (4, 1), (2, 1), (6, 3), (6, 2), (3, 3), (8, 2), (3, 1)))
    size = rng.choice((8, 16, 12))
    fields = {"hidden_size": count * size, "num_attention_heads": count}
    if not equal:
        fields["num_key_value_heads"] = groups
    if own_size:
        fields["head_dim"] = size
        if chance(rng, 0.4):
            fields["hidden_size"] = rng.choice((32, 48, 40))
            fields["head_dim"] = rng.choice((8, 16, 24))
    return fields


def rope(rng: random.Random, rotary: int, kinds: tuple[str, ...] = ROPES) -> dict[str, Any]:
    """``rope_parameters`` and ``max_position_embeddings``. ``rotary``: how many elements of a head are rotated."""
    kind = rng.choice(kinds)
    theta = rng.choice((10000.0, 500000.0, 1000000.0, 10000))
    limit = rng.choice(LIMITS)
    fields: dict[str, Any] = {"rope_type": kind, "rope_theta": theta}
    longest = rng.choice((64, 128, 512))
    if kind == "linear":
        fields["factor"] = rng.choice((2.0, 4.0, 8.0))
    elif kind == "dynamic":
        fields["factor"] = rng.choice((2.0, 4.0))
        longest = limit
    elif kind == "yarn":
        fields |= {"factor": rng.choice((2.0, 4.0, 16.0)), "original_max_position_embeddings": limit}
        if chance(rng, 0.3):
            fields["attention_factor"] = rng.choice((0.8, 1.2))
        elif chance(rng, 0.3):
            fields |= {"mscale": 0.7, "mscale_all_dim": rng.choice((0.7, 1.0))}
        if chance(rng, 0.3):
            fields |= {"beta_fast": 16.0, "beta_slow": 2.0}
        if chance(rng, 0.2):
            fields["truncate"] = False
        longest = int(limit * fields["factor"])
    elif kind == "llama3":
        fields |= {"factor": rng.choice((8.0, 32.0)), "low_freq_factor": 1.0, "high_freq_factor": rng.choice((4.0, 2.0)),
                   "original_max_position_embeddings": limit}  # fmt: skip
        longest = int(limit * fields["factor"])
    elif kind == "longrope":
        fields |= {"short_factor": [round(1 + 0.05 * i, 3) for i in range(rotary // 2)],
                   "long_factor": [round(1.5 + 0.7 * i, 3) for i in range(rotary // 2)],
                   "original_max_position_embeddings": limit, "factor": 4.0}  # fmt: skip
        longest = 4 * limit
    return {"rope_parameters": fields, "max_position_embeddings": longest}


def rotary_size(fields: dict[str, Any]) -> int:
    return int(fields.get("head_dim") or fields["hidden_size"] // fields["num_attention_heads"])


def tokens(rng: random.Random) -> dict[str, Any]:
    """Vocabulary and tokens that mean something. Padding: none, the first, the last, or the same as the end."""
    size = rng.choice(VOCABULARIES)
    end = rng.choice((2, 1, size - 2))
    padding = rng.choice((None, 0, size - 1, end))
    fields: dict[str, Any] = {"vocab_size": size, "bos_token_id": 1, "eos_token_id": end, "pad_token_id": padding}
    if chance(rng, 0.15):
        fields["eos_token_id"] = [end, size - 3]
    return fields


def layer_types(rng: random.Random, count: int) -> list[str]:
    """Sliding and full attention: all alike, in turns, or by chance."""
    kind = rng.choice(("full", "sliding", "turns", "chance"))
    if kind == "full":
        return ["full_attention"] * count
    if kind == "sliding":
        return ["sliding_attention"] * count
    if kind == "turns":
        return ["sliding_attention" if i % 2 == 0 else "full_attention" for i in range(count)]
    return [rng.choice(("sliding_attention", "full_attention")) for _ in range(count)]


def decoder(rng: random.Random, *, own_head_size: bool = True, equal_heads: bool = False,
            ropes: tuple[str, ...] = ROPES) -> dict[str, Any]:  # fmt: skip
    """What most decoders with rotary positions have."""
    fields = heads(rng, own_size=own_head_size, equal=equal_heads)
    fields |= tokens(rng) | rope(rng, rotary_size(fields), ropes)
    fields |= {
        "intermediate_size": rng.choice((48, 64, 80)),
        "num_hidden_layers": rng.choice((2, 2, 3, 4)),
        "rms_norm_eps": rng.choice((1e-5, 1e-6)),
        "hidden_act": rng.choice(("silu", "silu", "gelu", "gelu_pytorch_tanh", "relu")),
        "tie_word_embeddings": chance(rng, 0.5),
        "attention_dropout": rng.choice((0.0, 0.1)),
    }
    if chance(rng, 0.1):
        fields["use_cache"] = False
    return fields


def experts(rng: random.Random, name: str = "num_experts") -> dict[str, Any]:
    count = rng.choice((2, 4, 6))
    return {name: count, "num_experts_per_tok": rng.choice([k for k in (1, 2, 3) if k <= count])}
