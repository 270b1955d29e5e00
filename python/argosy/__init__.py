"""Argosy exports Hugging Face Transformers models to the formats of inference engines.

Importing this package is cheap: what a name needs (the C++ core, torch, transformers) is imported when the name is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from . import exporters
from .errors import ExportError

if TYPE_CHECKING:
    # The same names once more, for type checkers.
    from ._core import Checkpoint as Checkpoint
    from ._core import TensorInfo as TensorInfo
    from ._core import open_checkpoint as open_checkpoint
    from .command import export as export
    from .exporters import AUTO_EXPORTER_MAPPING as AUTO_EXPORTER_MAPPING
    from .exporters import AUTO_EXPORT_CONFIG_MAPPING as AUTO_EXPORT_CONFIG_MAPPING
    from .exporters import AutoExportConfig as AutoExportConfig
    from .exporters import AutoHfExporter as AutoHfExporter
    from .exporters import DynamoConfig as DynamoConfig
    from .exporters import DynamoExporter as DynamoExporter
    from .exporters import ExecutorchConfig as ExecutorchConfig
    from .exporters import ExecutorchExporter as ExecutorchExporter
    from .exporters import ExecutorchProgram as ExecutorchProgram
    from .exporters import ExportConfigMixin as ExportConfigMixin
    from .exporters import ExportFormat as ExportFormat
    from .exporters import HfExporter as HfExporter
    from .exporters import ONNXProgram as ONNXProgram
    from .exporters import OnnxConfig as OnnxConfig
    from .exporters import OnnxExporter as OnnxExporter
    from .exporters import VersionDriftWarning as VersionDriftWarning
    from .exporters import apply_fx_node_fixes as apply_fx_node_fixes
    from .exporters import apply_fx_program_fixes as apply_fx_program_fixes
    from .exporters import apply_patches as apply_patches
    from .exporters import decompose_for_generation as decompose_for_generation
    from .exporters import decompose_multimodal as decompose_multimodal
    from .exporters import decompose_prefill_decode as decompose_prefill_decode
    from .exporters import get_auto_dynamic_shapes as get_auto_dynamic_shapes
    from .exporters import get_hf_exporter as get_hf_exporter
    from .exporters import get_leaf_tensors as get_leaf_tensors
    from .exporters import is_multimodal as is_multimodal
    from .exporters import patch_attribute as patch_attribute
    from .exporters import patch_attributes as patch_attributes
    from .exporters import patch_forward_signature as patch_forward_signature
    from .exporters import patch_model_config as patch_model_config
    from .exporters import prepare_for_export as prepare_for_export
    from .exporters import register_additional_serialization_functions as register_additional_serialization_functions
    from .exporters import register_cache_pytrees_for_model as register_cache_pytrees_for_model
    from .exporters import register_export_config as register_export_config
    from .exporters import register_export_input_preparer as register_export_input_preparer
    from .exporters import register_exporter as register_exporter
    from .exporters import register_fx_node_fix as register_fx_node_fix
    from .exporters import register_fx_program_fix as register_fx_program_fix
    from .exporters import register_patch as register_patch
    from .exporters import reset_model_state as reset_model_state
    from .exporters import torch_export_patches as torch_export_patches
    from .observer import InputObserver as InputObserver
    from .op_rules import register_decomposition as register_decomposition
    from .op_rules import register_onnx_op as register_onnx_op
    from .weight_schemes import register_weight_scheme as register_weight_scheme

    #: The version of the package.
    __version__: str

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
    "register_weight_scheme": ".weight_schemes",
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
