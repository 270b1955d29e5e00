"""Argosy exports Hugging Face Transformers models to the formats of inference engines.

Importing this package is cheap: what a name needs (the C++ core, torch, transformers) is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import Any

from .errors import ExportError

#: Where each public name lives.
_MODULES = {
    "AutoExportConfig": ".exporters",
    "AutoHfExporter": ".exporters",
    "Checkpoint": "._core",
    "DynamoConfig": ".exporters",
    "DynamoExporter": ".exporters",
    "ExecutorchConfig": ".exporters",
    "ExecutorchExporter": ".exporters",
    "ExecutorchProgram": ".exporters",
    "ExportConfigMixin": ".exporters",
    "ExportFormat": ".exporters",
    "HfExporter": ".exporters",
    "InputObserver": ".observer",
    "ONNXProgram": ".exporters",
    "OnnxConfig": ".exporters",
    "OnnxExporter": ".exporters",
    "TensorInfo": "._core",
    "VersionDriftWarning": ".exporters",
    "__version__": "._core",
    "apply_fx_node_fixes": ".exporters",
    "apply_fx_program_fixes": ".exporters",
    "apply_patches": ".exporters",
    "decompose_for_generation": ".exporters",
    "decompose_multimodal": ".exporters",
    "decompose_prefill_decode": ".exporters",
    "export": ".command",
    "get_leaf_tensors": ".exporters",
    "is_multimodal": ".exporters",
    "open_checkpoint": "._core",
    "prepare_for_export": ".exporters",
    "register_export_config": ".exporters",
    "register_export_input_preparer": ".exporters",
    "register_exporter": ".exporters",
    "register_fx_node_fix": ".exporters",
    "register_fx_program_fix": ".exporters",
    "register_patch": ".exporters",
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
