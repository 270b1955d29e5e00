"""What attributes of a configuration mean, by their names.

Rows are tried in their order; the first whose pattern is the whole name says the role. Each row names a family whose
twin would be another one without it, so that a row that nothing needs any more fails a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from .tokens import VOCABULARY

HIDDEN = 64
FEED_FORWARD = 96
EXPERT_FEED_FORWARD = 32
EXPERTS = 4
WINDOW = 8
#: Tokens that sparse attention picks. As in checkpoints more than a trace has, so that both take the same branch.
PICKED = 64


@dataclass(frozen=True)
class Row:
    pattern: str
    role: str | int
    """A number is the most that the attribute may be."""
    family: str
    """A model type that needs the row."""
    given: dict[str, Any] = field(default_factory=dict)
    """What its configuration has then, where the default one does not need the row."""


class Roles:
    """A table of rows."""

    def __init__(self, *rows: Row) -> None:
        self.rows = rows

    def of(self, name: str) -> str | int | None:
        return next((row.role for row in self.rows if re.fullmatch(row.pattern, name)), None)

    def patterns(self, role: str) -> Iterator[str]:
        """Of the rows with that role, in their order."""
        return (row.pattern for row in self.rows if row.role == role)


def _as_they_are(**families: str) -> Iterator[Row]:
    """Names that end like a width and are none."""
    for word, family in families.items():
        yield Row(rf".*{word}\w*_(size|channels?|bins|dim)", "as it is", family)


#: Of whole numbers. "block" is a limit for small ones alone, "narrow" a width that may be below the model's.
NUMBERS = Roles(
    Row(r"(.*_)?max_position_embeddings", "positions", "llama"),
    Row(r"(.*_)?n_positions", "positions", "gpt2"),
    Row(r"(.*_)?max_\w*positions", "positions", "whisper"),
    Row(r"(.*_)?max_seq_len", "positions", "mpt"),
    Row(r"(.*_)?n_ctx", "positions", "codegen"),
    Row(r"(.*_)?max_2d_position_embeddings", "positions", "layoutlm"),
    Row(r"(.*_)?seq_length", "positions", "fnet"),
    Row(r"(.*_)?context_length", "positions", "rwkv"),
    Row(r"(.*_)?num_position_embeddings", "positions", "qwen3_5"),
    Row(r"(.*_)?max_text_len", "positions", "grounding-dino"),
    Row(r"(.*_)?max_relative_position", "positions", "speecht5"),
    Row(r"(num_)?(local_|routed_|moe_num_)?experts", EXPERTS, "mixtral"),
    Row(r"n_routed_experts", EXPERTS, "deepseek_v2"),
    Row(r"index_topk", PICKED, "deepseek_v32"),
    Row(r"(.*_)?experts_per_tok", 2, "qwen2_moe"),
    Row(r"(.*_)?top_k", 2, "gemma4_unified_assistant"),
    Row(r"(.*_)?topk", 2, "longcat_flash"),
    Row(r"top_k_experts", 2, "gemma4_text", {"top_k_experts": 8}),
    Row(r"(.*_)?experts_per_token", 2, "kimi_linear"),
    Row(r"(.*_)?moe_k", 2, "ernie4_5_moe"),
    Row(r"n_group", 2, "deepseek_v3"),
    Row(r"num_expert_group", 2, "bailing_hybrid"),
    Row(r"n_groups", 2, "mamba2"),
    Row(r"topk_group", 1, "deepseek_v3"),
    Row(r"(\w+_)?sliding_window", WINDOW, "mistral"),
    Row(r"(\w+_)?attention_window", WINDOW, "longformer"),
    Row(r"(\w+_)?attention_window_size", WINDOW, "recurrent_gemma"),
    Row(r"(\w+_)?local_attention", WINDOW, "modernbert"),
    Row(r"(\w+_)?chunk_size", WINDOW, "mamba2"),
    Row(r"(\w+_)?chunk_length", WINDOW, "reformer"),
    Row(r"(mamba_)?(d_)?state(_size)?", 8, "mamba"),
    Row(r"ssm_state_size", 8, "nemotron_h"),
    Row(r"time_step_rank", 4, "mamba"),
    Row(r"mamba_dt_rank", 4, "jamba"),
    Row(r"laurel_rank", 4, "gemma3n_text"),
    Row(r".*(moe|expert)\w*(intermediate|ffn).*", EXPERT_FEED_FORWARD, "qwen2_moe"),
    Row(r"(.*_)?intermediate_size", FEED_FORWARD, "llama"),
    Row(r"(.*_)?ffn_dim", FEED_FORWARD, "opt"),
    Row(r"(.*_)?d_ff", FEED_FORWARD, "t5"),
    Row(r"(.*_)?n_inner", FEED_FORWARD, "gpt2", {"n_inner": 3072}),
    Row(r"(.*_)?ffn_hidden_size", FEED_FORWARD, "falcon"),
    Row(r"(.*_)?mlp_dim", FEED_FORWARD, "got_ocr2"),
    Row(r"(.*_)?intermediate_dim", FEED_FORWARD, "groupvit"),
    Row(r"(.*_)?feedforward_dim", FEED_FORWARD, "mask2former"),
    Row(r"(.*_)?feed_forward_size", FEED_FORWARD, "reformer"),
    Row(r"(.*_)?dim_feedforward", FEED_FORWARD, "mask2former"),
    Row(r"(.*_)?mlp_hidden_size", FEED_FORWARD, "edgetam_video"),
    Row(r"codebook_size", VOCABULARY, "bark"),  # codes are the tokens of decoders of audio
    Row(r"num_embeddings", VOCABULARY, "janus"),
    Row(r"num_codevectors_per_group", VOCABULARY, "wav2vec2"),
    Row(r"num_mel_bins", 16, "whisper"),
    Row(r"input_feat_per_channel", 16, "speech_to_text"),
    Row(r"feature_projection_input_dim", 16, "seamless_m4t"),
    Row(r"input_feat_size", 16, "gemma3n"),
    Row(r"model_in_dim", 16, "fastspeech2_conformer_with_hifigan"),  # bins that a vocoder takes
    Row(r"frames_per_clip", WINDOW, "vjepa2"),
    Row(r"num_queries", 8, "detr"),
    Row(r"num_query_tokens", 8, "blip-2"),
    Row(r"num_latents", 8, "perceiver"),
    Row(r"num_detection_tokens", 8, "yolos"),
    Row(r"\w*n_latents", 8, "idefics2"),
    Row(r"num_conv_pos_embeddings", 16, "wav2vec2"),
    Row(r"num_conv_pos_embedding_groups", 4, "wav2vec2"),
    Row(r"hidden_size_per_layer_input", 16, "gemma3n_text"),
    Row(r"block_size", "block", "big_bird"),
    Row(r"num_groups", 8, "bit"),
    Row(r"keypoint_decoder_dim", "as it is", "superpoint"),  # one for each pixel of a cell, and one for none
    Row(r"num_pos_feats", HIDDEN // 2, "sam"),  # one half for rows, one for columns
    Row(r"num_filters", 8, "bark"),
    Row(r"num_quantizers", 4, "mimi"),
    Row(r"quantization_dim", 2 * HIDDEN, "xcodec2"),  # what is heard and what is meant, side by side
    Row(r"num_codebooks", 4, "moshi"),
    Row(r"upsample_groups", HIDDEN, "mimi"),
    Row(r"patch_embed_hidden_size", "as it is", "pix2struct"),  # pixels of a patch
    Row(r".*hidden_size", "width", "blip"),
    *_as_they_are(
        image="pvt",
        img="tvp",
        patch="radio",
        window="doge",
        block="minimax_m3_vl",
        kernel="nystromformer",
        vocab="llama",
        spec="vits",
        frame="kyutai_speech_to_text",
        context="granite_speech",
        audio="gradium_phonon_tts",
        cache="omdet-turbo",
        label="perceiver",
    ),
    Row(r"input_(size|embedding_size)", "as it is", "phi4_multimodal"),
    Row(r"mask_(feature|time)_\w+", "as it is", "mask2former"),
    Row(r"embedding_size", "narrow", "electra"),
    Row(r"word_embed_proj_dim", "narrow", "opt", {"word_embed_proj_dim": 512}),
    Row(r"(.*_)?d_model", "width", "t5"),
    Row(r"(.*_)?n_embd", "width", "gpt2"),
    Row(r"(.*_)?dim", "width", "distilbert"),
    Row(r"(.*_)?proj_dims", "width", "gemma4_unified", {"vision_config": {"model_type": "gemma4_unified_vision", "output_proj_dims": 3840}}),
    Row(r"(.*_)?size", "width", "whisper"),
    Row(r"(.*_)?width", "width", "recurrent_gemma"),
    Row(r"(.*_)?channels?", "width", "beit"),
    Row(r"(.*_)?units", "width", "speecht5"),
    Row(r"(.*_)?bins", "width", "esmfold2"),
    Row(r"(.*_)?rank", "width", "neomme"),
    Row(r"(.*_)?features", "width", "vitpose"),
    Row(r"(.*_)?hidden_dimension", "width", "mimi"),
)

#: Of lists of whole numbers; one without a row here has the limit that a number of its name has. "stages" are widths
#: that step up from stage to stage, "inner stages" widths within these, which are divided by the same.
LISTS = Roles(
    Row(r"hidden_sizes", "stages", "convnext"),
    Row(r"encoder_hidden_sizes", "stages", "superpoint"),
    Row(r"embed_dims?", "stages", "cvt"),
    Row(r"embed_dim_per_stage", "stages", "sam2"),
    Row(r"neck_hidden_sizes", "stages", "dpt"),
    Row(r"backbone_channel_list", "stages", "sam2"),
    Row(r"(encoder_|decoder_)?in_channels", "stages", "rt_detr"),
    Row(r"stem_channels", "inner stages", "hgnet_v2"),
    Row(r"stage_(in|mid|out)_channels", "inner stages", "hgnet_v2"),
    Row(r"window_size_per_stage", 4, "sam2"),
    Row(r".*conv_dim.*", 32, "wav2vec2"),
    Row(r".*tdnn_dim.*", 32, "wav2vec2"),
    Row(r"downsample_channels", HIDDEN, "deepseek_ocr2"),  # the last are the width of what comes after
    Row(r"subsampling_conv_channels", "as it is", "gemma4_audio"),  # the first counts bins
    Row(r".*conv_channels?.*", 32, "gemma3n"),
)

#: Of what says something of layers. "stack": how many the model has; "count": how many another part has; "depths": a
#: count for each stage. "kinds": indices of layers of a kind; "taps": of layers whose output is used, each for itself,
#: "taps after embedding" where 0 is not the first layer but what comes before it. "first" and "last": so many layers at
#: that end are of a kind of their own. "sources": for each layer the one, itself or an earlier one, whose keys it takes. "period": every so many layers one is special; "listed period": one whose effect
#: a list with an entry per layer repeats, where there is such a list.
LAYERS = Roles(
    Row(r"num_hidden_layers", "stack", "qwen2"),
    Row(r"num_layers", "stack", "gpt_neo"),
    Row(r"n_layer", "stack", "gpt2"),
    Row(r"depth", "stack", "qwen2_5_vl"),
    Row(r"first_k_dense_replace", "first", "deepseek_v3"),
    Row(r"moe_layer_start_index", "first", "ernie4_5_moe", {"moe_layer_start_index": 3}),
    Row(r"num_dense_layers", "first", "lfm2_moe"),
    Row(r"max_window_layers", "first", "qwen2"),
    Row(r"num_kv_shared_layers", "last", "gemma3n_text"),
    Row(r"attn_layer_period", "listed period", "jamba"),
    Row(r"global_attn_every_n_layers", "listed period", "afmoe"),
    Row(r"decoder_sparse_step", "period", "switch_transformers"),
    Row(r"deepstack_visual_indexes", "taps", "qwen3_vl"),
    Row(r"intermediate_layers_indices", "taps", "mllama"),
    Row(r"backbone_out_indices", "taps", "dpt"),
    Row(r"out_indices( of the whole)?", "taps after embedding", "dinov2"),
    Row(r"kv_source_layers", "sources", "mistral_large4"),
    Row(r"cross_attention_layers", "kinds", "mllama"),
    Row(r"mlp_only_layers", "kinds", "flint"),
    Row(r"full_attn_idxs", "kinds", "lfm2"),
    Row(r"rope_scaling_layers", "kinds", "molmo2_text"),
    Row(r"global_attn_index(es)?", "kinds", "sam"),
    Row(r"fullatt_block_indexes", "kinds", "qwen2_5_vl"),
    Row(r"attn_layer_indices", "kinds", "bamba"),
    Row(r"moe_layers", "kinds", "llama4_text"),
    Row(r"hybrid_layer_ids", "kinds", "zamba2"),
    Row(r"depths", "depths", "swin"),
    Row(r"num_block_repeats", "depths", "efficientnet"),
    Row(r"blocks_per_stage", "depths", "sam2_hiera_det_model"),
    Row(r"num_feat_extract_layers", "as it is", "wav2vec2"),
    Row(r"iou_head_depth", "as it is", "sam"),
    Row(r"num_encoder_blocks", "as it is", "segformer"),
    Row(r".*adapter_layers", "as it is", "wav2vec2"),
    Row(r".*postnet_layers", "as it is", "speecht5"),
    Row(r"num_random_blocks", "as it is", "big_bird"),
    Row(r"(min|max)_depth", "as it is", "glpn"),
    Row(r"(.*_)?layers", "count", "t5"),
    Row(r"(.*_)?depth", "count", "idefics2"),
    Row(r"(.*_)?num_\w*blocks", "count", "phi4_multimodal"),
    Row(r"(.*_)?num_flows", "count", "vits"),
)
