"""The size of the pictures that a model's own image processor makes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

#: What most processors make, for models of which nobody says a size.
USUAL = (224, 224)


def processor_size(model_type: str, folder: Path | None = None) -> tuple[int, int]:
    """Height and width: as ``preprocessor_config.json`` in ``folder`` says, else as the image processor of the type makes
    pictures by default, else ``USUAL``. Where only the shorter edge is said, pictures are four to three."""
    if folder is not None and (folder / "preprocessor_config.json").is_file():
        try:
            found = _size(json.loads((folder / "preprocessor_config.json").read_text(encoding="utf-8")))
        except (OSError, ValueError):
            found = None
        if found is not None:
            return found
    return _default_size(model_type) or USUAL


@cache
def _default_size(model_type: str) -> tuple[int, int] | None:
    names = _processor_names(model_type)
    for name in names:
        try:
            from transformers.models.auto.image_processing_auto import get_image_processor_class_from_name

            processor = get_image_processor_class_from_name(name)
        except Exception:  # noqa: BLE001 - packages that processors need may be missing, in many ways
            continue
        fields = ("size", "crop_size", "do_center_crop", "do_resize")
        found = _size({field: getattr(processor, field, None) for field in fields})
        if found is not None:
            return found
    return None


def _processor_names(model_type: str) -> list[str]:
    """Image processors of a type, those that need the fewest packages first."""
    try:
        from transformers.models.auto.image_processing_auto import IMAGE_PROCESSOR_MAPPING_NAMES
    except ImportError:
        return []
    known = IMAGE_PROCESSOR_MAPPING_NAMES.get(model_type)
    if isinstance(known, dict):
        known = [known.get("pil"), *known.values()]
    elif isinstance(known, str):
        known = [known]
    return list(dict.fromkeys(name for name in known or () if isinstance(name, str)))


def _size(settings: dict[str, Any]) -> tuple[int, int] | None:
    crop = _pair(settings.get("crop_size"))
    if settings.get("do_center_crop") and crop is not None:
        return crop
    return None if settings.get("do_resize") is False else _pair(settings.get("size"))


def _pair(value: Any) -> tuple[int, int] | None:
    """A size in any of the ways in which processors say it."""
    if isinstance(value, int) and not isinstance(value, bool):
        return (value, value) if value > 0 else None
    if isinstance(value, (list, tuple)) and len(value) == 2:
        value = {"height": value[0], "width": value[1]}
    if not isinstance(value, dict):
        return None
    for names in (("height", "width"), ("max_height", "max_width")):
        sides = [value.get(name) for name in names]
        if all(isinstance(side, int) and side > 0 for side in sides):
            return sides[0], sides[1]
    shorter, longer = value.get("shortest_edge"), value.get("longest_edge")
    if not isinstance(shorter, int) or shorter <= 0:
        return None
    if not isinstance(longer, int):
        return shorter, shorter
    return shorter, max(shorter, min(longer, shorter * 4 // 3))
