"""Small widths.

Widths that are equal in a configuration, or in two that are nested in one another, must stay equal: the output of one
part is the input of another. So nearly all of them become the same number, and those that step up from stage to stage
are divided by one factor for the whole tree.
"""

from __future__ import annotations

import re
from typing import Any

from .roles import FEED_FORWARD, HIDDEN, LISTS, NUMBERS, WINDOW

#: Rows of tables of positions, unless longer texts are asked for.
POSITIONS = 128
_FIRST_STAGE = 32
#: Channels that pictures may have.
_COLOURS = 4
#: A "block_size" above this counts positions; below it is one of linear or sparse attention.
_LARGEST_BLOCK = 256

_HEADS = re.compile(r"(.*?_)??(num_attention_heads|attention_heads|num_heads|n_heads?|num_attn_heads)$")
_KEY_VALUE = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num")
_HEAD_DIM = re.compile(r"(.*_)?(head_dim|attention_head_size|d_kv|kv_channels)$")


class Widths:
    """What small widths a whole tree of configurations has in common."""

    def __init__(self, trees: list[dict[str, Any]]) -> None:
        self._staged: dict[int, int] = {}
        staged = [v for tree in trees for n, v in tree.items() if _are_stages(n, v)]
        inner = [v for tree in trees for n, v in tree.items() if _whole_numbers(v) and LISTS.of(n) == "inner stages"]
        if staged:
            smallest = min(min(values) for values in staged)
            for value in {v for values in (*staged, *inner) for v in values}:
                self._staged[value] = value if value <= _COLOURS else _round(value * min(1.0, _FIRST_STAGE / smallest))
        for tree in trees:
            self._add_doubling_stages(tree)
        self._hidden = {
            tree[n]
            for tree in trees
            for n in ("hidden_size", "d_model", "n_embd", "dim")
            if isinstance(tree.get(n), int)
        }

    def _add_doubling_stages(self, tree: dict[str, Any]) -> None:
        """Swin and its kin give the first width and the heads of every stage; each stage doubles the width."""
        name = next((n for n in ("embed_dim", "patch_embeds_hidden_size") if isinstance(tree.get(n), int)), None)
        heads = next((tree[n] for n in ("num_heads", "num_attention_heads") if _whole_numbers(tree.get(n))), None)
        if name is None or heads is None or "depths" not in tree:
            return
        for stage in range(len(heads)):
            self._staged[tree[name] * 2**stage] = min(tree[name], heads[0] * 8) * 2**stage

    def of(self, value: int, *, factorised: bool = False) -> int:
        """The new width; ``factorised`` is for embeddings that are narrower than the model on purpose."""
        if value in self._staged:
            return self._staged[value]
        if factorised and value not in self._hidden:
            return min(value, HIDDEN // 2)
        return min(value, HIDDEN)


def _whole_numbers(value: Any) -> bool:
    return (
        isinstance(value, (list, tuple))
        and bool(value)
        and all(isinstance(v, int) and not isinstance(v, bool) for v in value)
    )


def _round(value: float) -> int:
    return max(8, 8 * round(value / 8))


def shrink_widths(config: dict[str, Any], widths: Widths, reach: int = POSITIONS) -> None:
    """Rewrites heads, widths, experts, windows and positions of one configuration (not of those nested in it)."""
    old = dict(config)
    written_out = {width for value in old.values() for width in _widths_of_blocks(value)}
    for name, value in old.items():
        if isinstance(value, (list, tuple)):
            keeps = value and isinstance(value[-1], int) and value[-1] in written_out
            config[name] = value if keeps else _shrink_list(name, value, widths)
        elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
            config[name] = _shrink_number(name, value, widths, reach)
    _shrink_heads(config, old)
    _shrink_latent_attention(config, old)
    _shrink_state_space(config, old)


def _widths_of_blocks(value: Any) -> set[int]:
    """Large numbers in lists of the blocks of each stage: other lists must agree with them."""
    stages = value if isinstance(value, (list, tuple)) else ()
    blocks = [block for stage in stages if isinstance(stage, (list, tuple)) for block in stage if isinstance(block, (list, tuple))]
    return {number for block in blocks for number in block if isinstance(number, int) and number >= _FIRST_STAGE}


def _are_stages(name: str, value: Any, inner: bool = False) -> bool:
    return _whole_numbers(value) and len(value) > 1 and LISTS.of(name) in ("stages", *(("inner stages",) * inner))


def _shrink_list(name: str, value: Any, widths: Widths) -> Any:
    if _are_stages(name, value, inner=True):
        return [widths.of(v) for v in value]
    role = LISTS.of(name) or NUMBERS.of(name)
    return [min(v, role) for v in value] if isinstance(role, int) and _whole_numbers(value) else value


def _shrink_number(name: str, value: int, widths: Widths, reach: int) -> int:
    role = NUMBERS.of(name)
    if isinstance(role, int):
        return min(value, role)
    match role:
        case "positions":
            return min(value, reach)
        case "block" if value <= _LARGEST_BLOCK:
            return min(value, WINDOW)
        case "width" | "narrow":
            return widths.of(value, factorised=role == "narrow")
    return value


#: What says how many patches a side become one.
_JOINED = ("spatial_merge_size", "merge_size", "pixel_shuffle_ratio")


def shrink_joined(configs: list[dict[str, Any]], before: list[dict[str, Any]]) -> None:
    """Widths of several patches joined stay multiples of the width of one, unless a model is as wide by chance; `before` is the same
    before widths became small."""
    models = {hidden_size(old) for old in before}
    for config, old in zip(configs, before, strict=True):
        width, sides = old.get("hidden_size"), next((old[name] for name in _JOINED if isinstance(old.get(name), (int, float))), 1)
        count = round(max(sides, 1 / sides)) ** 2
        if count == 1 or not isinstance(width, int):
            continue
        for other, was in zip(configs, before, strict=True):
            for name, value in was.items():
                if value == count * width and value not in models and NUMBERS.of(name) in ("width", FEED_FORWARD):
                    other[name] = count * config["hidden_size"]


def shrink_sums(config: dict[str, Any], old: dict[str, Any]) -> None:
    """Widths of two unlike parts side by side stay the sum of both; `old` is the same before."""
    parts = [name for name, value in old.items() if isinstance(value, dict) and hidden_size(value) and hidden_size(config[name] or {})]
    if len(parts) != 2:
        return
    before, after = ([hidden_size(tree[name]) or 0 for name in parts] for tree in (old, config))
    for name, value in old.items():
        if value == sum(before) and NUMBERS.of(name) == "width" and before[0] != before[1]:
            config[name] = sum(after)


def attention_names(config: dict[str, Any]) -> list[tuple[str, str | None]]:
    """Attributes that count query heads, each with the one that counts its key and value heads, if there is one."""
    found = []
    for name, value in config.items():
        match = _HEADS.match(name)
        if (
            match is None
            or not isinstance(value, int)
            or isinstance(value, bool)
            or name.startswith(("linear_", "mamba_", "n_mamba"))
        ):
            continue
        prefix = match.group(1) or ""
        found.append((name, next((prefix + n for n in _KEY_VALUE if isinstance(config.get(prefix + n), int)), None)))
    return found


def _shrink_heads(config: dict[str, Any], old: dict[str, Any]) -> None:
    """Keeps what heads mean: one key head for all, one for each, or one for a group; wider or narrower than the model."""
    for name, key_value in attention_names(old):
        heads = old[name]
        shared = old[key_value] if key_value else heads
        config[name], new_shared = _head_counts(heads, shared)
        if key_value:
            config[key_value] = new_shared
        for other in ("num_global_key_value_heads",):
            if isinstance(old.get(other), int):
                config[other] = min(old[other], new_shared)
    model = hidden_size(config)
    for name, value in old.items():
        if not _HEAD_DIM.match(name) or not isinstance(value, int) or isinstance(value, bool):
            continue
        config[name] = min(value, _head_dim(name, config, old, model))
    scalar, before = old.get("query_pre_attn_scalar"), old.get("head_dim")
    if isinstance(scalar, int) and isinstance(before, int):
        config["query_pre_attn_scalar"] = max(1, scalar * config["head_dim"] // before)  # the scale of attention
    _shrink_overrides(config, old)
    if "linear_num_key_heads" in old:
        config["linear_num_key_heads"] = 2
        config["linear_num_value_heads"] = 2 * min(2, old["linear_num_value_heads"] // old["linear_num_key_heads"])


def _shrink_overrides(config: dict[str, Any], old: dict[str, Any]) -> None:
    """Layers whose heads differ from the others' keep the proportion."""
    listed, heads = old.get("num_key_value_heads_per_layer"), old.get("num_attention_heads")
    if _whole_numbers(listed) and isinstance(heads, int):
        config["num_key_value_heads_per_layer"] = [_head_counts(heads, each)[1] for each in config["num_key_value_heads_per_layer"]]
    for values in (config.get("per_layer_config") or {}).values():
        if isinstance(values.get("head_dim"), int) and isinstance(old.get("head_dim"), int):
            values["head_dim"] = config["head_dim"] * values["head_dim"] // old["head_dim"]
        if isinstance(values.get("num_key_value_heads"), int):
            values["num_key_value_heads"] = min(values["num_key_value_heads"], config["num_key_value_heads"])


def _head_counts(heads: int, shared: int) -> tuple[int, int]:
    """Four heads of a model of 64 are 16 wide: engines' own attention takes no less, and a twin must have what ships."""
    if heads <= 2:
        return heads, shared
    return 4, 4 if shared == heads else 1 if shared == 1 else 2


def _head_dim(name: str, config: dict[str, Any], old: dict[str, Any], model: int | None) -> int:
    counts = next(
        (n for n, _ in attention_names(old) if n in ("num_attention_heads", "num_heads", "n_head", "n_heads")), None
    )
    before = hidden_size(old)
    if counts is None or model is None or before is None or name.startswith(("linear_", "resampler_")):
        return 16
    even = model // config[counts]
    if old[name] * old[counts] > before:
        return 2 * even
    if old[name] * old[counts] < before and even > 8:
        return even // 2
    return even


def hidden_size(config: dict[str, Any]) -> int | None:
    """The width of the model, by whatever name."""
    return next(
        (config[n] for n in ("hidden_size", "d_model", "n_embd", "dim", "embed_dim") if isinstance(config.get(n), int)),
        None,
    )


def _shrink_latent_attention(config: dict[str, Any], old: dict[str, Any]) -> None:
    """DeepSeek's attention: ranks, and heads in a rotary and a plain part."""
    for name, value in (
        ("q_lora_rank", 16),
        ("kv_lora_rank", 16),
        ("qk_rope_head_dim", 8),
        ("qk_nope_head_dim", 16),
        ("v_head_dim", 16),
    ):
        if isinstance(config.get(name), int):
            config[name] = min(config[name], value) or value
    if isinstance(config.get("qk_rope_head_dim"), int):
        if isinstance(config.get("qk_head_dim"), int):
            config["qk_head_dim"] = config["qk_rope_head_dim"] + config["qk_nope_head_dim"]
        if isinstance(config.get("head_dim"), int):
            whole = old["head_dim"] == old.get("qk_head_dim")  # or that of the rotary part
            config["head_dim"] = config["qk_head_dim" if whole else "qk_rope_head_dim"]


def _shrink_state_space(config: dict[str, Any], old: dict[str, Any]) -> None:
    """Mamba: heads times their width is the inner width, which is a multiple of the model's."""
    expand = old.get("expand", old.get("mamba_expand"))
    model = hidden_size(config)
    if not isinstance(expand, (int, float)) or model is None:
        return
    inner = int(expand * model)
    if isinstance(old.get("mamba_d_ssm"), int):
        inner = config["mamba_d_ssm"] = 2 * HIDDEN
    if isinstance(old.get("intermediate_size"), int) and old["intermediate_size"] == int(
        expand * (hidden_size(old) or 0)
    ):
        config["intermediate_size"] = inner
    for heads, dim in (
        ("num_heads", "head_dim"),
        ("mamba_n_heads", "mamba_d_head"),
        ("mamba_num_heads", "mamba_head_dim"),
    ):
        if isinstance(old.get(heads), int):
            config[heads] = inner // 16
            if dim in old:
                config[dim] = 16
    if isinstance(old.get("mamba_headdim"), int) and isinstance(config.get("n_mamba_heads"), int):
        config["mamba_headdim"] = inner // config["n_mamba_heads"]
    for name in ("attention_hidden_size",):
        if isinstance(old.get(name), int) and old[name] == 2 * (hidden_size(old) or 0):
            config[name] = 2 * model
            if isinstance(old.get("attention_head_dim"), int):
                config["attention_head_dim"] = 2 * model // config["num_attention_heads"]
