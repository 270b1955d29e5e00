"""What tests do to good bundles: each function gives, or is, a change of a bundle's folder or of a graph."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from lint_bundles import decoder, move_out, save, value, write_json
from onnx import TensorProto, helper, numpy_helper

Change = Callable[[Path], None]


def edit_json(file: str, edit: Callable[[dict], object]) -> Change:
    def spoil(folder: Path) -> None:
        content = json.loads((folder / file).read_text())
        edit(content)
        write_json(folder / file, content)

    return spoil


def edit_graph(file: str, edit: Callable[[onnx.ModelProto], object]) -> Change:
    def spoil(folder: Path) -> None:
        made = onnx.load(folder / file, load_external_data=False)
        edit(made)
        (folder / file).write_bytes(made.SerializeToString())

    return spoil


def move(file: str, to: str) -> Change:
    return lambda folder: (folder / file).rename(folder / to)


def remove(*files: str) -> Change:
    def spoil(folder: Path) -> None:
        for file in files:
            (folder / file).unlink()

    return spoil


def write(file: str, data: bytes) -> Change:
    return lambda folder: (folder / file).write_bytes(data)


def put(file: str, key: str, content: object) -> Change:
    """Sets a value in JSON; `key` has slashes between its parts."""

    def edit(document: dict) -> None:
        *parents, last = key.split("/")
        for parent in parents:
            document = document[parent]
        document[last] = content

    return edit_json(file, edit)


def drop(file: str, key: str) -> Change:
    def edit(document: dict) -> None:
        *parents, last = key.split("/")
        for parent in parents:
            document = document[parent]
        del document[last]

    return edit_json(file, edit)


def both(*spoils: Change) -> Change:
    def spoil(folder: Path) -> None:
        for each in spoils:
            each(folder)

    return spoil


def sparse(file: str, size: int) -> Change:
    def spoil(folder: Path) -> None:
        with (folder / file).open("r+b") as out:
            out.truncate(size)

    return spoil


def link_out(file: str) -> Change:
    def spoil(folder: Path) -> None:
        (folder / file).rename(folder.parent / "elsewhere")
        (folder / file).symlink_to("../elsewhere")

    return spoil


def deep(folder: Path) -> None:
    os.makedirs(folder / "a/b/c/d/e")
    (folder / "a/b/c/d/e/file").write_text("")


def relocate(location: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for tensor in made.graph.initializer:
            for entry in tensor.external_data:
                if entry.key == "location":
                    entry.value = location

    return edit


def rename_port(old: str, new: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for node in made.graph.node:
            node.input[:] = [new if name == old else name for name in node.input]
            node.output[:] = [new if name == old else name for name in node.output]
        for port in [*made.graph.input, *made.graph.output]:
            port.name = new if port.name == old else port.name

    return edit


def drop_port(*names: str) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for ports in (made.graph.input, made.graph.output):
            kept = [port for port in ports if port.name not in names]
            del ports[:]
            ports.extend(kept)

    return edit


def set_dim(names: tuple[str, ...], dim: int, size: int | str) -> Callable[[onnx.ModelProto], None]:
    """Of the ports whose names hold one of these."""

    def edit(made: onnx.ModelProto) -> None:
        for port in [*made.graph.input, *made.graph.output]:
            if any(name in port.name for name in names):
                entry = port.type.tensor_type.shape.dim[dim]
                entry.Clear()
                setattr(entry, "dim_value" if isinstance(size, int) else "dim_param", size)

    return edit


def set_type(name: str, dtype: int) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        for port in [*made.graph.input, *made.graph.output]:
            if port.name == name:
                port.type.tensor_type.elem_type = dtype

    return edit


def add_input(made: onnx.ModelProto) -> None:
    made.graph.input.append(value("cache_position", ["sequence"], TensorProto.INT64))
    for node in made.graph.node:
        if node.op_type == "Gather":  # the embeddings are then those of other tokens
            node.input[1] = "moved"
    made.graph.node.insert(0, helper.make_node("Add", ["input_ids", "cache_position"], ["moved"]))


def add_node(op: str, domain: str, imported: bool) -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        made.graph.node.append(helper.make_node(op, [made.graph.input[0].name], ["unused"], domain=domain))
        if imported:
            made.opset_import.append(helper.make_opsetid(domain, 1))

    return edit


def bfloat16(made: onnx.ModelProto) -> None:
    for tensor in made.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            tensor.data_type = TensorProto.BFLOAT16
            tensor.raw_data = tensor.raw_data[: len(tensor.raw_data) // 2]


def attribute_data(folder: Path) -> None:
    """A constant of a node, and not an initializer, is what is left behind."""
    made = onnx.load(folder / "model.onnx", load_external_data=False)
    tensor = numpy_helper.from_array(np.zeros(8, np.float32), "c")
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entry = tensor.external_data.add()
    entry.key, entry.value = "location", "onnx__MatMul_9086"
    made.graph.node.append(helper.make_node("Constant", [], ["c"], value=tensor))
    (folder / "model.onnx").write_bytes(made.SerializeToString())


def external_shape(folder: Path) -> None:
    made = onnx.load(folder / "model.onnx", load_external_data=False)
    tensor = next(each for each in made.graph.initializer if each.name == "split")
    with (folder / "model.onnx.data").open("ab") as data:
        move_out(tensor, "model.onnx.data", data.tell())
        data.write(tensor.raw_data)
    tensor.ClearField("raw_data")
    (folder / "model.onnx").write_bytes(made.SerializeToString())


def grouped_attention(made: onnx.ModelProto) -> None:
    """Heads of 4, by an op that wants more."""
    made.graph.node.append(helper.make_node("GroupQueryAttention", ["hidden"], ["unused"], domain="com.microsoft"))
    made.opset_import.append(helper.make_opsetid("com.microsoft", 1))


def set_opset(version: int, domain: str = "") -> Callable[[onnx.ModelProto], None]:
    def edit(made: onnx.ModelProto) -> None:
        del made.opset_import[:]
        made.opset_import.append(helper.make_opsetid("", version if not domain else 22))
        if domain:
            made.opset_import.append(helper.make_opsetid(domain, version))

    return edit


def set_ir(version: int) -> Callable[[onnx.ModelProto], None]:
    return lambda made: setattr(made, "ir_version", version)


def unmerge(folder: Path) -> None:
    (folder / "onnx/decoder_model_merged.onnx").rename(folder / "onnx/decoder_with_past_model.onnx")
    save(decoder(roles=("decoder.",), merged=True), folder / "onnx/decoder_model.onnx")


def f32_as_fp16(folder: Path) -> None:
    save(decoder(), folder / "onnx/model_fp16.onnx")


def to_onnx_folder_top(folder: Path) -> None:
    for file in sorted((folder / "onnx").iterdir()):
        file.rename(folder / file.name)


def encoder_only_optimum(folder: Path) -> None:
    (folder / "encoder_model.onnx").unlink()


def grouped_heads(folder: Path) -> None:
    """Heads of 4 in the graph; hidden_size / num_attention_heads is 2, and head_dim says 4."""
    edit_json("config.json", lambda config: config.update(num_attention_heads=4, head_dim=4, model_type="qwen3"))(
        folder
    )
