"""Argosy exports Hugging Face Transformers models to the formats of inference engines.

Importing this package is cheap: what a name needs (the C++ core, torch, transformers) is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from . import exporters
from .errors import ExportError

#: Where each public name lives. All names of ``exporters`` are public.
_MODULES = {
    **dict.fromkeys(exporters.__all__, ".exporters"),
    "Checkpoint": "._core",
    "InputObserver": ".observer",
    "TensorInfo": "._core",
    "__version__": "._core",
    "export": ".command",
    "open_checkpoint": "._core",
    "register_decomposition": ".op_rules",
    "register_onnx_op": ".op_rules",
}

__all__ = ["ExportError", *sorted(_MODULES)]


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
