"""Fewer layers, every kind of layer kept.

Configurations tell the kinds of their layers in five ways: a list with an entry per layer, a set of layer indices, a
threshold, a period, and a set of layers whose output is used. The kinds are read from all of them at once, so that a
layer that is special in two ways stays so.
"""

from __future__ import annotations

import math
import re
from typing import Any

LAYERS = 2
#: More than this many layers are never kept for a period's sake.
_LONGEST_PERIOD = 8

_COUNTS = ("num_hidden_layers", "num_layers", "n_layer", "n_layers", "depth", "num_blocks")
_OTHER_COUNTS = re.compile(r"(.*_)?(layers|num_\w*layers|n_layers?|depth|num_\w*blocks|num_flows|resampler_depth)$")
#: Names that look like a count of layers and are none, or whose value the architecture depends on.
_NOT_COUNTS = re.compile(
    r"output_hidden_states|num_feat_extract_layers|num_query_pool_stages|.*_start_layer|mlp_only_layers|max_window_layers|iou_head_depth"
    r"|num_encoder_blocks|num_kv_shared_layers|num_dense_layers|num_nextn_predict_layers|.*adapter_layers|.*prenet_layers|.*postnet_layers"
    r"|num_random_blocks|(min|max)_depth|num_lstm_layers|num_residual_layers|no_rope_layers|cross_attention_layers|.*unshared.*|wrapped_.*"
)
#: Sets of layer indices that mark a kind of layer.
_KIND_SETS = re.compile(
    r"cross_attention_layers|mlp_only_layers|full_attn_idxs|global_attn_index(es)?|fullatt_block_indexes|attn_layer_indices"
    r"|attention_layers_idx|moe_layers|global_attention_blocks|full_attention_layers|mamba_layers|no_rope_layer_indices|global_attn_idx"
    r"|moe_layer_indices|hybrid_layer_ids|attention_layer_indices"
)
#: Sets of layers whose outputs are used, each for itself. The flag says whether 0 stands for the embedding.
_TAP_SETS = {
    "deepstack_visual_indexes": False,
    "intermediate_layers_indices": False,
    "backbone_out_indices": False,
    "out_indices": True,
    "_out_indices": True,
    "encoder_layer_indices": False,
}
#: First layers, or last ones, that are of a kind of their own.
_FROM_START = (
    "first_k_dense_replace",
    "moe_layer_start_index",
    "num_dense_layers",
    "max_window_layers",
    "first_k_dense",
)
_FROM_END = ("num_kv_shared_layers",)
#: Periods whose effect a list per layer repeats when there is one.
_LISTED_PERIODS = (
    "attn_layer_period",
    "no_rope_layer_interval",
    "sliding_window_pattern",
    "_sliding_window_pattern",
    "full_attention_interval",
    "global_attn_every_n_layers",
)
_PERIODS = (
    "expert_layer_period",
    "decoder_sparse_step",
    "moe_layer_freq",
    "interleave_moe_layer_step",
    "cross_attention_frequency",
    "moe_every_n_layers",
)
_OFFSETS = {"attn_layer_period": "attn_layer_offset", "expert_layer_period": "expert_layer_offset"}


def shrink_layers(config: dict[str, Any]) -> None:
    """Rewrites everything about layers in one configuration (not in those nested in it)."""
    count = next((n for n in _COUNTS if _is_count(config.get(n))), None)
    if count is not None and "depths" not in config:
        _shrink_stack(config, count)
    for name, value in config.items():
        if name != count and _is_count(value) and _OTHER_COUNTS.match(name) and not _NOT_COUNTS.match(name):
            config[name] = config[count] if name in _COUNTS and count else min(value, LAYERS)
        elif name in ("depths", "num_block_repeats", "blocks_per_stage", "layer_depths") and isinstance(
            value, (list, tuple)
        ):
            config[name] = [min(v, 2 if i == 0 else 1) if isinstance(v, int) else v for i, v in enumerate(value)]


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _shrink_stack(config: dict[str, Any], count: str) -> None:
    total = config[count]
    lists = [
        name
        for name, value in config.items()
        if isinstance(value, (list, tuple))
        and len(value) == total > LAYERS
        and name not in _TAP_SETS
        and not _KIND_SETS.fullmatch(name)
    ]
    kind_sets = [
        n for n, v in config.items() if _KIND_SETS.fullmatch(n) and isinstance(v, (list, tuple)) and n not in lists
    ]
    taps = [n for n in _TAP_SETS if isinstance(config.get(n), (list, tuple))]
    overrides = {int(i): values for i, values in (config.get("per_layer_config") or {}).items()}
    kept = _kept_layers(config, total, lists, kind_sets, taps)
    for name in lists:
        config[name] = [config[name][i] for i in kept]
    if overrides:
        config["per_layer_config"] = {new: overrides[old] for new, old in enumerate(kept) if old in overrides}
    for name in kind_sets:
        config[name] = [new for new, old in enumerate(kept) if old in config[name]]
    for name in taps:
        first = int(_TAP_SETS[name])
        # negative indices count from the end and stay
        config[name] = [i if i < first else kept.index(min(i - first, total - 1)) + first for i in config[name]]
    for name in _FROM_START:
        if _is_count(config.get(name)):
            config[name] = sum(old < config[name] for old in kept)
    for name in _FROM_END:
        if _is_count(config.get(name)):
            config[name] = sum(old >= total - config[name] for old in kept)
    config[count] = len(kept)


def _kept_layers(
    config: dict[str, Any], total: int, lists: list[str], kind_sets: list[str], taps: list[str]
) -> list[int]:
    period = _shrink_periods(config, listed=bool(lists))
    cycle = config.get("block_types")
    if isinstance(cycle, (list, tuple)) and 0 < len(cycle) < total:
        period = math.lcm(period, len(cycle))

    def kind(i: int) -> tuple:
        parts = [_hashable(config[name][i]) for name in lists]
        parts += [i in config[name] for name in kind_sets]
        parts += [i < config[name] for name in _FROM_START if _is_count(config.get(name))]
        parts += [i >= total - config[name] for name in _FROM_END if _is_count(config.get(name))]
        return tuple(parts)

    tapped = {min(i - int(_TAP_SETS[n]), total - 1) for n in taps for i in config[n] if i >= int(_TAP_SETS[n])}
    first_of: dict[tuple, int] = {}
    for i in range(total):
        first_of.setdefault(kind(i), i)
    if period > 1:
        # a period speaks of positions, so that layers can only be dropped at the end
        return list(range(min(total, max(period, LAYERS, *(i + 1 for i in tapped), 0))))
    kept = sorted({*first_of.values(), *tapped})
    for i in range(total):
        if len(kept) >= min(total, LAYERS):
            break
        kept = sorted({*kept, i})
    return kept


def _shrink_periods(config: dict[str, Any], *, listed: bool) -> int:
    """Rewrites long periods as short ones; returns the number of layers after which all of them begin anew."""
    whole = 1
    for name in (*_LISTED_PERIODS, *_PERIODS):
        period = config.get(name)
        if not _is_count(period) or period == 1 or (listed and name in _LISTED_PERIODS):
            continue
        new = min(period, 4)
        offset = _OFFSETS.get(name)
        if offset is not None and isinstance(config.get(offset), int):
            config[offset] = config[offset] * new // period
        config[name] = new
        whole = math.lcm(whole, new)
    return min(whole, _LONGEST_PERIOD)


def _hashable(value: Any) -> Any:
    return tuple(_hashable(v) for v in value) if isinstance(value, (list, tuple)) else repr(value)
