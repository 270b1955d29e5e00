"""Reading a model's configuration, and the part of it that a capture depends on."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from ..errors import ExportError

#: Fields that leave a capture's bytes alone, whatever their value: where the model came from, what wrote it down, and how its
#: checkpoint stores weights.
#: The command-line tool leaves out the same ones when it looks for a capture in the cache.
IGNORED_FIELDS = ("_name_or_path", "_commit_hash", "transformers_version", "quantization_config", "compression_config")

#: How the checkpoint stores the weights. Captures are those of the float model; weight plans follow it.
QUANTIZATION_FIELDS = ("quantization_config", "compression_config")


def read_configuration(folder: Path) -> dict[str, Any]:
    """``config.json`` of a model's folder."""
    path = folder / "config.json"
    if not path.is_file():
        raise ExportError(f"{folder} has no config.json", code="not-found",
                          hint="give the folder of a model as from_pretrained takes it")  # fmt: skip
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise ExportError(f"{path} is not JSON: {error}", code="corrupt-file") from error
    if not isinstance(document, dict):
        raise ExportError(f"{path} is not a JSON object", code="corrupt-file")
    return document


def canonical(configuration: dict[str, Any]) -> dict[str, Any]:
    """``configuration`` without what a capture does not depend on, at any depth, as strict JSON can hold it."""
    return {name: _strict(value) for name, value in sorted(configuration.items()) if name not in IGNORED_FIELDS}


def _strict(value: Any) -> Any:
    if isinstance(value, dict):
        return canonical(value)
    if isinstance(value, (list, tuple)):
        return [_strict(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        # As newer versions of transformers write it; older ones write a bare Infinity, which is no JSON.
        return {"__float__": "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"}
    return value


def load_config(folder: Path, *, trust_remote_code: bool = False) -> Any:
    """The configuration object of transformers for a folder, that of the float model if the checkpoint is quantised. Code of
    the folder runs only if ``trust_remote_code``."""
    from transformers import AutoConfig

    document = read_configuration(folder)
    if "auto_map" in document and not trust_remote_code:
        raise ExportError(f"{folder} has code of its own, which is not run unless asked for", code="untrusted-code",
                          hint="read its *.py files, then pass --trust-remote-code")  # fmt: skip
    try:
        return _of_floats(AutoConfig.from_pretrained(folder, local_files_only=True, trust_remote_code=trust_remote_code))
    except (ValueError, KeyError, OSError) as error:
        if (kind := _config_class(document)) is not None:
            return _of_floats(kind.from_pretrained(folder, local_files_only=True))
        raise ExportError(f"transformers does not know the configuration of {folder}: {_first_line(error)}",
                          code="unknown-model", hint="a newer transformers may know this model_type") from error  # fmt: skip


def quantization_settings(document: dict[str, Any]) -> dict[str, Any] | None:
    """What ``config.json`` says of how weights are stored: its own, or that of the part which has it; none for floats."""
    parts = [document, *(value for name, value in sorted(document.items()) if name.endswith("_config") and isinstance(value, dict))]  # fmt: skip
    for part in parts:
        for name in QUANTIZATION_FIELDS:
            if isinstance(settings := part.get(name), dict) and settings:
                return settings
    return None


def _of_floats(config: Any) -> Any:
    """``config`` without what its checkpoint's quantisation left in it."""
    for part in (config, *(getattr(config, name, None) for name in getattr(config, "sub_configs", {}))):
        for name in QUANTIZATION_FIELDS:
            if part is not None and name in vars(part):
                delattr(part, name)
    return config


def _config_class(document: dict[str, Any]) -> Any:
    """That of the model class which a configuration names: parts of larger models have types that no table lists."""
    import transformers

    for name in document.get("architectures") or ():
        kind = getattr(getattr(transformers, str(name), None), "config_class", None)
        if kind is not None and kind.model_type == document.get("model_type"):
            return kind
    return None


def set_dtype(config: Any, dtype: str) -> None:
    """Asks for a dtype of the whole model, as ``from_pretrained`` does; ``auto`` leaves the configuration's."""
    import torch

    if dtype == "auto":
        return
    config.dtype = getattr(torch, dtype)
    for name in getattr(config, "sub_configs", {}):
        if (part := getattr(config, name, None)) is not None:
            part.dtype = getattr(torch, dtype)


def _first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
