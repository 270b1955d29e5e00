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


def export(environment: dict[str, str], *arguments: object) -> None:
    command = [str(part) for part in (PROGRAM, "export", *arguments, "--check", "off")]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def prepare(page: Path, folder: Path, environment: dict[str, str]) -> None:
    """Fills the folder in which a page's blocks run."""
    shutil.copytree(DECODER, folder / "model")
    (folder / "tests/fixtures").mkdir(parents=True)
    (folder / "tests/fixtures/trained-decoder").symlink_to(folder / "model")
    match page.as_posix():
        case "docs/how-to/export-pt2.md":
            shutil.copytree(DECODER, folder / "smol")
            export(environment, "pt2", "--model", save_twin("t5", folder / "t5"), "-o", folder / "t5.pt2")
        case "docs/how-to/quantize.md":
            (folder / "text.txt").write_text("def add(a, b):\n    return a + b\n" * 8)
        case "docs/how-to/transformersjs.md":
            twin = save_twin("bert", folder / "minilm")
            export(environment, "onnx", "--model", twin, "--for", "transformersjs", "-o", folder / "models/minilm")
        case "examples/executorch/README.md":
            (folder / "examples").symlink_to(REPOSITORY / "examples")
