"""Reads a capture back as ``torch.export`` programs, to run them beside the eager model."""

from __future__ import annotations

import json
import os
import zipfile
from dataclasses import dataclass
from typing import Any

import torch
from safetensors.torch import load as load_safetensors
from torch._export.serde import schema
from torch._export.serde.serialize import ExportedProgramDeserializer, _dict_to_dataclass
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind


@dataclass
class ReadGraph:
    """A component of a capture with weights attached; call it with inputs by name."""

    name: str
    program: ExportedProgram
    interface: dict[str, Any]
    weights: dict[str, torch.Tensor]
    constants: dict[str, torch.Tensor]

    def __call__(self, inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        """Runs the graph as it is, without torch's guards: they repeat what was true of the traced sizes."""
        arguments = []
        for spec in self.program.graph_signature.input_specs:
            if spec.kind is InputKind.USER_INPUT:
                arguments.append(inputs[spec.arg.name])
            elif spec.target in self.weights:
                arguments.append(self.weights[spec.target])
            else:
                arguments.append(self.constants.get(f"{self.name}/{spec.target}", self.constants.get(spec.target)))
        with torch.no_grad():
            results = torch.fx.Interpreter(self.program.graph_module).run(*arguments, enable_io_processing=False)
        results = list(results.values()) if isinstance(results, dict) else list(results)
        count = len(self.program.graph_signature.output_specs) - len(self.interface["outputs"])
        names = [output["name"] for output in self.interface["outputs"]]
        return dict(zip(names, results[count:], strict=True))


def read_capture(path: str | os.PathLike, weights: dict[str, torch.Tensor]) -> dict[str, ReadGraph]:
    """The components of a capture with ``weights`` (a state dict) attached. Only for captures of one's own making: torch's
    deserialiser is not meant for hostile files, the C++ reader is."""
    graphs = {}
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("capture.json"))
        names = archive.namelist()
        constants = load_safetensors(archive.read("constants.safetensors")) if "constants.safetensors" in names else {}
        for component in manifest["components"]:
            document = json.loads(archive.read(component["graph"]))
            program = _deserialize(document, component["name"], weights, constants)
            graphs[component["name"]] = ReadGraph(component["name"], program, component, weights, constants)
    return graphs


def _deserialize(document: dict, name: str, weights: dict, constants: dict) -> ExportedProgram:
    serialized = _dict_to_dataclass(schema.ExportedProgram, document)
    signature = serialized.graph_module.signature
    state, own = {}, {}
    for spec in signature.input_specs:
        for kind, field in (
            ("parameter", "parameter_name"),
            ("buffer", "buffer_name"),
            ("tensor_constant", "tensor_constant_name"),
        ):
            if spec.type != kind:
                continue
            target = getattr(spec.value, field)
            if target in weights:
                value = weights[target]
                state[target] = torch.nn.Parameter(value, requires_grad=False) if kind == "parameter" else value
            else:
                own[target] = constants.get(f"{name}/{target}", constants.get(target))
    return ExportedProgramDeserializer({"aten": 10}).deserialize(serialized, state, own, None)
