"""What Argosy is told: the entry point of the package."""

from dataclasses import dataclass

import torch
from argosy import (
    DynamoConfig,
    DynamoExporter,
    register_decomposition,
    register_export_config,
    register_exporter,
    register_onnx_op,
    register_patch,
)

from . import models  # noqa: F401 - transformers knows the model type from now on


@register_decomposition("sample::gate", reason="every engine has a sigmoid")
def gate(x, scale=2.0):
    return torch.sigmoid(x) * x * scale


register_onnx_op("sample::mix", domain="com.example", name="Mix", version=2, reason="an engine of ours has this op")


@register_patch("dynamo", "argosy_sample.models.require_finite", reason="values cannot be traced")
def trust_values(original):
    return lambda x: None


@register_export_config("ops")
@dataclass
class OpsConfig(DynamoConfig):
    export_format: str = "ops"


@register_exporter("ops")
class OpsExporter(DynamoExporter):
    """The names of the ops that a model calls."""

    def export(self, model, sample_inputs, config=None):
        program = super().export(model, sample_inputs, config)
        return sorted({str(node.target) for node in program.graph.nodes if node.op == "call_function"})
