"""Models to files: what a project that ships models does with the package."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, assert_type

import argosy
import torch
from argosy import (
    AUTO_EXPORT_CONFIG_MAPPING,
    AUTO_EXPORTER_MAPPING,
    AutoExportConfig,
    AutoHfExporter,
    DynamoConfig,
    DynamoExporter,
    ExecutorchConfig,
    ExecutorchExporter,
    ExecutorchProgram,
    ExportError,
    ExportFormat,
    OnnxConfig,
    OnnxExporter,
    ONNXProgram,
    TensorInfo,
    VersionDriftWarning,
)


def export_checkpoint(model: str, folder: Path) -> Path | None:
    """By the command; None if it was refused."""

    def show(values: dict[str, Any]) -> None:
        print(f"argosy {argosy.__version__}: {values.get('stage')}")

    try:
        return argosy.export(model, "onnx", folder / "bundle", engine="genai", quantize="int4", progress=show)
    except ExportError as error:
        print(error.code, error.message, error.hint, error.node or "", error.location or "", sep="\n")
        return None


def largest(path: Path, count: int = 3) -> list[TensorInfo]:
    checkpoint = argosy.open_checkpoint(path)
    assert_type(checkpoint, argosy.Checkpoint)
    found = sorted(checkpoint.tensors, key=lambda tensor: tensor.bytes, reverse=True)
    print(checkpoint.total_bytes, [tensor.shape for tensor in found], checkpoint.metadata.get("format"))
    return found[:count]


def export_live(model: torch.nn.Module, inputs: dict[str, Any], folder: Path) -> None:
    warnings.simplefilter("error", VersionDriftWarning)
    DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True, check=True))
    config = OnnxConfig(dynamic=True, opset_version=21, output_path=folder / "model.onnx")
    program = OnnxExporter().export(model, inputs, config)
    assert_type(program, ONNXProgram)
    assert_type(program.input_names, list[str])
    small = ExecutorchExporter().export(model, inputs, {"dynamic": True, "max_sizes": {"batch": 4}})
    assert_type(small, ExecutorchProgram)
    small.save(folder / "model.pte")
    print(small.arenas, small.notes, program.notes)


def export_by_name(model: torch.nn.Module, inputs: dict[str, Any], wanted: Mapping[str, Any]) -> Any:
    """The format is in a file of settings."""
    config = AutoExportConfig.from_dict(wanted)
    assert config.export_format in (ExportFormat.DYNAMO, ExportFormat.ONNX, ExportFormat.EXECUTORCH)
    assert config.export_format in AUTO_EXPORTER_MAPPING and config.export_format in AUTO_EXPORT_CONFIG_MAPPING
    return AutoHfExporter.from_config(config).export(model, inputs, config)


def export_parts(model: torch.nn.Module, inputs: dict[str, Any], folder: Path) -> list[str]:
    config = ExecutorchConfig(backend="portable", dynamic=True)
    parts = ExecutorchExporter().export_for_generation(model, inputs, config)
    for name, part in parts.items():
        part.save(folder / f"{name}.pte")
    return sorted(parts)
