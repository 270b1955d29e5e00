"""A live model and the command give the same graph. ``python tests/sweeps same-graph`` does all families."""

from __future__ import annotations

import pytest

from sweeps import PROGRAM
from sweeps.same_graph import compare, first_difference, outline


@pytest.mark.parametrize(
    "model_type, component",
    [("bert", "model"), ("llama", "decode"), ("mamba", "decode"), ("dinov2", "model"), ("siglip", "model")],
    ids=["encoder", "decoder", "states", "pictures of any size", "pictures of one size and texts"],
)
def test_a_live_model_and_the_command(model_type: str, component: str) -> None:
    pytest.importorskip("onnx", reason="models are read with it")
    assert compare(model_type, str(PROGRAM)) == {component: ""}


def test_what_differs_is_told() -> None:
    onnx = pytest.importorskip("onnx", reason="models are made with it")

    def model(op: str) -> object:
        value = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2])
        result = onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [2])
        return onnx.helper.make_model(onnx.helper.make_graph([onnx.helper.make_node(op, ["x"], ["y"])], "g", [value], [result]))

    assert first_difference(outline(model("Relu")), outline(model("Relu"))) == ""
    assert first_difference(outline(model("Relu")), outline(model("Neg"))).startswith("node 0 of 1 and 1: Relu")
