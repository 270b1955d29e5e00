"""ONNX graphs with weights in few bits: the same bits as ONNX Runtime's own quantizer, and right in the engine by the export's check."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx import numpy_helper
from onnxruntime.capi._pybind_state import quantize_matmul_4bits, quantize_matmul_8bits
from onnxruntime.quantization.matmul_bnb4_quantizer import MatMulBnb4Quantizer
from onnxruntime.quantization.neural_compressor.weight_only import quant_tensor, quant_tensor_k_quant_cpu
from safetensors.torch import load_file, save_file
from test_fast_graphs import ARGOSY, argosy, ops_of, save_model
from thorough import thorough

from argosy.check.onnx_schemes import onnx_blocks

TRAINED = Path(__file__).resolve().parents[1] / "fixtures/trained-decoder"


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some blocks of its weights are such as rounding is hard for."""
    folder = tmp_path_factory.mktemp("quantize") / "model"
    save_model("llama", folder, {"hidden_size": 160, "intermediate_size": 288, "num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 40})
    weights = load_file(folder / "model.safetensors")
    odd = next(weight for name, weight in weights.items() if name.endswith("0.mlp.down_proj.weight"))
    odd[0] = 0
    odd[1] = odd[1].abs()
    odd[2] = -odd[2].abs()
    odd[3] = (odd[3] * 40).round() / 16
    odd[4] *= 1e-20
    odd[5] = 0.25
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def tensors_of(path: Path) -> dict[str, np.ndarray]:
    return {each.name: numpy_helper.to_array(each) for each in onnx.load(path).graph.initializer}


def products_of(path: Path, op: str = "MatMulNBits") -> list[tuple[onnx.NodeProto, dict]]:
    nodes = [node for node in onnx.load(path, load_external_data=False).graph.node if node.op_type == op]
    return [(node, {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}) for node in nodes]


def as_onnx_runtime(weight: np.ndarray, method: str, bits: int, is_symmetric: bool, block: int) -> tuple[np.ndarray, ...]:
    """Integers [rows, blocks, bytes], scales [rows, blocks] and zero points [rows, blocks] of a weight [rows, width]."""
    rows, width = weight.shape
    blocks = -(-width // block)
    if method == "default":
        each = 8 // bits
        padded = np.pad(weight, ((0, 0), (0, blocks * block - width)))
        packed = np.zeros((rows, blocks, block // each), np.uint8)
        zeros = np.zeros((rows, -(-blocks // each)), np.uint8)
        scales = np.zeros((rows, blocks), np.float32)
        quantize = quantize_matmul_4bits if bits == 4 else quantize_matmul_8bits
        quantize(packed, np.ascontiguousarray(padded.T), scales, zeros, block, rows, width, is_symmetric)
        return packed, scales, zeros
    padded = np.pad(weight, ((0, 0), (0, blocks * block - width)))
    with np.errstate(all="ignore"):
        if method == "rtn":
            integers, scales, zeros = quant_tensor(padded, bits, block, "sym" if is_symmetric else "asym", "uint")
        else:
            integers, scales, zeros = quant_tensor_k_quant_cpu(padded, bits, block)
    integers, zeros = integers.astype(np.uint8), zeros.astype(np.uint8).reshape(rows, blocks)
    if bits == 4:
        integers = integers[:, ::2] | integers[:, 1::2] << 4
        zeros = np.pad(zeros, ((0, 0), (0, blocks % 2)), constant_values=8)
        zeros = zeros[:, ::2] | zeros[:, 1::2] << 4
    return integers.reshape(rows, blocks, -1), scales.astype(np.float32).reshape(rows, blocks), zeros


@pytest.mark.parametrize(
    ("method", "bits", "is_symmetric", "block"),
    [("default", 4, True, 32), ("default", 4, False, 32), ("default", 4, True, 128), ("default", 4, False, 128), ("default", 8, True, 32),
     ("default", 8, False, 64), ("rtn", 4, True, 32), ("rtn", 4, False, 32), ("k_quant", 4, False, 32), ("k_quant", 4, False, 128),
     ("k_quant", 8, False, 32)],
)  # fmt: skip
def test_the_bits_are_those_of_onnx_runtime(llama: Path, method: str, bits: int, is_symmetric: bool, block: int, tmp_path: Path) -> None:
    options = ["--quantize", f"int{bits}", "--quantize-block", str(block), "--quantize-method", method]
    options += [] if is_symmetric or method == "k_quant" else ["--quantize-zero-points"]
    argosy("export", "onnx", "--model", llama, "--check", "off", *options, tmp_path / "bundle")
    path = next((tmp_path / "bundle").glob("*.onnx"))
    tensors, compared = tensors_of(path), 0
    weights = {name: each.float().numpy() for name, each in load_file(llama / "model.safetensors").items()}
    reference = onnx_blocks(f"{'int' if is_symmetric else 'uint'}{bits}" + (f"-{method}" if method != "default" else ""))
    for node, attributes in products_of(path):
        weight = next(each for name, each in weights.items() if node.input[1].startswith(f"{name}."))
        assert weight.shape == (attributes["N"], attributes["K"])
        packed, scales, zeros = as_onnx_runtime(weight, method, bits, is_symmetric, block)
        assert np.array_equal(tensors[node.input[1]], packed), node.name
        assert np.array_equal(tensors[node.input[2]].view(np.uint32), scales.view(np.uint32)), node.name
        if not is_symmetric:
            assert np.array_equal(tensors[node.input[3]], zeros), node.name
        # What the check takes the weight for is what the engine gets.
        integers = packed.reshape(*scales.shape, -1)
        offsets: np.ndarray | float = 2.0 ** (bits - 1)
        if bits == 4:
            integers = np.stack([integers & 15, integers >> 4], -1).reshape(*scales.shape, -1)
            zeros = np.stack([zeros & 15, zeros >> 4], -1).reshape(len(weight), -1)
        if not is_symmetric:
            offsets = zeros[:, : scales.shape[1], None].astype(np.float32)
        back = ((integers - offsets) * scales[..., None]).reshape(len(weight), -1)[:, : weight.shape[1]]
        assert np.array_equal(reference(torch.from_numpy(weight), block).numpy(), back.astype(np.float32)), node.name
        compared += 1
    assert compared >= 14


@pytest.mark.parametrize(("block", "dtype"), [(64, "fp32"), thorough((16, "fp32")), thorough((256, "fp32")), thorough((64, "fp16"))])
def test_the_bits_of_nf4_are_those_of_onnx_runtime(llama: Path, block: int, dtype: str, tmp_path: Path) -> None:
    """Rows of 160 and 288 are no whole blocks of 64: blocks go on from row to row."""
    options = ["--quantize", "nf4", "--dtype", dtype, *(["--quantize-block", str(block)] if block != 64 else [])]
    argosy("export", "onnx", "--model", llama, "--check", "off", *options, tmp_path / "bundle")
    path = next((tmp_path / "bundle").glob("*.onnx"))
    kind = torch.float16 if dtype == "fp16" else torch.float32
    weights = {name: each.to(kind) for name, each in load_file(llama / "model.safetensors").items()}
    tensors, products = tensors_of(path), products_of(path, "MatMulBnb4")
    quantizer = MatMulBnb4Quantizer(onnx.load(path, load_external_data=False), MatMulBnb4Quantizer.NF4, block)
    for node, attributes in products:
        weight = next(each for name, each in weights.items() if node.input[1].startswith(f"{name}."))
        assert attributes == {"K": weight.shape[1], "N": weight.shape[0], "block_size": block, "quant_type": 1}
        packed, scales = quantizer.bnb4_block_quant(weight.numpy().T)
        assert np.array_equal(tensors[node.input[1]], packed), node.name
        assert tensors[node.input[2]].tobytes() == scales.tobytes(), node.name
        if dtype == "fp32":  # what the check takes the weight for is what the engine multiplies with
            back = onnx_blocks("nf4")(weight, block).numpy()
            assert np.array_equal(as_the_engine_has_it(node, attributes, packed, scales), back), node.name
    assert len(products) == 15


def as_the_engine_has_it(node: onnx.NodeProto, attributes: dict, packed: np.ndarray, scales: np.ndarray) -> np.ndarray:
    """A weight, told by a product with ones and zeros."""
    own = onnx.helper.make_node(node.op_type, ["x", "w", "s"], ["y"], domain=node.domain, **attributes)
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, (attributes["K"], None)) for name in ("x", "y")]
    stored = [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")]
    graph = onnx.helper.make_graph([own], "g", values[:1], values[1:], stored)
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": np.eye(attributes["K"], dtype=np.float32)})[0].T


@pytest.mark.parametrize(
    ("model_type", "engine", "options", "encodings"),
    [("llama", "genai", ("--quantize", "nf4,lm_head=int8,layers.1.mlp=float"), {"nf4", "int8-a8"}),
     ("llama", "transformersjs", ("--dtype", "bnb4"), {"nf4"}), thorough(("gpt2", "genai", ("--quantize", "nf4"), {"nf4"})),
     thorough(("qwen2", "genai", ("--quantize", "nf4", "--dtype", "fp16"), {"nf4"})), thorough(("mixtral", "genai", ("--quantize", "nf4"), {"nf4"}))],
)  # fmt: skip
def test_the_check_runs_nf4(model_type: str, engine: str, options: tuple[str, ...], encodings: set[str], tmp_path: Path) -> None:
    save_model(model_type, tmp_path / "model", {})
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", engine, *options, tmp_path / "bundle")
    assert "agrees with PyTorch" in said and ("experts" in said) == (model_type == "mixtral"), said
    path = tmp_path / "bundle" / ("model.onnx" if engine == "genai" else "onnx/model_bnb4.onnx")
    ops = ops_of(path)
    assert ops["MatMulBnb4"] >= 7 and ops["MatMulNBits"] == int("int8-a8" in encodings), ops
    quantized = json.loads((tmp_path / "bundle/bundle.json").read_text(encoding="utf-8"))["quantized"]
    assert {each["encoding"] for each in quantized} == encodings
    if engine == "transformersjs":
        assert json.loads((tmp_path / "bundle/config.json").read_text())["transformers.js_config"]["dtype"] == "bnb4"


@pytest.mark.parametrize(
    ("model_type", "options", "products"),
    [("llama", ("--quantize", "int4"), 11), thorough(("llama", ("--quantize", "int8", "--accuracy-level", "1"), 11)),
     thorough(("llama", ("--quantize", "int4", "--quantize-method", "k_quant"), 11)), thorough(("gpt2", ("--quantize", "int4"), 9)),
     thorough(("qwen2", ("--quantize", "int4", "--quantize-zero-points", "--quantize-block", "16"), 11)),
     ("llama", ("--quantize", "int4,lm_head=int8,layers.1.mlp=int8,embedding=int4", "--dtype", "fp16"), 11),
     ("gpt_oss", ("--quantize", "int4", "--quantize-zero-points"), 7), thorough(("mixtral", ("--quantize", "int8"), 7))],
)  # fmt: skip
def test_the_check_runs_what_ships(model_type: str, options: tuple[str, ...], products: int, tmp_path: Path) -> None:
    save_model(model_type, tmp_path / "model", {})
    said = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", *options, tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said and "best token as the unquantised model's" in said, said
    ops = ops_of(tmp_path / "bundle/model.onnx")
    assert ops["MatMulNBits"] == products and ops["MatMul"] + ops["FusedMatMul"] + ops["Gemm"] == 0, ops
    quantized = json.loads((tmp_path / "bundle/bundle.json").read_text(encoding="utf-8"))["quantized"]
    wanted = {"gpt2": "product", "gpt_oss": "turned-experts", "mixtral": "experts"}.get(model_type, "linear")
    assert wanted in {each["use"] for each in quantized}
    assert ops["QMoE"] == (2 if wanted.endswith("experts") else 0) and ops["MoE"] == 0


def test_rules_choose_bits_by_module(llama: Path, tmp_path: Path) -> None:
    argosy("export", "onnx", "--model", llama, "--check", "off", "--quantize", "int4,lm_head=int8,mlp.down_proj=float", tmp_path / "bundle")
    path = next((tmp_path / "bundle").glob("*.onnx"))
    bits = {node.input[1]: attributes["bits"] for node, attributes in products_of(path)}
    assert {each for name, each in bits.items() if name.startswith("lm_head")} == {8}
    assert not any("down_proj" in name for name in bits)
    assert {each for name, each in bits.items() if not name.startswith("lm_head")} == {4}


def test_a_tied_embedding_is_stored_once(tmp_path: Path) -> None:
    argosy("export", "onnx", "--model", TRAINED, "--for", "genai", "--check", "off", "--quantize", "int4,embedding=int4", tmp_path / "bundle")
    model = onnx.load(tmp_path / "bundle/model.onnx", load_external_data=False)
    gather = next(node for node in model.graph.node if node.op_type == "GatherBlockQuantized")
    head = [node for node in model.graph.node if node.op_type == "MatMulNBits"][-1]
    places = {each.name: {entry.key: entry.value for entry in each.external_data} for each in model.graph.initializer}
    assert places[gather.input[0]] == places[head.input[1]] and gather.input[0] != head.input[1]
    assert gather.input[2] == head.input[2]
    data = (tmp_path / "bundle/model.onnx.data").stat().st_size
    parameters = sum(each.numel() for each in load_file(TRAINED / "model.safetensors").values())
    assert data < parameters * 0.66  # 4 bits and a float for 32 values: 0.625 bytes each


@pytest.mark.parametrize("options", [("int4", "--quantize-zero-points"), ("nf4",)])
def test_the_bytes_do_not_depend_on_threads_or_memory(llama: Path, options: tuple[str, ...], tmp_path: Path) -> None:
    command = ("export", "onnx", "--model", llama, "--for", "genai", "--check", "off", "--quantize", *options)
    argosy(*command, "--threads", "1", tmp_path / "one")
    argosy(*command, "--threads", "4", "--memory", "16MB", tmp_path / "four")
    for name in ("model.onnx", "model.onnx.data"):
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "four" / name).read_bytes(), name


@pytest.mark.parametrize(
    ("options", "said"),
    [(("--quantize", "int3"), '--quantize does not know "int3"'), (("--quantize", "int4,=int8"), "--quantize does not know"),
     (("--quantize", "int4", "--quantize-block", "48"), "--quantize-block 48 fits no kernel"),
     (("--quantize", "nf4,embedding=nf4"), "looks up no rows of weights in NF4"),
     (("--quantize", "nf4", "--device", "webgpu"), "WebGPU has no product with weights in NF4"),
     (("--quantize", "int4,head=int8"), 'has a rule for "head", and no layer is called so'),
     (("--quantize", "int4,mlp.down_proj=float", "--quantize-block", "256"), "--quantize fits none of the"),
     (("--quantize", "int4", "--dtype", "bfloat16"), 'fits none of the weights, "lm_head.weight" among them')],
)  # fmt: skip
def test_what_fits_nothing_is_an_error(llama: Path, options: tuple[str, ...], said: str, tmp_path: Path) -> None:
    command = [ARGOSY, "export", "onnx", "--model", llama, "--check", "off", *options, tmp_path / "bundle"]
    result = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=False)
    assert result.returncode != 0 and said in result.stderr, result.stderr
    assert not (tmp_path / "bundle").exists()


def test_what_no_product_takes_is_told(tmp_path: Path) -> None:
    """Experts are one op for engines that have it. Elsewhere they are chosen and multiplied with, and stay floats."""
    save_model("mixtral", tmp_path / "model", {"hidden_size": 64, "intermediate_size": 64, "num_local_experts": 4})
    for engine, is_told in (("genai", False), ("plain", True)):
        command = [ARGOSY, "export", "onnx", "--model", tmp_path / "model", "--for", engine, "--check", "off", "--quantize", "int8",
                   tmp_path / engine]  # fmt: skip
        said = subprocess.run([str(each) for each in command], capture_output=True, text=True, check=True).stderr
        assert ("stay as they are" in said and "experts" in said) == is_told, said


def test_rounded_activations_are_those_of_the_kernel() -> None:
    """Accuracy level 4 of MatMulNBits, beside what the check computes."""
    from argosy.check.onnx_schemes import rounded_blocks  # noqa: PLC0415

    torch.manual_seed(0)
    x, weight, block = torch.randn(5, 96), torch.randn(7, 96), 32
    packed, scales, _ = as_onnx_runtime(weight.numpy(), "default", 4, True, block)
    node = onnx.helper.make_node("MatMulNBits", ["x", "w", "s"], ["y"], domain="com.microsoft", K=96, N=7, bits=4, block_size=block,
                                 accuracy_level=4)  # fmt: skip
    values = [onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, shape) for name, shape in (("x", (5, 96)), ("y", (5, 7)))]
    graph = onnx.helper.make_graph([node], "g", values[:1], values[1:],
                                   [numpy_helper.from_array(packed, "w"), numpy_helper.from_array(scales, "s")])  # fmt: skip
    opsets = [onnx.helper.make_opsetid("", 21), onnx.helper.make_opsetid("com.microsoft", 1)]
    model = onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    (got,) = session.run(None, {"x": x.numpy()})
    stored = onnx_blocks("int4")(weight, block)
    expected = rounded_blocks(x, block) @ stored.T
    assert np.abs(got - expected.numpy()).max() < 2e-5 * float(expected.abs().max())
    assert np.abs(got - (x @ stored.T).numpy()).max() > 1e-4  # it does round
