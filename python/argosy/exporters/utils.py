"""The utilities under the module name that users of ``transformers.exporters.utils`` know. Their code is elsewhere."""

from __future__ import annotations

from ..patching import (
    apply_fx_node_fixes,
    apply_fx_program_fixes,
    apply_patches,
    patch_attribute,
    patch_attributes,
    register_fx_node_fix,
    register_fx_program_fix,
    register_patch,
)
from .decompose import decompose_for_generation, decompose_multimodal, decompose_prefill_decode, is_multimodal
from .prepare import prepare_for_export, register_export_input_preparer
from .tensors import get_leaf_tensors

__all__ = [
    "apply_fx_node_fixes",
    "apply_fx_program_fixes",
    "apply_patches",
    "decompose_for_generation",
    "decompose_multimodal",
    "decompose_prefill_decode",
    "get_leaf_tensors",
    "is_multimodal",
    "patch_attribute",
    "patch_attributes",
    "prepare_for_export",
    "register_export_input_preparer",
    "register_fx_node_fix",
    "register_fx_program_fix",
    "register_patch",
]
