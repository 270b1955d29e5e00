"""A small configuration of the same architecture."""

from __future__ import annotations

import copy
import re
import traceback
from collections.abc import Iterator
from typing import Any

from .layers import lend_taps, shrink_layers, take_taps_back
from .pictures import shrink_pictures
from .roles import LAYERS, NUMBERS
from .rotary import complete_sections, shrink_rotary
from .special import adjust, prepare
from .tokens import TokenIds, is_vocabulary, shrink_tokens
from .widths import POSITIONS, Widths, attention_names, hidden_size, shrink_joined, shrink_sums, shrink_widths

#: A configuration whose numbers are all at most these is small already.
_SMALL = {
    "width": 128,
    "feed_forward": 512,
    "layers": 4,
    "vocabulary": 1024,
    "image": 64,
    "filters": 8,
}
_LABELS = 5
#: What bends scores and logits (final_logit_softcapping, logits_soft_cap). Those of a twin are of size one: a cap of 30
#: is not felt there, and nobody would notice that it is missing.
_SOFT_CAP = re.compile(r"soft_?cap")
_CAP = 1.0
#: What norms add to a variance. Beside variances of size one, those of real models are lost in rounding.
_EPSILON = re.compile(r"(^|_)(eps|epsilon)$")
_LEAST_EPSILON = 1e-3


def shrink(config: Any, *, reach: int = POSITIONS) -> Any:
    """A configuration of the same class with small widths and few layers: every kind of layer is kept, the ratio of
    query to key heads as far as small numbers allow; windows, caps, epsilons and rotary limits come within reach of short
    samples. Tables of positions have ``reach`` rows at most. A configuration that is small already comes back equal.
    ``config`` itself is left alone."""
    tree = copy.deepcopy(config.to_dict())
    if is_small(tree):
        return copy.deepcopy(config)
    small = _validated(type(config), shrink_tree(tree, reach=reach), tree)
    small.architectures = copy.copy(getattr(config, "architectures", None))
    return small


def _validated(cls: type, small: dict[str, Any], whole: dict[str, Any]) -> Any:
    """The configuration ``small``, which was made of ``whole``. Where its class finds something wrong with it, what the class
    names, else what it looks at, keeps the value that it had, until nothing is wrong."""
    while True:
        try:
            return cls.from_dict(copy.deepcopy(small))  # type: ignore[attr-defined]
        except Exception as error:
            if not any(_restore(small, whole, names) for names in (_words(error), _attributes(error))):
                raise


def _restore(small: dict[str, Any], whole: dict[str, Any], names: set[str]) -> bool:
    """Whether there was something to restore."""
    found = False
    for config, before in zip(nested_configs(small), nested_configs(whole), strict=False):
        for name in names & config.keys() & before.keys():
            if config[name] != before[name] and not isinstance(config[name], dict):
                config[name], found = before[name], True
    return found


def _words(error: BaseException) -> set[str]:
    return set(re.findall(r"\w+", str(error)))


def _attributes(error: BaseException) -> set[str]:
    """Those that the code uses which raised the error."""
    while error.__cause__ is not None:
        error = error.__cause__
    *_, (frame, _) = traceback.walk_tb(error.__traceback__)
    return set(frame.f_code.co_names)


def is_small(tree: dict[str, Any]) -> bool:
    """Whether a model of this configuration (as a dictionary) is cheap to build and run as it is."""
    return all(
        value <= _SMALL[role]
        for config in nested_configs(tree)
        for name, value in _flat(config)
        if (role := _role(name)) is not None
    ) and all(config.get("model_type") != "timm_backbone" for config in nested_configs(tree))


def _flat(config: dict[str, Any]) -> Iterator[tuple[str, int]]:
    """Whole numbers of one configuration, also those in lists."""
    for name, value in config.items():
        for item in value if isinstance(value, (list, tuple)) else (value,):
            if isinstance(item, int) and not isinstance(item, bool):
                yield name, item


def _role(name: str) -> str | None:
    if is_vocabulary(name):
        return "vocabulary"
    if name in (
        "hidden_size",
        "d_model",
        "n_embd",
        "dim",
        "embed_dim",
        "hidden_sizes",
        "embed_dims",
        "encoder_hidden_dim",
        "hidden_dim",
    ):
        return "width"
    if name in ("intermediate_size", "d_ff", "ffn_dim", "encoder_ffn_dim", "decoder_ffn_dim", "n_inner"):
        return "feed_forward"
    if name in (
        "num_hidden_layers",
        "n_layer",
        "n_layers",
        "num_layers",
        "depth",
        "encoder_layers",
        "decoder_layers",
        "depths",
    ):
        return "layers"
    return {"image_size": "image", "num_filters": "filters"}.get(name)


def shrink_tree(tree: dict[str, Any], *, reach: int = POSITIONS) -> dict[str, Any]:
    """The same as ``shrink`` for a configuration as a dictionary; the result is a new dictionary."""
    tree = copy.deepcopy(tree)
    prepare(tree)
    configs = nested_configs(tree)
    for config in configs:
        _complete(config)
        complete_sections(config)
    widths = Widths(configs)
    ids = TokenIds(configs)
    shrink_pictures(tree, configs)
    lent = lend_taps(configs)
    before = copy.deepcopy(configs)
    for config, old in zip(configs, before, strict=True):
        shrink_layers(config)
        shrink_widths(config, widths, reach)
        shrink_tokens(config, ids)
        shrink_rotary(config, old, _head_dim(config), _head_dim(old))
        _shrink_labels(config)
        for name, value in config.items():
            if isinstance(value, float) and _SOFT_CAP.search(name):
                config[name] = min(value, _CAP)
            elif isinstance(value, float) and _EPSILON.search(name):
                config[name] = max(value, _LEAST_EPSILON)
        for name in ("quantization_config", "stage_names", "_out_features", "out_features", "transformers_version"):
            config.pop(name, None)  # follow from the rest, or belong to the weights
        for name in ("dtype", "torch_dtype"):
            if config.get(name) is not None:
                config[name] = "float32"
    shrink_joined(configs, before)
    for config, old in zip(configs, before, strict=True):
        shrink_sums(config, old)
    take_taps_back(lent)
    adjust(tree)
    for config, old in zip(configs, before, strict=True):
        for name in _derived(config):
            if config.get(name) == old.get(name):
                config.pop(name, None)  # by widths and layers that are others now
    return tree


def _derived(config: dict[str, Any]) -> set[str]:
    """What the class of a configuration works out from its fields, where no rule knows a meaning of the name."""
    from transformers import CONFIG_MAPPING

    if config.get("model_type") not in CONFIG_MAPPING:
        return set()
    cls: Any = CONFIG_MAPPING[config["model_type"]]
    fields = getattr(cls, "__dataclass_fields__", None)
    if fields is None:
        return set()  # transformers 4
    known = {*fields, *cls.attribute_map}
    names = {name for name, value in config.items() if type(value) is int and name not in known}
    names = {name for name in names if not any(table.of(name) for table in (NUMBERS, LAYERS))}
    try:
        return {name for name in names if hasattr(cls(), name)} if names else set()
    except Exception:  # noqa: BLE001 - some defaults are no configuration
        return set()


def _complete(config: dict[str, Any]) -> None:
    """Writes out what a missing value stands for in every configuration that leaves it out."""
    heads, width = config.get("num_attention_heads"), hidden_size(config)
    if not isinstance(heads, int) or width is None:
        return
    if "num_key_value_heads" in config and config["num_key_value_heads"] is None:
        config["num_key_value_heads"] = heads
    if "head_dim" in config and config["head_dim"] is None:
        config["head_dim"] = width // heads


def nested_configs(tree: dict[str, Any]) -> list[dict[str, Any]]:
    """``tree`` and every configuration inside it, outermost first."""
    found = [tree]
    for name, value in tree.items():
        if isinstance(value, dict) and ("model_type" in value or name.endswith("_config")):
            found += nested_configs(value)
    return found


def _head_dim(config: dict[str, Any]) -> int | None:
    for name in ("qk_rope_head_dim", "head_dim", "kv_channels"):
        if isinstance(config.get(name), int):
            return config[name]
    heads = next((config[n] for n, _ in attention_names(config)), None)
    width = hidden_size(config)
    return width // heads if width and heads else None


def _shrink_labels(config: dict[str, Any]) -> None:
    labels = config.get("id2label")
    if isinstance(labels, dict) and len(labels) > _LABELS:
        kept = dict(list(labels.items())[:_LABELS])
        config["id2label"] = kept
        config["label2id"] = {label: int(id_) for id_, label in kept.items()}
    if isinstance(config.get("num_labels"), int):
        config["num_labels"] = min(config["num_labels"], _LABELS)
