"""What the rules by name get wrong, one family at a time. The list is meant to shrink.

``prepare`` runs before the rules, ``adjust`` after them; both edit a configuration as a dictionary.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any


def prepare(tree: dict[str, Any]) -> None:
    """Changes that must come before the rules."""
    for rule in _BEFORE:
        rule(tree)


def adjust(tree: dict[str, Any]) -> None:
    """Changes that must come after the rules, outermost configuration first."""
    _walk(tree)


def _walk(config: dict[str, Any]) -> None:
    rule = _AFTER.get(config.get("model_type", ""))
    if rule is not None:
        rule(config)
    for value in config.values():
        if isinstance(value, dict) and "model_type" in value:
            _walk(value)


def _without_timm(tree: dict[str, Any]) -> None:
    """Backbones of the `timm` package become the ResNet of transformers where the package is missing."""
    if importlib.util.find_spec("timm") is not None:
        return
    backbone = tree.get("backbone_config")
    if tree.get("use_timm_backbone") or (isinstance(backbone, dict) and backbone.get("model_type") == "timm_backbone"):
        tree["use_timm_backbone"] = False
        tree["backbone"] = None
        tree["backbone_kwargs"] = None
        tree["backbone_config"] = {
            "model_type": "resnet",
            "embedding_size": 16,
            "hidden_sizes": [32, 64, 128, 256],
            "depths": [1, 1, 1, 1],
            "out_indices": [4],
        }


_BEFORE: tuple[Callable[[dict[str, Any]], None], ...] = (_without_timm,)


def _gpt_neo(config: dict[str, Any]) -> None:
    # the kinds of layers are run-length encoded; the list per layer is derived from them
    config["attention_types"] = [[list(config["attention_layers"]), 1]]


def _reformer(config: dict[str, Any]) -> None:
    # positions are the product of two axes whose widths add up to the model's
    config["axial_pos_shape"] = [8, 16]
    config["axial_pos_embds_dim"] = [16, config["hidden_size"] - 16]


_AFTER: dict[str, Callable[[dict[str, Any]], None]] = {
    "gpt_neo": _gpt_neo,
    "reformer": _reformer,
}
