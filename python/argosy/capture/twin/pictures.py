"""Small pictures: image and patch sizes of a tree of configurations, kept consistent."""

from __future__ import annotations

import math
from typing import Any

#: A plain vision transformer sees this many patches a side, of this many pixels a side.
GRID = 8
PATCH = 4
#: Pictures of models that halve the resolution from stage to stage.
STAGED_IMAGE = 64
_STAGES = ("depths", "blocks_per_stage", "num_block_repeats")


def shrink_pictures(tree: dict[str, Any], nested: list[dict[str, Any]]) -> None:
    """Rewrites sizes of pictures in ``tree`` and in every configuration nested in it (``nested``, which includes it)."""
    scales: list[tuple[int, int]] = []  # old and new sizes of whole pictures
    grids: list[tuple[int, int]] = []  # old and new patches a side
    for config in nested:
        _shrink_one(config, scales, grids)
    if not scales:
        return
    old_image, new_image = scales[0]
    for config in nested:
        _shrink_dependent(config, old_image, new_image, grids)


def _side(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, (list, tuple)) and value and all(isinstance(v, int) for v in value):
        return value[0]
    return None


def _like(value: Any, side: int) -> Any:
    return side if isinstance(value, int) else [side] * len(value)


def _shrink_one(config: dict[str, Any], scales: list[tuple[int, int]], grids: list[tuple[int, int]]) -> None:
    stages = next((config[n] for n in _STAGES if isinstance(config.get(n), (list, tuple))), None)
    patch = _side(config.get("patch_size")) if stages is None else None
    plain = patch is not None and patch >= 8  # a vision transformer: one grid of patches from start to end
    new_patch = PATCH if plain else patch
    if plain:
        config["patch_size"] = _like(config["patch_size"], PATCH)
        if config.get("encoder_stride") == patch:
            config["encoder_stride"] = PATCH
    for name in ("image_size", "img_size", "input_size", "spec_size", "crop_size"):
        image = _side(config.get(name))
        if image is None or image <= STAGED_IMAGE or (name == "input_size" and patch is None):
            continue
        new = math.lcm(GRID * PATCH, _least_side(config)) if plain else STAGED_IMAGE
        config[name] = _like(config[name], new)
        scales.append((image, new))
        if patch is not None and new_patch is not None:
            grids.append((image // patch, new // new_patch))
    _shrink_window(config, stages, patch)


def _least_side(config: dict[str, Any]) -> int:
    """Sides of pictures are multiples of it: of the number of windows, and these of those in a row."""
    windows = config.get("num_windows")
    return windows * math.isqrt(windows) if isinstance(windows, int) and windows > 0 else 1


def _shrink_window(config: dict[str, Any], stages: Any, patch: int | None) -> None:
    window = config.get("window_size")
    if not isinstance(window, int):
        return
    if stages is not None:
        # the last stage must hold a window, or the model changes it on the way
        first = _side(config.get("patch_stride")) or _side(config.get("patch_size")) or 4
        config["window_size"] = min(window, max(1, STAGED_IMAGE // (first * 2 ** (len(stages) - 1))))
    elif patch is not None and patch >= 8 and window > 2 * patch:
        config["window_size"] = 4 * PATCH  # in pixels, as in Qwen2.5-VL
    elif patch is not None or window > 16:
        config["window_size"] = min(window, 4 if window <= 16 else 8)


def _shrink_dependent(config: dict[str, Any], old_image: int, new_image: int, grids: list[tuple[int, int]]) -> None:
    pinpoints = config.get("image_grid_pinpoints")
    if isinstance(pinpoints, list):
        config["image_grid_pinpoints"] = [
            [max(1, round(v / old_image)) * new_image for v in pair] for pair in pinpoints
        ]
    if isinstance(config.get("image_embedding_size"), int) and grids:
        config["image_embedding_size"] = grids[0][1]
    sizes = config.get("backbone_feature_sizes")
    if isinstance(sizes, list):
        old, new = grids[0] if grids else (old_image, new_image)  # those of a plain backbone are its grid, twice and half of it
        config["backbone_feature_sizes"] = [[v * new // old for v in pair] for pair in sizes]
    for name in (
        "mm_tokens_per_image",
        "image_seq_length",
        "num_image_tokens",
        "image_seq_len",
        "vision_soft_tokens_per_image",
    ):
        count = config.get(name)
        if not isinstance(count, int) or not grids:
            continue
        old_grid, new_grid = grids[0]
        pooled = max(1, round(old_grid / math.sqrt(count)))
        config[name] = max(1, new_grid // pooled) ** 2
