"""What the pages take for granted: models and files under the names that their blocks use."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from page_run import PROGRAM, REPOSITORY

DECODER = REPOSITORY / "tests/fixtures/trained-decoder"


def save_twin(model_type: str, folder: Path) -> Path:
    """A small random model as a folder of the Hub has it."""
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import build, save, shrink

    return save(build(shrink(CONFIG_MAPPING[model_type]())), folder)


def save_adapter(folder: Path, seed: int) -> None:
    """A random LoRA adapter of the decoder, as PEFT writes it."""
    import torch
    from safetensors import safe_open
    from safetensors.torch import save_file

    generator = torch.Generator().manual_seed(seed)
    tensors = {}
    with safe_open(DECODER / "model.safetensors", "pt") as file:
        for name in file.keys():  # noqa: SIM118  # it is no dict
            if name.endswith(("q_proj.weight", "v_proj.weight")):
                rows, columns = file.get_slice(name).get_shape()
                layer = f"base_model.model.{name.removesuffix('.weight')}"
                tensors[f"{layer}.lora_A.weight"] = torch.randn(4, columns, generator=generator) * 0.02
                tensors[f"{layer}.lora_B.weight"] = torch.randn(rows, 4, generator=generator) * 0.02
    folder.mkdir()
    save_file(tensors, folder / "adapter_model.safetensors")
    (folder / "adapter_config.json").write_text('{"peft_type": "LORA", "r": 4, "lora_alpha": 8, "bias": "none"}')


def export(environment: dict[str, str], *arguments: object) -> None:
    command = [str(part) for part in (PROGRAM, "export", *arguments, "--check", "off")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def prepare(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Fills the folder in which a page's blocks run."""
    (folder / "tests/fixtures").mkdir(parents=True)
    if page.parent.as_posix() == "docs/tutorials":
        # These start in a clone, and copy the model from there.
        (folder / "tests/fixtures/trained-decoder").symlink_to(DECODER)
        return
    shutil.copytree(DECODER, folder / "model")
    (folder / "tests/fixtures/trained-decoder").symlink_to(folder / "model")
    match page.as_posix():
        case "docs/how-to/export-pt2.md":
            shutil.copytree(DECODER, folder / "smol")
            export(environment, "pt2", "--model", save_twin("t5", folder / "t5"), "-o", folder / "t5.pt2")
        case "docs/how-to/quantize.md" | "docs/how-to/executorch.md":
            (folder / "text.txt").write_text("def add(a, b):\n    return a + b\n" * 8)
        case "README.md":
            (folder / "jobs.jsonl").write_text('{"model": "model", "options": {"for": "genai"}}\n')
        case "docs/how-to/quantized-checkpoints.md":
            (folder / "base").symlink_to(folder / "model")
            for seed, name in enumerate(("lora-poet", "lora-clerk")):
                save_adapter(folder / name, seed)
        case "docs/how-to/transformersjs.md":
            twin = save_twin("bert", folder / "minilm")
            export(environment, "onnx", "--model", twin, "--for", "transformersjs", "-o", folder / "models/minilm")
        case "examples/scale/README.md":
            (folder / "examples").symlink_to(REPOSITORY / "examples")
        case "examples/executorch/README.md":
            (folder / "examples").symlink_to(REPOSITORY / "examples")
