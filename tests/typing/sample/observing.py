"""What a model is called with, and exports by torch's own tools."""

from __future__ import annotations

from typing import Any, assert_type

import torch
from argosy import DynamoExporter, InputObserver, OnnxConfig, OnnxExporter, ONNXProgram
from argosy.exporters import (
    decompose_for_generation,
    decompose_multimodal,
    decompose_prefill_decode,
    get_auto_dynamic_shapes,
    get_leaf_tensors,
    is_multimodal,
    patch_forward_signature,
    patch_model_config,
    prepare_for_export,
    register_additional_serialization_functions,
    register_cache_pytrees_for_model,
    reset_model_state,
    torch_export_patches,
)


def observe(model: torch.nn.Module, prompts: list[dict[str, Any]]) -> ONNXProgram:
    observer = InputObserver(missing={"pixel_values": None})
    for prompt in prompts:
        with observer(model, store_n_calls=2) as watching:
            assert_type(watching, InputObserver)
            model(**prompt)
    for name, dims in observer.infer_dimensions(set_batch_dimension_for=True).items():
        print(name, {axis: str(dim) for axis, dim in dims.items()})
    DynamoExporter().export(model, observer, {"dynamic": True})
    program = OnnxExporter().export(model, observer, OnnxConfig(dynamic=True))
    observer.check_discrepancies(program)
    return program


def components(model: torch.nn.Module, inputs: dict[str, Any]) -> list[str]:
    found = decompose_multimodal(model, inputs) if is_multimodal(model) else decompose_prefill_decode(model, inputs)
    found = {**found, **decompose_for_generation(model, inputs)}
    for name, (module, arguments) in found.items():
        print(name, type(module).__name__, {path: tensor.shape for path, tensor in get_leaf_tensors(arguments).items()})
    return sorted(found)


def trace(model: torch.nn.Module, inputs: dict[str, Any]) -> torch.export.ExportedProgram:
    register_cache_pytrees_for_model(model)
    model, given, flags = prepare_for_export(model, inputs)
    shapes = get_auto_dynamic_shapes(given)
    assert_type(shapes, dict[str, Any])
    with register_additional_serialization_functions(), torch_export_patches(patch_transformers=True):
        with patch_model_config(model, flags), patch_forward_signature(model, given):
            program = torch.export.export(model, (), kwargs=dict(given), dynamic_shapes=shapes)
    reset_model_state(model)
    return program
