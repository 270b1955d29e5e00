"""A twin as a folder, as if it came from the Hub."""

from __future__ import annotations

import inspect
import itertools
import json
from pathlib import Path
from typing import Any

from .image_inputs import channels, image_size
from .request import Request, Sizes
from .text_inputs import text_vocabulary
from .tokenizer import make_tokenizer

#: Attributes of configurations that image processors and processors share with them.
_SHARED = (
    "patch_size",
    "temporal_patch_size",
    "spatial_merge_size",
    "vision_feature_select_strategy",
    "image_seq_length",
)


def save(model: Any, folder: str | Path) -> Path:
    """Writes ``model`` to ``folder``: configuration, generation settings, safetensors weights and, as far as the model
    takes text, images or audio, ``tokenizer.json`` with a chat template, ``preprocessor_config.json`` and
    ``processor_config.json``. Returns the folder."""
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    model.save_pretrained(folder)
    request = Request(model, Sizes(), seed=0)
    if _takes_text(request):
        chats = model.can_generate() and not getattr(model.config, "is_encoder_decoder", False)
        make_tokenizer(model.config, text_vocabulary(request), chats=chats).save_pretrained(folder)
    preprocessor = _image_processor(request) or _feature_extractor(request)
    processor = _table_entry("processing_auto", "PROCESSOR_MAPPING_NAMES", model.config.model_type)
    if processor is not None:
        shared = {name: value for name in _SHARED if isinstance(value := request.find(name), (int, str))}
        if (tokens := request.find("mm_tokens_per_image")) is not None:
            shared.setdefault("image_seq_length", tokens)
        _write(folder / "processor_config.json", {"processor_class": processor, **shared})
        if preprocessor is not None:
            preprocessor["processor_class"] = processor
    if preprocessor is not None:
        _write(folder / "preprocessor_config.json", preprocessor)
    return folder


def _takes_text(request: Request) -> bool:
    return request.takes("input_ids") or request.takes("decoder_input_ids") or "CTC" in type(request.model).__name__


def _write(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2, sort_keys=True) + "\n")


def _table_entry(module: str, table: str, model_type: str) -> str | None:
    """The name of a class in one of transformers' auto tables."""
    import importlib

    names = getattr(importlib.import_module(f"transformers.models.auto.{module}"), table, {})
    entry = names.get(model_type)
    if isinstance(entry, dict):  # one class for each backend
        entry = entry.get("torchvision") or next(iter(entry.values()), None)
    if isinstance(entry, (list, tuple)):
        entry = next((name for name in entry if name), None)
    return entry if isinstance(entry, str) else None


def _image_processor(request: Request) -> dict[str, Any] | None:
    """Settings of the image processor, written out by hand: the class itself needs packages for pictures."""
    if not any(request.takes(name) for name in ("pixel_values", "flattened_patches", "image_pixel_values")):
        return None
    name = _table_entry("image_processing_auto", "IMAGE_PROCESSOR_MAPPING_NAMES", request.config.model_type)
    if name is None:
        return None
    height, width = image_size(request)
    colours = channels(request)
    settings = {
        "image_processor_type": name,
        "do_rescale": True,
        "do_normalize": True,
        "image_mean": [0.5] * colours,
        "image_std": [0.5] * colours,
        "do_resize": True,
    }
    merge = request.find("spatial_merge_size")
    if merge is not None:
        side = request.find("patch_size") * merge
        temporal = request.find("temporal_patch_size", default=1)
        patches = {"patch_size": request.find("patch_size"), "merge_size": merge, "temporal_patch_size": temporal}
        # the limits go by these names in image processors that keep the picture's proportions
        return settings | patches | {"min_pixels": side * side, "max_pixels": 64 * side * side}
    if "CLIP" in name or "Llava" in name:  # the class would tell by its defaults, but cannot be imported (see above)
        crop = {"do_center_crop": True, "crop_size": {"height": height, "width": width}}
        return settings | crop | {"size": {"shortest_edge": min(height, width)}}
    return settings | {"size": {"height": height, "width": width}}


def _feature_extractor(request: Request) -> dict[str, Any] | None:
    """Settings of the feature extractor: the class's own, at the sizes of the model."""
    import transformers

    if not any(request.takes(name) for name in ("input_features", "input_values", "audio_input_features")):
        return None
    name = _table_entry("feature_extraction_auto", "FEATURE_EXTRACTOR_MAPPING_NAMES", request.config.model_type)
    if name is None or not hasattr(transformers, name):
        return None
    settings: dict[str, Any] = {}
    bins = request.find("num_mel_bins", "input_feat_per_channel")
    if bins is not None:
        settings = {"feature_size": bins, "num_mel_bins": bins}
    positions = request.find("max_source_positions")
    takes = inspect.signature(getattr(transformers, name)).parameters
    if "chunk_length" in takes and "hop_length" in takes and isinstance(positions, int):
        # sounds of one length: as many seconds as are whole steps for each position, which has two
        seconds = next(count for count in itertools.count(1) if count * 16000 % (2 * positions) == 0)
        settings = {"feature_size": bins, "chunk_length": seconds, "hop_length": seconds * 16000 // (2 * positions)}
    extractor = getattr(transformers, name)(**settings)
    return json.loads(extractor.to_json_string())
