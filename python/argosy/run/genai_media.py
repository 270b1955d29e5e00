"""Pictures and sounds for ONNX Runtime GenAI. Part of the worker's process: imports nothing of this package."""

from __future__ import annotations

from typing import Any

import numpy
import onnxruntime_genai

#: Types of the engine (genai_config.json) whose processor takes prompts as a list.
_LISTS = ("whisper",)


def by_engine(session: Any, request: dict[str, Any], prompt: str) -> tuple[Any, Any]:
    """The engine's processor, and what it makes of the files that the request names."""
    processor = session.model.create_multimodal_processor()
    given: dict[str, Any] = {}
    if files := request.get("images"):
        given["images"] = onnxruntime_genai.Images.open(*files)
    if files := request.get("audios"):
        given["audios"] = onnxruntime_genai.Audios.open(*files)
    return processor, processor([prompt] if session.config["type"] in _LISTS else prompt, **given)


def prepare(session: Any, request: dict[str, Any]) -> list[str]:
    """Writes what the engine's processor makes of a request to the file ``prepare``; returns the names."""
    _, tensors = by_engine(session, request, session.prompt(request))
    arrays = {name: numpy.array(tensors[name].as_numpy()) for name in tensors.keys()}  # noqa: SIM118 - not a mapping
    numpy.savez(request["prepare"], **arrays)
    return sorted(arrays)


def from_file(file: str) -> tuple[Any, dict[str, numpy.ndarray]]:
    """Inputs that others prepared. The arrays must live as long as the tensors, which are views of them."""
    with numpy.load(file, allow_pickle=False) as stored:
        arrays = {name: numpy.ascontiguousarray(stored[name]) for name in stored.files}
    arrays["input_ids"] = arrays["input_ids"].astype(numpy.int32)
    tensors = onnxruntime_genai.NamedTensors()
    for name, array in arrays.items():
        tensors[name] = array
    return tensors, arrays
