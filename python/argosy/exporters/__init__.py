"""Exporters of live models, with the names that users of ``transformers.exporters`` know."""

from __future__ import annotations

import importlib
from typing import Any

#: Where each name lives. Imported when first used: some need torch, and configurations do not.
_MODULES = {
    "AUTO_EXPORTER_MAPPING": ".auto",
    "AUTO_EXPORT_CONFIG_MAPPING": ".auto",
    "AutoExportConfig": ".auto",
    "AutoHfExporter": ".auto",
    "DynamoConfig": ".configs",
    "DynamoExporter": ".exporter_dynamo",
    "ExecutorchConfig": ".configs",
    "ExecutorchExporter": ".exporter_executorch",
    "ExecutorchProgram": ".executorch_program",
    "ExportConfigMixin": ".configs",
    "ExportFormat": ".configs",
    "HfExporter": ".base",
    "ONNXProgram": ".onnx_program",
    "OnnxConfig": ".configs",
    "OnnxExporter": ".exporter_onnx",
    "VersionDriftWarning": ".versions",
    "apply_fx_node_fixes": ".utils",
    "apply_fx_program_fixes": ".utils",
    "apply_patches": ".utils",
    "decompose_for_generation": ".utils",
    "decompose_multimodal": ".utils",
    "decompose_prefill_decode": ".utils",
    "get_auto_dynamic_shapes": ".exporter_dynamo",
    "get_hf_exporter": ".auto",
    "get_leaf_tensors": ".utils",
    "is_multimodal": ".utils",
    "patch_attribute": ".utils",
    "patch_attributes": ".utils",
    "patch_forward_signature": ".exporter_dynamo",
    "patch_model_config": ".live",
    "prepare_for_export": ".utils",
    "register_additional_serialization_functions": ".live",
    "register_cache_pytrees_for_model": ".pytrees",
    "register_export_config": ".auto",
    "register_export_input_preparer": ".utils",
    "register_exporter": ".auto",
    "register_fx_node_fix": ".utils",
    "register_fx_program_fix": ".utils",
    "register_patch": ".utils",
    "reset_model_state": ".exporter_dynamo",
    "torch_export_patches": ".live",
}

__all__ = sorted(_MODULES)


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_MODULES[name], __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
