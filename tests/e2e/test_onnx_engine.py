"""The row of ONNX Runtime among the engines: what it opens, how it runs, and what it says when it cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="tensors are its")
onnx = pytest.importorskip("onnx", reason="the models are made with it")
pytest.importorskip("onnxruntime", reason="it is the engine")

from onnx import TensorProto, helper  # noqa: E402

from argosy import ExportError  # noqa: E402
from argosy.check.engines import EngineError, EngineProcess, find_export  # noqa: E402
from argosy.check.onnx_worker import from_ort, open_onnx, to_ort  # noqa: E402

MANIFEST = {"model_class": "Doubling", "task": "", "components": [{"name": "double"}, {"name": "half"}]}


def write_model(path: Path, factor: float, component: str, dtype: int = TensorProto.FLOAT) -> None:
    value = lambda name: helper.make_tensor_value_info(name, dtype, ["n", 2])  # noqa: E731
    weight = helper.make_tensor("w", dtype, [2], [factor, factor])
    graph = helper.make_graph([helper.make_node("Mul", ["x", "w"], ["y"])], "g", [value("x")], [value("y")], [weight])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10)
    about = {"argosy.component": component, "argosy.manifest": json.dumps({**MANIFEST, "component": component})}
    helper.set_model_props(model, about)
    onnx.save(model, path)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_model(tmp_path / "double.onnx", 2.0, "double")
    write_model(tmp_path / "half.onnx", 0.5, "half")
    (tmp_path / "bundle.json").write_text(json.dumps({**MANIFEST, "files": ["double.onnx", "half.onnx"]}))
    return tmp_path


def test_folder(folder: Path) -> None:
    export = find_export(folder)
    assert export.engine.name == "onnx" and set(export.interfaces) == {"double", "half"}
    assert export.dtype == "float32"
    with EngineProcess(export) as engine:
        assert sorted(engine.components) == ["double", "half"]
        outputs, seconds = engine.call("half", {"x": torch.tensor([[2.0, 4.0]])})
        assert outputs["y"].tolist() == [[1.0, 2.0]] and seconds >= 0
        outputs, _ = engine.call("double", {"x": torch.empty(0, 2)})
        assert outputs["y"].shape == (0, 2)


def test_one_model_of_any_name(tmp_path: Path) -> None:
    write_model(tmp_path / "model.onnx", 2.0, "double")
    export = find_export(tmp_path / "model.onnx")
    assert export.manifest["component"] == "double"
    with EngineProcess(export) as engine:
        assert engine.components == ["double"]


def test_what_the_engine_refuses(folder: Path) -> None:
    with EngineProcess(find_export(folder)) as engine:
        with pytest.raises(EngineError, match="also takes x"):
            engine.call("double", {})
        with pytest.raises(EngineError, match="has no input z; it takes x"):
            engine.call("double", {"x": torch.ones(1, 2), "z": torch.ones(1)})
        with pytest.raises(EngineError, match="INVALID_ARGUMENT"):
            engine.call("double", {"x": torch.ones(1, 3)})
        with pytest.raises(EngineError, match="tensor.int64"):
            engine.call("double", {"x": torch.ones(1, 2, dtype=torch.int64)})
        assert engine.call("double", {"x": torch.ones(1, 2)})[0]["y"].tolist() == [[2.0, 2.0]]  # and goes on


def test_models_that_cannot_be_opened(folder: Path) -> None:
    export = find_export(folder)
    (folder / "half.onnx").write_bytes(b"\x08\x0a" + b"rubbish")
    with pytest.raises(EngineError, match="INVALID_PROTOBUF|Protobuf"):
        EngineProcess(export)
    with pytest.raises(ExportError, match="cannot be read"):
        (folder / "bundle.json").unlink()
        find_export(folder)


def test_a_model_of_somebody_else(tmp_path: Path) -> None:
    write_model(tmp_path / "other.onnx", 2.0, "double")
    model = onnx.load(tmp_path / "other.onnx")
    del model.metadata_props[:]
    onnx.save(model, tmp_path / "other.onnx")
    with pytest.raises(ExportError, match="argosy export onnx did not write it"):
        find_export(tmp_path / "other.onnx")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.bool, torch.uint8])
def test_tensors_there_and_back(dtype: torch.dtype) -> None:
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    back = from_ort(to_ort(tensor.t()))
    assert back.dtype == dtype and torch.equal(back, tensor.t())


def test_an_output_that_is_called_as_an_input(tmp_path: Path) -> None:
    value = lambda name: helper.make_tensor_value_info(name, TensorProto.FLOAT, [2])  # noqa: E731
    graph = helper.make_graph([helper.make_node("Neg", ["ids"], ["ids_output"])], "g", [value("ids")], [value("ids_output")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22)], ir_version=10), tmp_path / "m.onnx")
    assert open_onnx(str(tmp_path / "m.onnx"))["m"]({"ids": torch.ones(2)})["ids"].tolist() == [-1.0, -1.0]
