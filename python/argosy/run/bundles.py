"""What a folder says of itself: which engine it is for, and what of."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import ExportError

#: Manifests are small; a larger file is none.
_LARGEST = 64 << 20


@dataclass(frozen=True)
class Bundle:
    folder: Path
    #: a name of ``RUNNERS``
    engine: str
    #: ``bundle.json``, as it describes the variant that is opened; empty for a folder that others wrote
    manifest: dict[str, Any] = field(default_factory=dict)
    #: of several in the folder; "": the one that the engine opens by itself
    variant: str = ""

    @property
    def has_chat_template(self) -> bool:
        if (self.folder / "chat_template.jinja").is_file():
            return True
        return bool(read_json(self.folder / "tokenizer_config.json").get("chat_template"))

    @property
    def adapters(self) -> dict[str, str]:
        """LoRA adapters that are not merged: files of the folder, by names."""
        listed = {str(each["name"]): str(each["file"]) for each in self.manifest.get("adapters", ())}
        return {name: file for name, file in listed.items() if Path(file).name == file}

    @property
    def graphs(self) -> list[Path]:
        """The models, the largest first, with the weights that are beside them."""
        if "variants" in self.manifest:
            found = [self.folder / graph["file"] for graph in self.manifest["graphs"]]
        else:
            found = [*self.folder.glob("*.onnx"), *self.folder.glob("onnx/*.onnx"), *self.folder.glob("*.pte")]
        return sorted(found, key=lambda file: (-_size(file), file.name))


def _size(file: Path) -> int:
    return sum(each.stat().st_size for each in file.parent.glob(f"{file.name}*"))


def open_bundle(folder: str | Path, variant: str = "") -> Bundle:
    """The engine is the manifest's; of a folder without one, that whose files it has. ``variant``: of several in the folder; by
    default the one that the engine opens by itself."""
    folder = Path(folder)
    if not folder.is_dir():
        raise ExportError(f"{folder} is no folder", code="not-found", hint="give a folder that argosy export wrote for an engine")
    folder, variant = find_variant(folder, variant)
    manifest = read_json(folder / "bundle.json")
    if variant:
        names = [each["name"] for each in manifest.get("variants", ())]
        if variant not in names:
            raise ExportError(f"{folder} has no variant {variant!r}", code="invalid-input",
                              hint=f"it has {', '.join(names)}" if names else "it has only one; leave --variant out")  # fmt: skip
        manifest = {**manifest, **manifest["variants"][names.index(variant)]}
    engine = manifest.get("engine")
    if isinstance(engine, dict):
        engine = engine.get("name")
    if not engine:
        engine = detect_engine(folder)
    if not isinstance(engine, str) or not engine:
        raise ExportError(f"{folder} does not say which engine it is for: it has neither bundle.json nor an engine's own files",
                          code="invalid-input", hint="give a folder that argosy export onnx --for ENGINE wrote")  # fmt: skip
    return Bundle(folder, engine, manifest, variant)


def find_variant(path: Path, variant: str) -> tuple[Path, str]:
    """The folder that has a variant, and its name if that folder has others, too."""
    folders = read_json(path / "bundle.json").get("folders", ()) if path.is_dir() else ()
    if not folders:
        return path, variant
    if variant in folders:
        return path / variant, ""
    raise ExportError(f"{path} has a folder for each variant: {', '.join(folders)}", code="invalid-input",
                      hint=f"give one of them: {path / folders[0]}")  # fmt: skip


def is_for_an_engine(path: Path) -> bool:
    """Whether this is a bundle whose graphs are as an engine wants them: neither components nor methods that the check calls
    one by one."""
    return path.is_dir() and read_json(path / "bundle.json").get("engine", "plain") not in ("plain", "executorch")


def detect_engine(folder: Path) -> str:
    """By the files of a folder that has no manifest; "" if nothing is known of it."""
    if (folder / "genai_config.json").is_file():
        return "genai"
    if any(folder.glob("onnx/*.onnx")):
        return "transformersjs"
    if (folder / "config.json").is_file() and any((folder / name).is_file() for name in ("model.onnx", "encoder_model.onnx")):
        return "optimum"
    if (folder / "model.pte").is_file():
        return "executorch"
    return "plain" if (folder / "argosy.json").is_file() else ""


def read_json(file: Path) -> dict[str, Any]:
    """An object; empty if there is no such file. What is no JSON object is an error."""
    if not file.is_file():
        return {}
    if file.stat().st_size > _LARGEST:
        raise ExportError(f"{file} is larger than such files are", code="corrupt-file", hint="export it again")
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ExportError(f"{file} is no JSON: {error}", code="corrupt-file", hint="export it again") from error
    if not isinstance(found, dict):
        raise ExportError(f"{file} is no JSON object", code="corrupt-file", hint="export it again")
    return found
