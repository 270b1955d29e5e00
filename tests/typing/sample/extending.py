"""A format, a configuration, patches and ops of a project's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, assert_type

import torch
from argosy import register_decomposition, register_onnx_op, register_weight_scheme
from argosy.exporters import (
    ExportConfigMixin,
    ExportFormat,
    HfExporter,
    apply_fx_node_fixes,
    apply_fx_program_fixes,
    apply_patches,
    get_hf_exporter,
    patch_attribute,
    patch_attributes,
    register_export_config,
    register_export_input_preparer,
    register_exporter,
    register_fx_node_fix,
    register_fx_program_fix,
    register_patch,
)


@register_export_config("listing")
@dataclass
class ListingConfig(ExportConfigMixin):
    export_format: ExportFormat | str = "listing"
    indent: int = 0


@register_exporter("listing")
class ListingExporter(HfExporter):
    """Writes the names of a model's weights."""

    config_class = ListingConfig

    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: MutableMapping[str, Any],
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
    ) -> str:
        settings = ListingConfig.accept(config)
        assert_type(settings, ListingConfig)
        return "\n".join(" " * settings.indent + name for name, _ in model.named_parameters())


@register_patch("listing", "pathlib.Path.exists", reason="files are made up", versions="torch>=2.0")
def always(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda path: True


@register_export_input_preparer("pixel_values")
def add_sizes(model: torch.nn.Module, inputs: MutableMapping[str, Any]) -> None:
    inputs["image_sizes"] = [tuple(inputs["pixel_values"].shape[-2:])]


@register_fx_node_fix("listing")
def drop_copies(graph_module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    return False


@register_fx_program_fix("listing")
def rename(program: torch.export.ExportedProgram) -> None:
    print(program)


@register_decomposition("listing::twice", reason="an op of the project")
def twice(x: torch.Tensor) -> torch.Tensor:
    return x + x


register_onnx_op("listing::thrice", domain="com.example", name="Thrice")


@register_weight_scheme("thirds", bits=4, block=64, zero_points=False)
def thirds(blocks: Any) -> tuple[Any, Any]:
    return (blocks * 3).round().clip(-8, 7) + 8, abs(blocks).max(2) * 0 + 1 / 3


def write(model: torch.nn.Module, program: torch.export.ExportedProgram, path: Path) -> None:
    exporter = get_hf_exporter({"export_format": "listing"})
    assert_type(exporter, HfExporter)
    apply_fx_program_fixes("listing", program)
    apply_fx_node_fixes("listing", program.graph_module)
    with apply_patches("listing", model) as patches:
        print([patch.path for patch in patches])
    with patch_attribute(model, "training", lambda original: False):
        path.write_text(str(exporter.export(model, {})))
    with patch_attributes([(model, "training", lambda original: True)]):
        print(path.read_text())
