"""A picture or a sound in a bundle's engine beside eager: greedy tokens, compared."""

from __future__ import annotations

import math
import struct
import wave
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..run.bundles import open_bundle
from ..run.runners import BundleProcess


NEW_TOKENS = 32
#: Tensors of the engine's that are no arguments of models.
_COUNTS = ("num_image_tokens",)
#: Prompts, by the engine's type.
_PROMPTS = {
    "whisper": "<|startoftranscript|>",
    "gemma3": "<s>look <start_of_image> what is it",
    "qwen2_5_vl": "<s>look <|vision_start|><|vision_end|> what is it",
    "qwen3_vl": "<s>look <|vision_start|><|vision_end|> what is it",
    "qwen3_5": "<s>look <|vision_start|><|vision_end|> what is it",
    "qwen3_5_moe": "<s>look <|vision_start|><|vision_end|> what is it",
}


@dataclass
class MediaRun:
    model_type: str
    model_class: str = ""
    #: "engine" or "given"
    prepared_by: str = ""
    #: new tokens, up to and with one that ends the text
    engine: list[int] = field(default_factory=list)
    eager: list[int] = field(default_factory=list)
    #: largest difference of what the engine's processor makes of a file from what transformers' makes of it
    difference: float | None = None
    refusal: str = ""

    @property
    def distinct(self) -> int:
        return len(set(self.eager))

    @property
    def ok(self) -> bool:
        return not self.refusal and self.engine == self.eager and bool(self.eager)


def compare(model: Any, twin: Path, bundle: Path, scratch: Path, count: int = NEW_TOKENS) -> MediaRun:
    """Greedy tokens of a bundle and of the eager model that it was made of, whose folder is ``twin``. Raises ``RunError`` with
    what the engine says."""
    run = MediaRun(model.config.model_type, type(model).__name__)
    opened = open_bundle(bundle)
    with BundleProcess(opened, on_cpu=True) as process:
        if any((bundle / name).is_file() for name in ("genai_image_processor.json", "genai_audio_processor.json")):
            run.prepared_by = "engine"
            request = {"text": _prompt(bundle), "max_new_tokens": count, **media_files(bundle, scratch)}
            prepared = scratch / "prepared.npz"
            process.ask({**request, "prepare": str(prepared)})
            arguments, run.difference = eager_arguments(model, twin, request, prepared)
            run.engine = process.ask(request)["tokens"][0]
        else:
            run.prepared_by = "given"
            arguments = given_arguments(model)
            tensors = write_tensors(model, arguments, scratch / "given.npz")
            run.engine = process.ask({"tensors": str(tensors), "max_new_tokens": count})["tokens"][0]
    run.eager = eager_tokens(model, arguments, count)
    return run


def _prompt(bundle: Path) -> str:
    import json

    return _PROMPTS[json.loads((bundle / "genai_config.json").read_text(encoding="utf-8"))["model"]["type"]]


def media_files(bundle: Path, folder: Path) -> dict[str, list[str]]:
    if (bundle / "genai_audio_processor.json").is_file():
        return {"audios": [str(write_sound(folder / "sound.wav"))]}
    return {"images": [str(write_picture(folder / "picture.png"))]}


def write_picture(file: Path, width: int = 80, height: int = 96) -> Path:
    """A PNG with stripes, a gradient and squares; not square itself, so that swapped sides show."""
    rows = b"".join(
        b"\0" + bytes(each for x in range(width)
                      for each in (3 * x % 256, (2 * y + x) % 256, 200 * ((x // 16 + y // 16) % 2)))
        for y in range(height)
    )  # fmt: skip

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    file.write_bytes(
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")
    )
    return file


def write_sound(file: Path, seconds: int = 3, rate: int = 16000) -> Path:
    """A tone that rises, and another that comes and goes."""
    samples = []
    for i in range(seconds * rate):
        time = i / rate
        value = 0.4 * math.sin(2 * math.pi * (220 + 180 * time) * time)
        value += 0.2 * math.sin(2 * math.pi * 900 * time) * (math.sin(6 * time) > 0)
        samples.append(int(32767 * value))
    with wave.open(str(file), "wb") as output:
        output.setnchannels(1)
        output.setsampwidth(2)
        output.setframerate(rate)
        output.writeframes(struct.pack(f"<{len(samples)}h", *samples))
    return file


def eager_arguments(model: Any, twin: Path, request: dict[str, Any], prepared: Path) -> tuple[dict[str, Any], float]:
    """What transformers' own processor makes of the files, with the engine's token ids; and how far the engine's is from it."""
    import numpy
    import torch

    with numpy.load(prepared) as stored:
        engine = {name: stored[name] for name in stored.files}
    ids = torch.tensor(engine["input_ids"]).long()
    media, name = _sound(twin, request) if request.get("audios") else _picture(twin, request)
    theirs = engine["audio_features" if request.get("audios") else "pixel_values"]
    difference = float(numpy.abs(theirs - media[name]).max()) if theirs.shape == media[name].shape else math.inf
    arguments = {key: torch.tensor(numpy.asarray(value)) for key, value in media.items()}
    if model.config.is_encoder_decoder:
        return {**arguments, "decoder_input_ids": ids}, difference
    return {**arguments, **_text_arguments(model, ids)}, difference


def _text_arguments(model: Any, ids: Any) -> dict[str, Any]:
    import inspect

    import torch

    arguments = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
    token = next(value for each in ("image_token_id", "image_token_index")
                 if (value := getattr(model.config, each, None)) is not None)  # fmt: skip
    for name in ("token_type_ids", "mm_token_type_ids"):
        if name in inspect.signature(model.forward).parameters:
            arguments[name] = (ids == token).long()
    return arguments


def _picture(twin: Path, request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    from PIL import Image
    from transformers import AutoImageProcessor

    processor = AutoImageProcessor.from_pretrained(twin, local_files_only=True)
    made = processor([Image.open(file).convert("RGB") for file in request["images"]], return_tensors="np")
    return {key: made[key] for key in ("pixel_values", "image_grid_thw") if key in made}, "pixel_values"


def _sound(twin: Path, request: dict[str, Any]) -> tuple[dict[str, Any], str]:
    import numpy
    from transformers import AutoFeatureExtractor

    extractor = AutoFeatureExtractor.from_pretrained(twin, local_files_only=True)
    with wave.open(request["audios"][0]) as sound:
        samples = numpy.frombuffer(sound.readframes(sound.getnframes()), "<i2").astype(numpy.float32) / 32768
        rate = sound.getframerate()
    return {
        "input_features": extractor(samples, sampling_rate=rate, return_tensors="np")["input_features"]
    }, "input_features"


def given_arguments(model: Any) -> dict[str, Any]:
    """One row of the inputs that twins get anyway."""
    from ..capture.twin import Sizes, sample_inputs

    return sample_inputs(model, Sizes(batch=1))


def write_tensors(model: Any, arguments: dict[str, Any], file: Path) -> Path:
    import numpy

    token = next((value for each in ("image_token_id", "image_token_index")
                  if (value := getattr(model.config, each, None)) is not None), None)  # fmt: skip
    arrays = {
        name: value.numpy() for name, value in arguments.items() if name not in ("attention_mask", "position_ids")
    }
    if token is not None and "input_ids" in arguments:
        arrays["num_image_tokens"] = numpy.array([int((arguments["input_ids"] == token).sum())])
    numpy.savez(file, **arrays)
    return file


def eager_tokens(model: Any, arguments: dict[str, Any], count: int) -> list[int]:
    import torch

    from ..check.tokens import up_to_end

    ends = model.generation_config.eos_token_id
    with torch.no_grad():
        made = model.generate(**arguments, max_new_tokens=count, do_sample=False, num_beams=1, repetition_penalty=1.0)
    new = made[0].tolist()
    if not model.config.is_encoder_decoder:  # Whisper leaves the prompt out
        new = new[arguments["input_ids"].shape[1] :]
    # The engine takes 0 for the end of models that have none.
    return up_to_end(new, set(ends if isinstance(ends, list) else [0 if ends is None else ends]))
