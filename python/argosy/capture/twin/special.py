"""What the rules by name get wrong, one family at a time. The list is meant to shrink.

``prepare`` runs before the rules, ``adjust`` after them; both edit a configuration as a dictionary.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from .pictures import GRID

Rule = Callable[[dict[str, Any]], None]


def prepare(tree: dict[str, Any]) -> None:
    """Changes that must come before the rules, outermost configuration first."""
    _apply(tree, _BEFORE)


def adjust(tree: dict[str, Any]) -> None:
    """Changes that must come after the rules, outermost configuration first."""
    _apply(tree, _AFTER)


def _apply(config: dict[str, Any], rules: dict[str, Rule]) -> None:
    rule = rules.get(config.get("model_type", ""))
    if rule is not None:
        rule(config)
    if rules is _BEFORE:
        _without_timm(config)
        _without_kernels(config)
        if "vae_std" in config:
            config["vae_std"] = 0.0  # features are drawn at random around a mean
    else:
        _segments_by_stages(config)
        if "projector_patch_to_query_dict" in config:  # how many queries look at a picture of so many patches
            config["projector_patch_to_query_dict"] = {str(GRID * GRID): 8}
    for value in list(config.values()):
        if isinstance(value, dict) and "model_type" in value:
            _apply(value, rules)


def _without_timm(config: dict[str, Any]) -> None:
    """Backbones of the `timm` package become the ResNet of transformers where the package is missing."""
    backbone = config.get("backbone_config")
    named = isinstance(backbone, dict) and backbone.get("model_type") == "timm_backbone"
    if importlib.util.find_spec("timm") is not None or not (named or config.get("use_timm_backbone")):
        return
    config["use_timm_backbone"] = False
    config["backbone"] = config["backbone_kwargs"] = None
    taps = (backbone or {}).get("out_indices") or [4]
    config["backbone_config"] = {
        "model_type": "resnet",
        "embedding_size": 16,
        "hidden_sizes": [32, 64, 96, 128],
        "depths": [1, 1, 1, 1],
        "out_indices": taps,
    }


def _without_kernels(config: dict[str, Any]) -> None:
    """State-space layers fall back to plain PyTorch; in transformers 4 they must be told so."""
    if config.get("use_mamba_kernels") and importlib.util.find_spec("mamba_ssm") is None:
        config["use_mamba_kernels"] = False


def _quiet(config: dict[str, Any]) -> None:
    # outputs are drawn at random around a mean; a twin gives the mean, so that two calls agree
    config["noise_scale"] = config["noise_scale_duration"] = 0.0


_BEFORE: dict[str, Rule] = {"vits": _quiet}


def _gpt_neo(config: dict[str, Any]) -> None:
    # the kinds of layers are run-length encoded; the list per layer is derived from them
    config["attention_types"] = [[list(config["attention_layers"]), 1]]


def _reformer(config: dict[str, Any]) -> None:
    # positions are the product of two axes whose widths add up to the model's
    config["axial_pos_shape"] = [8, 16]
    config["axial_pos_embds_dim"] = [16, config["hidden_size"] - 16]


def _zamba(config: dict[str, Any]) -> None:
    # the layers with attention share it, which needs two of them
    config["layers_block_type"] = ["linear_attention", "hybrid", "linear_attention", "hybrid"]
    config["num_hidden_layers"] = 4


def _audio_of_voxtral(config: dict[str, Any]) -> None:
    # four frames are joined into one by a view of the encoder's output as rows of this width
    config["intermediate_size"] = 4 * config["hidden_size"]


def _efficientnet(config: dict[str, Any]) -> None:
    # widths and depths are multiplied by coefficients; the last width is 1280 times the first of them
    config.update(width_coefficient=0.25, depth_coefficient=1.0, hidden_dim=320)


def _six_parts(config: dict[str, Any]) -> None:
    # the width is split into six parts for the corners and extents of boxes
    config["hidden_size"] = 96


def _layoutlmv3(config: dict[str, Any]) -> None:
    # four coordinates and two extents, joined
    config["coordinate_size"], config["shape_size"] = 12, 8


def _encodec(config: dict[str, Any]) -> None:
    # one quantiser for each step of bandwidth: two steps tell them apart
    config["target_bandwidths"] = list(config["target_bandwidths"])[:2]
    config["codebook_dim"] = config["hidden_size"]


def _segments_by_stages(config: dict[str, Any]) -> None:
    """The strides of a backbone with stages (4, 8, 16) decide the sizes of everything after it."""
    side, vision, prompt = 128, config.get("vision_config") or {}, config.get("prompt_encoder_config")
    if prompt is None or "blocks_per_stage" not in (vision.get("backbone_config") or {}):
        return
    if "image_size" in config:
        config["image_size"] = side
    prompt["image_size"], prompt["patch_size"] = side, 16
    vision["backbone_feature_sizes"] = [[side // stride, side // stride] for stride in (4, 8, 16)]
    backbone = vision["backbone_config"]
    backbone["image_size"] = [side, side]
    backbone["blocks_per_stage"], backbone["global_attention_blocks"] = [1, 1, 2, 1], [3]


def _clap(config: dict[str, Any]) -> None:
    # the last stage must have as many rows as strips are stacked in the picture
    config["num_mel_bins"] = config["spec_size"] // 2


def _mllama(config: dict[str, Any]) -> None:
    # the last output and those of the layers between are joined
    config["vision_output_dim"] = config["hidden_size"] * (1 + len(config["intermediate_layers_indices"]))


def _vitpose(config: dict[str, Any]) -> None:
    # two pixels are added on every side: patches must be wider, or these make patches of their own
    config["patch_size"], config["image_size"] = [8, 8], [64, 32]


_AFTER: dict[str, Rule] = {
    "clap_audio_model": _clap,
    "efficientnet": _efficientnet,
    "encodec": _encodec,
    "gpt_neo": _gpt_neo,
    "layoutlmv3": _layoutlmv3,
    "lilt": _six_parts,
    "mllama_vision_model": _mllama,
    "reformer": _reformer,
    "vitpose_backbone": _vitpose,
    "voxtral_encoder": _audio_of_voxtral,
    "zamba": _zamba,
}
