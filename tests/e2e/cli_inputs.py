"""Small files of every kind that the command line reads."""

from __future__ import annotations

import json
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch


class Head(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.norm = torch.nn.LayerNorm(8)
        self.proj = torch.nn.Linear(8, 4, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.proj(torch.nn.functional.gelu(self.norm(x)))


class Model(torch.nn.Module):
    """Has a named dynamic dim, a tied weight and a buffer that is written in place."""

    def __init__(self) -> None:
        super().__init__()
        self.head = Head()
        self.tail = Head()
        self.tail.proj.weight = self.head.proj.weight
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return self.head(x) + self.tail(x)


def export_model(path: Path) -> None:
    torch.manual_seed(0)
    rows = torch.export.Dim("rows", min=2, max=64)
    program = torch.export.export(Model(), (torch.randn(4, 8),), dynamic_shapes={"x": {0: rows}})
    torch.export.save(program, path)


def change_graph(source: Path, target: Path, change: Callable[[str], str]) -> None:
    """Copies an archive with the text of its graph changed."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for info in old.infolist():
            data = old.read(info)
            if info.filename.endswith("models/model.json"):
                changed = change(data.decode())
                assert changed.encode() != data
                data = changed.encode()
            new.writestr(info.filename, data)


def write_safetensors(path: Path, tensors: dict[str, tuple[str, list[int], int]], truncated: int = 0) -> None:
    """Tensors as name -> (dtype, shape, bytes), all zero; the last `truncated` bytes are left out."""
    header, offset = {}, 0
    for name, (dtype, shape, size) in tensors.items():
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        file.truncate(8 + len(text) + offset - truncated)


def write_sharded(folder: Path, shards: int, tensors_per_shard: int, side: int, truncated_shard: int = -1) -> None:
    """A folder of shards of bf16 matrices with an index. Sparse: takes next to no disk."""
    folder.mkdir(parents=True, exist_ok=True)
    weight_map, size = {}, side * side * 2
    for shard in range(shards):
        file = f"model-{shard + 1:05}-of-{shards:05}.safetensors"
        names = [f"model.layers.{shard}.experts.{i}.weight" for i in range(tensors_per_shard)]
        tensors = {name: ("BF16", [side, side], size) for name in names}
        write_safetensors(folder / file, tensors, truncated=100 if shard == truncated_shard else 0)
        weight_map |= dict.fromkeys(names, file)
    total = shards * tensors_per_shard * size
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def export_onnx(path: Path, external: bool) -> None:
    """x[rows, 8] -> MatMul -> Relu, with its weight inside or in a file beside it."""
    import numpy
    import onnx
    from onnx import TensorProto, helper, numpy_helper

    weight = numpy_helper.from_array(numpy.ones((8, 64), numpy.float32), "weight")
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weight"], ["h"]), helper.make_node("Relu", ["h"], ["y"])],
        "small",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["rows", 8])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["rows", 64])],
        [weight],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], producer_name="tests")
    onnx.save_model(model, path, save_as_external_data=external, location=path.name + ".data", size_threshold=0)
