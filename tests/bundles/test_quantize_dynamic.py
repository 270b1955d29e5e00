"""ONNX graphs whose products are in integers: the same bits as ONNX Runtime's quantize_dynamic by channel, and right by the export's check."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
import torch
from onnxruntime.quantization.quant_utils import QuantType, quantize_data
from safetensors.torch import load_file, save_file
from test_fast_graphs import ARGOSY, argosy, ops_of, save_model
from test_quantize import tensors_of
from thorough import thorough

from argosy.check.schemes import find_scheme


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some rows of its weights are such as rounding is hard for."""
    folder = tmp_path_factory.mktemp("dynamic") / "model"
    save_model("llama", folder, {})
    weights = load_file(folder / "model.safetensors")
    odd = next(weight for name, weight in weights.items() if name.endswith("0.mlp.down_proj.weight"))
    odd[0] = 0
    odd[1] = odd[1].abs()
    odd[2] = -odd[2].abs()
    odd[3] = (odd[3] * 40).round() / 16
    odd[4] *= 1e-30
    odd[5] = 0.25
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


@pytest.mark.parametrize("kind", ["int8", "uint8"])
def test_the_bits_are_those_of_onnx_runtime(llama: Path, kind: str, tmp_path: Path) -> None:
    argosy("export", "onnx", "--model", llama, "--check", "off", "--quantize", f"dynamic-{kind},embedding=int8", tmp_path / "bundle")
    path = next((tmp_path / "bundle").glob("*.onnx"))
    tensors, compared = tensors_of(path), 0
    weights = {name: each.float().numpy() for name, each in load_file(llama / "model.safetensors").items()}
    is_signed = kind == "int8"
    scheme = find_scheme("linear", f"dynamic-{kind}")
    assert scheme is not None
    for node in onnx.load(path, load_external_data=False).graph.node:
        if node.op_type != "MatMulInteger":
            continue
        name, weight = next((name, each) for name, each in weights.items() if node.input[1].startswith(f"{name}."))
        kept, scales = tensors[node.input[1]].T, tensors[f"{name}.dynamic-{kind}.scales"]
        back = scheme.stored(torch.from_numpy(weight), 0).numpy()
        for row, values in enumerate(weight):
            zero, scale, integers = quantize_data(values, (QuantType.QInt8 if is_signed else QuantType.QUInt8).tensor_type, is_signed)
            assert scales[row] == scale and np.array_equal(kept[row], integers), f"{name} row {row}"
            assert is_signed or tensors[node.input[3]][row] == zero
            # What the check takes the weight for is what the engine gets.
            assert np.array_equal(back[row], (integers.astype(np.float32) - np.float32(zero)) * scale), f"{name} row {row}"
        compared += 1
    assert compared >= 14


@pytest.mark.parametrize(
    ("model_type", "options", "products"),
    [("llama", ("--for", "genai", "--quantize", "dynamic-int8"), 11), thorough(("gpt2", ("--for", "genai", "--quantize", "dynamic-uint8,embedding=int8"), 9)),
     thorough(("qwen2", ("--quantize", "dynamic-int8,lm_head=float"), 14)), ("bert", ("--quantize", "dynamic-uint8"), 14)],
)  # fmt: skip
def test_the_check_runs_what_ships(model_type: str, options: tuple[str, ...], products: int, tmp_path: Path) -> None:
    save_model(model_type, tmp_path / "model", {})
    said = argosy("export", "onnx", "--model", tmp_path / "model", *options, tmp_path / "bundle")
    assert "agrees with PyTorch" in said, said
    ops = ops_of(next((tmp_path / "bundle").glob("*.onnx")))
    assert ops["MatMulInteger"] == products and ops["MatMulNBits"] == 0, ops
    quantized = json.loads((tmp_path / "bundle/bundle.json").read_text(encoding="utf-8"))["quantized"]
    assert {each["encoding"] for each in quantized} == {options[-1].split(",")[0]} and {each["group"] for each in quantized} == {0}


def test_what_does_not_fit_is_refused_by_name(llama: Path, tmp_path: Path) -> None:
    for options, text in (
        (("--quantize", "dynamic-int8,embedding=int4"), "dynamic-int8 has weights of 8 bits only"),
        (("--quantize", "int8,lm_head=dynamic-int8"), "does not know"),
        (("--quantize", "dynamic-int8", "--dtype", "fp16"), "take float32"),
    ):
        command = [ARGOSY, "export", "onnx", "--model", llama, "--check", "off", *options, tmp_path / "out"]
        done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
        assert done.returncode != 0 and text in done.stderr, done.stderr
