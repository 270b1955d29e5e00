"""``--quantize keep``: integers, scales and zero points of a checkpoint are in the graph as they are.

What ONNX Runtime's own MatMulNBits makes of them is compared with what the format's definition gives in float32, bit for bit.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
onnx = pytest.importorskip("onnx", reason="graphs are read by it")
onnxruntime = pytest.importorskip("onnxruntime", reason="its kernel dequantises")

import numpy as np  # noqa: E402
from onnx import TensorProto, helper, numpy_helper  # noqa: E402
from sweeps import PROGRAM  # noqa: E402
from test_quantized_checkpoints import awq, gptq, packed_ints, scheme  # noqa: E402
from tiny_checkpoints import llama, quantise, write  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan  # noqa: E402
from argosy.check.dequantized import weights_of  # noqa: E402

Make = Callable[[str, Any], tuple[dict[str, Any], Any]]


def gptq_of(bits: int, group: int = 16, *, version: int = 1, desc_act: bool = False) -> tuple[Make, dict[str, Any]]:
    settings = {"quant_method": "gptq", "bits": bits, "group_size": group, "desc_act": desc_act}
    settings |= {"checkpoint_format": "gptq_v2"} if version == 2 else {}
    return gptq(bits, group, version=version, g_idx=desc_act), settings


def packed_of(bits: int, *, zeros: bool) -> tuple[Make, dict[str, Any]]:
    settings = scheme(num_bits=bits, type="int", symmetric=not zeros, strategy="group", group_size=16)
    return packed_ints(bits, 16, zeros=zeros), {**settings, "format": "pack-quantized"}


FORMATS: dict[str, tuple[Make, dict[str, Any]]] = {
    "gptq": gptq_of(4),
    "gptq_v2": gptq_of(4, version=2),
    "gptq of 8 bits": gptq_of(8),
    "awq": (awq(16), {"quant_method": "awq", "bits": 4, "group_size": 16, "version": "gemm"}),
    "packed": packed_of(4, zeros=False),
    "packed with zero points": packed_of(4, zeros=True),
    "packed of 8 bits": packed_of(8, zeros=True),
}


def save(folder: Path, made: tuple[Make, dict[str, Any]]) -> dict[str, Any]:
    """Groups of a row are an odd number, so that the last zero point has a byte of its own."""
    stored, _ = quantise(llama(folder, "float16"), made[0])
    write(folder, stored, made[1])
    return stored


def export(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = [PROGRAM, "export", "onnx", "--model", folder, "--check", "off", *options, "-o", folder / "out"]
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)


def products_of(folder: Path) -> list[tuple[Any, dict[str, Any]]]:
    """The nodes, and the tensors that they read."""
    graph = onnx.load(next((folder / "out").glob("*.onnx"))).graph
    tensors = {each.name: each for each in graph.initializer}
    nodes = [node for node in graph.node if node.op_type == "MatMulNBits"]
    return [(node, {name: tensors[name] for name in node.input if name in tensors}) for node in nodes]


def dequantised(node: Any, tensors: dict[str, Any]) -> np.ndarray:
    """What the kernel multiplies ones and zeros with, one row of its weight after the other."""
    sizes = {each.name: helper.get_attribute_value(each) for each in node.attribute}
    own = helper.make_node("MatMulNBits", ["x", *node.input[1:4]], ["y"], domain="com.microsoft",
                           **{name: sizes[name] for name in ("K", "N", "bits", "block_size")})  # fmt: skip
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [None, sizes["K"]])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [None, sizes["N"]])
    graph = helper.make_graph([own], "one", [x], [y], list(tensors.values()))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 22), helper.make_opsetid("com.microsoft", 1)], ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString())
    return session.run(None, {"x": np.eye(sizes["K"], dtype=np.float32)})[0].T


@pytest.mark.parametrize("name", FORMATS)
def test_the_kernel_gets_what_the_checkpoint_has(name: str, tmp_path: Path) -> None:
    folder = tmp_path / "m"
    save(folder, FORMATS[name])
    done = export(folder, "--dtype", "fp32", "--quantize", "keep")
    assert done.returncode == 0, done.stderr
    bits = 8 if "8" in name else 4
    assert f"14 weights of linear layers stored as {'int' if name == 'packed' else 'uint'}{bits}-kept" in done.stderr
    expected = weights_of(make_weight_plan(folder, dtype="float32"), folder)
    products = products_of(folder)
    assert len(products) == 14
    for node, tensors in products:
        weight = node.input[1].split(".weight.")[0] + ".weight"
        assert np.array_equal(dequantised(node, tensors), expected[weight].numpy()), weight


def test_scales_of_half_precision_stay_as_they_are(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    stored = save(folder, FORMATS["gptq"])
    done = export(folder, "--dtype", "fp16", "--quantize", "keep")
    assert done.returncode == 0, done.stderr
    for node, tensors in products_of(folder):
        scales = numpy_helper.to_array(tensors[node.input[2]])
        expected = stored[node.input[1].split(".weight.")[0] + ".scales"].t().contiguous().numpy()
        assert scales.dtype == np.float16 and np.array_equal(scales.reshape(expected.shape).view(np.uint16), expected.view(np.uint16))


def test_what_kernels_do_not_take_is_dequantised_and_said(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    save(folder, gptq_of(4, desc_act=True))
    done = export(folder, "--dtype", "fp32", "--quantize", "keep")
    assert done.returncode == 1 and "--quantize keep fits none of the checkpoint's weights" in done.stderr
    done = export(folder, "--dtype", "fp32", "--quantize", "int4,keep", "--quantize-block", "16")
    assert done.returncode == 0, done.stderr
    assert "14 weights that the checkpoint stores in few bits are dequantised" in done.stderr
    assert "15 weights of linear layers stored as int4-a8, a scale for 16" in done.stderr and "-kept" not in done.stderr


def test_rules_count_more_and_floats_have_nothing_to_keep(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    save(folder, FORMATS["awq"])
    done = export(folder, "--dtype", "fp32", "--quantize", "keep,up_proj=float,down_proj=int8", "--quantize-block", "16")
    assert done.returncode == 0, done.stderr
    assert "10 weights of linear layers stored as uint4-kept" in done.stderr
    assert "2 weights of linear layers stored as int8" in done.stderr
    llama(tmp_path / "floats", "float16")
    done = export(tmp_path / "floats", "--dtype", "fp32", "--quantize", "keep")
    assert done.returncode == 1 and "--quantize keep has nothing to keep" in done.stderr
