"""Exporters of live models, with the names that users of ``transformers.exporters`` know."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The same names once more, for type checkers.
    from .auto import AUTO_EXPORTER_MAPPING as AUTO_EXPORTER_MAPPING
    from .auto import AUTO_EXPORT_CONFIG_MAPPING as AUTO_EXPORT_CONFIG_MAPPING
    from .auto import AutoExportConfig as AutoExportConfig
    from .auto import AutoHfExporter as AutoHfExporter
    from .auto import get_hf_exporter as get_hf_exporter
    from .auto import register_export_config as register_export_config
    from .auto import register_exporter as register_exporter
    from .base import HfExporter as HfExporter
    from .configs import DynamoConfig as DynamoConfig
    from .configs import ExecutorchConfig as ExecutorchConfig
    from .configs import ExportConfigMixin as ExportConfigMixin
    from .configs import ExportFormat as ExportFormat
    from .configs import OnnxConfig as OnnxConfig
    from .executorch_program import ExecutorchProgram as ExecutorchProgram
    from .exporter_dynamo import DynamoExporter as DynamoExporter
    from .exporter_dynamo import get_auto_dynamic_shapes as get_auto_dynamic_shapes
    from .exporter_dynamo import patch_forward_signature as patch_forward_signature
    from .exporter_dynamo import reset_model_state as reset_model_state
    from .exporter_executorch import ExecutorchExporter as ExecutorchExporter
    from .exporter_onnx import OnnxExporter as OnnxExporter
    from .live import patch_model_config as patch_model_config
    from .live import register_additional_serialization_functions as register_additional_serialization_functions
    from .live import torch_export_patches as torch_export_patches
    from .onnx_program import ONNXProgram as ONNXProgram
    from .pytrees import register_cache_pytrees_for_model as register_cache_pytrees_for_model
    from .utils import apply_fx_node_fixes as apply_fx_node_fixes
    from .utils import apply_fx_program_fixes as apply_fx_program_fixes
    from .utils import apply_patches as apply_patches
    from .utils import decompose_for_generation as decompose_for_generation
    from .utils import decompose_multimodal as decompose_multimodal
    from .utils import decompose_prefill_decode as decompose_prefill_decode
    from .utils import get_leaf_tensors as get_leaf_tensors
    from .utils import is_multimodal as is_multimodal
    from .utils import patch_attribute as patch_attribute
    from .utils import patch_attributes as patch_attributes
    from .utils import prepare_for_export as prepare_for_export
    from .utils import register_export_input_preparer as register_export_input_preparer
    from .utils import register_fx_node_fix as register_fx_node_fix
    from .utils import register_fx_program_fix as register_fx_program_fix
    from .utils import register_patch as register_patch
    from .versions import VersionDriftWarning as VersionDriftWarning

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
