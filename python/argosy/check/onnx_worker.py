"""Opens ONNX models in ONNX Runtime. Part of the worker's process: imports nothing of this package."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

#: Names of ``onnx.TensorProto.DataType`` that weights may have, as torch calls them.
_FLOATS = {1: "float32", 10: "float16", 11: "float64", 16: "bfloat16"}
#: ``TensorProto.BFLOAT16``; numpy has no such dtype.
_BFLOAT16 = 16


def read_manifest(path: str) -> dict[str, Any]:
    """What an export says of itself: ``bundle.json`` beside the models of a folder, or what a model has of it."""
    import onnx

    file = Path(path).with_name("bundle.json")
    if file.exists():
        manifest = json.loads(file.read_text(encoding="utf-8"))
        if Path(path).name in manifest.get("files", ()):
            return manifest
    for each in onnx.load(path, load_external_data=False).metadata_props:
        if each.key == "argosy.manifest":
            return json.loads(each.value)
    raise ValueError(f"{path} does not say what it is: argosy export onnx did not write it")


def dtype_of_onnx(path: str) -> str:
    """The dtype of most weights, as ``float32``; weights in other files are not read. ``mixed16`` where inputs and outputs are
    float32, and only some nodes compute in float16."""
    import onnx

    model = onnx.load(path, load_external_data=False)
    if any(each.key == "argosy.mixed16" for each in model.metadata_props):
        return "mixed16"
    sizes: dict[str, int] = {}
    for tensor in model.graph.initializer:
        if text := _FLOATS.get(tensor.data_type):
            sizes[text] = sizes.get(text, 0) + math.prod(tensor.dims)
    return max(sizes, key=lambda text: sizes[text], default="float32")


def open_onnx(path: str) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    """The component that a model is, by its own word. Inputs and outputs have the names that they have in captures: in a
    model inputs are called as in the model's code, and an output that is called as an input has another name."""
    session = open_session(path)
    metadata = session.get_modelmeta().custom_metadata_map
    component = metadata.get("argosy.component")
    paths = _input_paths(json.loads(metadata.get("argosy.manifest", "{}")), component)
    runner = OnnxRunner(session)
    names = {f"{name}_output": name for name in runner.inputs if f"{name}_output" in runner.outputs}

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        given = {paths.get(name, name): tensor for name, tensor in inputs.items()}
        return {names.get(name, name): tensor for name, tensor in runner(given).items()}

    return {component or Path(path).stem: run}


def _input_paths(manifest: dict[str, Any], component: str | None) -> dict[str, str]:
    parts = [part for part in manifest.get("components", ()) if part["name"] == component]
    return {item["name"]: item["path"] for part in parts for item in part.get("inputs", ()) if "path" in item}


def open_session(model: str | bytes, threads: int = 0) -> Any:
    """A session on the CPU. ``threads`` 0 leaves their number to ONNX Runtime."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.intra_op_num_threads = threads
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


class OnnxRunner:
    """Runs a session on torch tensors: inputs by name to outputs by name."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.inputs = [each.name for each in session.get_inputs()]
        self.outputs = [each.name for each in session.get_outputs()]

    def __call__(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        if missing := [name for name in self.inputs if name not in inputs]:
            raise ValueError(f"the model also takes {', '.join(missing)}")
        if unknown := [name for name in inputs if name not in self.inputs]:
            raise ValueError(f"the model has no input {', '.join(unknown)}; it takes {', '.join(self.inputs)}")
        values = self.session.run_with_ort_values(None, {name: to_ort(inputs[name]) for name in self.inputs})
        return {name: from_ort(value) for name, value in zip(self.outputs, values, strict=True)}


def to_ort(tensor: Any) -> Any:
    """A tensor (or a number, which becomes one without dims) as ONNX Runtime takes it."""
    import onnxruntime
    import torch

    if not isinstance(tensor, torch.Tensor):
        tensor = torch.tensor(tensor)
    tensor = tensor.detach().cpu().contiguous()
    if tensor.dtype == torch.bfloat16:
        make = onnxruntime.OrtValue.ortvalue_from_numpy_with_onnx_type
        return make(tensor.view(torch.uint16).numpy(), _BFLOAT16)
    return onnxruntime.OrtValue.ortvalue_from_numpy(tensor.numpy())


def from_ort(value: Any) -> Any:
    """The tensor in a result; a copy."""
    import torch

    if value.element_type() == _BFLOAT16:
        return torch.utils.dlpack.from_dlpack(value._ortvalue.to_dlpack()).clone()
    return torch.from_numpy(value.numpy().copy())
