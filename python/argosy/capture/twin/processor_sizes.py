"""The size of the pictures that a model's own image processor makes."""

from __future__ import annotations

from functools import cache
from typing import Any

#: What most processors make, for models of which nobody says a size.
USUAL = (224, 224)
_FIELDS = ("size", "crop_size", "do_center_crop", "do_resize")


@cache
def processor_size(model_type: str) -> tuple[int, int]:
    """Height and width of pictures that the image processor of the type makes by default, else ``USUAL``. Where only the
    shorter edge is said, pictures are four to three."""
    for name in _processor_names(model_type):
        try:
            from transformers.models.auto.image_processing_auto import get_image_processor_class_from_name

            processor = get_image_processor_class_from_name(name)
            settings = {field: getattr(processor, field, None) for field in _FIELDS}
        except Exception:  # noqa: BLE001 - packages that processors need may be missing, in many ways
            continue
        return size_by_settings(settings) or USUAL
    return USUAL


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


def size_by_settings(settings: dict[str, Any]) -> tuple[int, int] | None:
    """What settings of a processor say; None if they say nothing."""
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
        height, width = (value.get(name) for name in names)
        if isinstance(height, int) and isinstance(width, int) and min(height, width) > 0:
            return height, width
    shorter, longer = value.get("shortest_edge"), value.get("longest_edge")
    if not isinstance(shorter, int) or shorter <= 0:
        return None
    if not isinstance(longer, int):
        return shorter, shorter
    return shorter, max(shorter, min(longer, shorter * 4 // 3))
