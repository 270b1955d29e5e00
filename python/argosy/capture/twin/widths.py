"""Small widths.

Widths that are equal in a configuration, or in two that are nested in one another, must stay equal: the output of one
part is the input of another. So nearly all of them become the same number, and those that step up from stage to stage
are divided by one factor for the whole tree.
"""

from __future__ import annotations

import re
from typing import Any

from .tokens import VOCABULARY

HIDDEN = 64
FEED_FORWARD = 96
EXPERT_FEED_FORWARD = 32
EXPERTS = 4
WINDOW = 8
#: Rows of tables of positions, unless longer texts are asked for.
POSITIONS = 128
#: Tokens that sparse attention picks. As in checkpoints more than a trace has, so that both take the same branch.
PICKED = 64
_FIRST_STAGE = 32

_HEADS = re.compile(r"(.*?_)??(num_attention_heads|attention_heads|num_heads|n_heads?|num_attn_heads)$")
_KEY_VALUE = ("num_key_value_heads", "num_kv_heads", "n_kv_heads", "multi_query_group_num")
_HEAD_DIM = re.compile(r"(.*_)?(head_dim|attention_head_size|d_kv|kv_channels)$")
_FEED_FORWARD = re.compile(
    r"(.*_)?(intermediate_size|ffn_dim|d_ff|n_inner|ffn_hidden_size|mlp_dim|ffn_size|intermediate_dim|feedforward_dim|feed_forward_size"
    r"|dim_feedforward|mlp_hidden_size|block_ff_dim)$"
)
_STAGED = re.compile(
    r"hidden_sizes|encoder_hidden_sizes|decoder_hidden_sizes|embed_dims?|embed_dim_per_stage|neck_hidden_sizes|backbone_channel_list"
    r"|(encoder_|decoder_)?in_channels|fpn_channels|stage_channels"
)
_WIDTH = re.compile(
    r"(.*_)?(hidden_size|d_model|n_embd|dim|size|width|channels?|units|bins|rank|hidden|features|embds_dim|num_pos_feats|hidden_dimension)$"
)
#: End like a width and are none (or are rewritten elsewhere).
_NOT_WIDTH = re.compile(
    r".*(image|img|patch|window|chunk|block|kernel|vocab|batch|pool|merge|stride|crop|spec|tile|frame|context|num_mel|"
    r"grid|group|resolution|depth_separable|audio|beam|cache|multiple|label)\w*_(size|channels?|bins|dim)"
    r"|(image|img|patch|window|chunk|block|input|kernel|batch|codebook|crop|spec|grid)_(size|embedding_size)|num_channels|in_channels|in_chans"
    r"|audio_channels|query_dim|conv_L_cache|num_mel_bins|speaker_embedding_size|type_vocab_size|state_size|mamba_d_state|vocab_size"
    r"|mask_(feature|time)_\w+|(linear_)?conv_kernel_dim|depth_separable_channels|duration_predictor_flow_bins|input_channels|scale|seq_len"
    r"|mask_input_channels|num_pos_feats|rel_(2d_)?pos_bins|kernel_size|num_pos_bins|\w*_stride|lsh_\w+|local_attn\w+|bbox_embedding_size|in_dim|out_dim"
)
_EXPERT_COUNT = re.compile(
    r"(num_)?(local_|routed_|moe_num_)?experts|n_routed_experts|moe_num_experts|n_experts|moe_num_local_experts"
)
_TOP_K = re.compile(r"(.*_)?(experts_per_tok|top_k|topk|experts_per_token|moe_k|top_k_experts|moe_topk)")
_POSITIONS = re.compile(
    r"(.*_)?(max_position_embeddings|n_positions|max_\w*positions|max_seq_len|n_ctx|max_sequence_length|max_2d_position_embeddings|seq_length"
    r"|context_length|max_context_length|num_position_embeddings|max_text_len|max_relative_position)$"
)


class Widths:
    """What small widths a whole tree of configurations has in common."""

    def __init__(self, trees: list[dict[str, Any]]) -> None:
        self._staged: dict[int, int] = {}
        staged = [
            v for tree in trees for n, v in tree.items() if _STAGED.fullmatch(n) and _whole_numbers(v) and len(v) > 1
        ]
        if staged:
            smallest = min(min(values) for values in staged)
            for value in {v for values in staged for v in values}:
                self._staged[value] = _round(value * min(1.0, _FIRST_STAGE / smallest))
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
    for name, value in old.items():
        if isinstance(value, (list, tuple)):
            config[name] = _shrink_list(name, value, widths)
        elif isinstance(value, int) and not isinstance(value, bool) and value > 0:
            config[name] = min(value, reach) if _POSITIONS.match(name) else _shrink_number(name, value, widths)
    _shrink_heads(config, old)
    _shrink_latent_attention(config)
    _shrink_state_space(config, old)


def _shrink_list(name: str, value: Any, widths: Widths) -> Any:
    if not _whole_numbers(value):
        return value
    if _STAGED.fullmatch(name) and len(value) > 1:
        return [widths.of(v) for v in value]
    if name == "attention_window":
        return [min(v, WINDOW) for v in value]
    if name == "window_size_per_stage":
        return [min(v, 4) for v in value]
    if _FEED_FORWARD.match(name):
        return [min(v, FEED_FORWARD) for v in value]
    if re.search(r"conv_dim|tdnn_dim|conv_channel|conv_channels", name):
        return [min(v, 32) for v in value]
    return value


def _shrink_number(name: str, value: int, widths: Widths) -> int:
    if _EXPERT_COUNT.fullmatch(name):
        return min(value, EXPERTS)
    if name == "index_topk":
        return min(value, PICKED)
    if _TOP_K.fullmatch(name):
        return min(value, 2)
    if re.fullmatch(r"n_group|num_expert_group|n_groups|topk_group", name):
        return 1 if name == "topk_group" else min(value, 2)
    if re.fullmatch(r"\w*shared_experts", name):
        return min(value, 2)
    if re.fullmatch(
        r"(\w+_)?(sliding_window|attention_window|attention_window_size|local_attention|attention_chunk_size|chunk_size|chunk_length)",
        name,
    ):
        return min(value, WINDOW)
    if re.fullmatch(r"(mamba_)?(d_)?state(_size)?|ssm_state_size|mamba_d_state", name):
        return min(value, 8)
    if re.fullmatch(r"time_step_rank|mamba_dt_rank|laurel_rank", name):
        return min(value, 4)
    if re.search(r"(moe|expert)\w*(intermediate|ffn)", name):
        return min(value, EXPERT_FEED_FORWARD)
    if _FEED_FORWARD.match(name):
        return min(value, FEED_FORWARD)
    if re.fullmatch(r"codebook_size|num_embeddings|num_codevectors_per_group", name):
        return min(value, VOCABULARY)  # codes are the tokens of decoders of audio
    if re.fullmatch(r"num_mel_bins|input_feat_per_channel|feature_projection_input_dim|input_feat_size", name):
        return min(value, 16)
    if re.fullmatch(r"num_queries|num_query_tokens|num_latents|num_detection_tokens|\w*n_latents|num_proposals", name):
        return min(value, 8)
    if re.fullmatch(r"num_conv_pos_embeddings|num_conv_pos_embedding_groups", name):
        return min(value, 16 if name.endswith("embeddings") else 4)
    if name == "hidden_size_per_layer_input":
        return min(value, 16)
    if name == "pooler_output_size":
        return widths.of(value)
    if name == "block_size" and value <= 256:
        return min(value, WINDOW)  # of linear or sparse attention; a larger one counts positions
    if name == "num_pos_feats":
        return min(value, HIDDEN // 2)  # one half for rows, one for columns
    if name in ("num_filters", "num_quantizers"):
        return min(value, 8 if name == "num_filters" else 4)
    if name == "upsample_groups":
        return min(value, HIDDEN)
    if name == "patch_embed_hidden_size":
        return value  # pixels of a patch
    if _HEADS.match(name) or _HEAD_DIM.match(name) or name in _KEY_VALUE:
        return value
    if name.endswith("hidden_size") or (_WIDTH.match(name) and not _NOT_WIDTH.fullmatch(name)):
        return widths.of(value, factorised=name in ("embedding_size", "word_embed_proj_dim"))
    return value


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
    for values in (config.get("per_layer_config") or {}).values():
        if isinstance(values.get("head_dim"), int) and isinstance(old.get("head_dim"), int):
            values["head_dim"] = config["head_dim"] * values["head_dim"] // old["head_dim"]
        if isinstance(values.get("num_key_value_heads"), int):
            values["num_key_value_heads"] = min(values["num_key_value_heads"], config["num_key_value_heads"])


def _head_counts(heads: int, shared: int) -> tuple[int, int]:
    if heads <= 2:
        return heads, shared
    if shared == heads:
        return 4, 4
    if shared == 1:
        return 4, 1
    return (8, 2) if heads // shared >= 4 else (4, 2)


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


def _shrink_latent_attention(config: dict[str, Any]) -> None:
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
            config["head_dim"] = config["qk_rope_head_dim"]


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
