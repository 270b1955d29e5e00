"""Pictures for bundles whose engine has no processor for their architecture: transformers prepares them."""

from __future__ import annotations

from pathlib import Path

from ..errors import ExportError
from .bundles import Bundle, read_json

#: What processors give besides pictures; the engine makes these itself.
_ENGINES_OWN = ("attention_mask", "token_type_ids", "mm_token_type_ids", "position_ids")


def wants_given_media(bundle: Bundle) -> bool:
    """Whether the bundle is one of models that see, without the file that tells the engine how to prepare pictures."""
    if bundle.engine != "genai":
        return False
    vision = read_json(bundle.folder / "genai_config.json").get("model", {}).get("vision")
    if not isinstance(vision, dict):
        return False
    return not (bundle.folder / str(vision.get("config_filename", "processor_config.json"))).is_file()


def write_given_media(bundle: Bundle, text: str, chat: bool, images: list[Path], output: Path, system: str = "") -> Path:
    """Writes the inputs of a prompt with pictures as the engine's ``set_inputs`` takes them (.npz)."""
    try:
        import numpy
        from PIL import Image
        from transformers import AutoProcessor
    except ImportError as error:
        raise ExportError(f"the engine has no processor for this model's pictures, and {error.name} is not there",
                          code="not-found", hint="pip install transformers pillow") from error  # fmt: skip
    try:
        processor = AutoProcessor.from_pretrained(bundle.folder, local_files_only=True)
        if chat:
            content = [*({"type": "image"} for _ in images), {"type": "text", "text": text}]
            before = [{"role": "system", "content": [{"type": "text", "text": system}]}] if system else []
            text = processor.apply_chat_template([*before, {"role": "user", "content": content}], add_generation_prompt=True)
        made = processor(images=[Image.open(file).convert("RGB") for file in images], text=text, return_tensors="np")
    except Exception as error:  # noqa: BLE001 - processors are others' code
        raise ExportError(f"transformers cannot prepare the picture: {error}", code="invalid-input",
                          hint="the README of the bundle shows which inputs it takes") from error  # fmt: skip
    token = read_json(bundle.folder / "genai_config.json")["model"].get("image_token_id")
    arrays = {name: value for name, value in made.items() if name not in _ENGINES_OWN}
    numpy.savez(output, num_image_tokens=numpy.array([int((made["input_ids"] == token).sum())]), **arrays)
    return output
