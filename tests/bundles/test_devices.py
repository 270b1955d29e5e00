"""Graphs for a device have no ops that it lacks. Nothing here needs the device: graphs are looked at, and opened on the CPU, where
ONNX Runtime holds each node against its schema and infers types and shapes. Runs on WebGPU itself: ``python tests/sweeps webgpu``."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import onnx
import onnxruntime
import pytest
from test_fast_graphs import ARGOSY, argosy, ops_of, save_model, shares_buffers

#: Device and dtype: how many of these ops the graph of a Llama of two layers has, whether attention does the rotary embedding and takes
#: queries, keys and values as one, and whether caches grow in place.
EXPECTED = {
    ("cpu", "fp32"): ({"GroupQueryAttention": 2, "FusedMatMul": 11, "RotaryEmbedding": 0}, True, True),
    ("webgpu", "fp32"): ({"GroupQueryAttention": 0, "FusedMatMul": 0, "RotaryEmbedding": 4, "Softmax": 2}, False, False),
    ("webgpu", "fp16"): ({"GroupQueryAttention": 0, "FusedMatMul": 0, "RotaryEmbedding": 4, "Softmax": 2}, False, False),
    ("cuda", "fp32"): ({"GroupQueryAttention": 0, "FusedMatMul": 15, "RotaryEmbedding": 4, "Softmax": 2}, False, False),
    ("cuda", "fp16"): ({"GroupQueryAttention": 2, "FusedMatMul": 11, "RotaryEmbedding": 0}, True, True),
    ("dml", "fp16"): ({"GroupQueryAttention": 2, "FusedMatMul": 15, "RotaryEmbedding": 4}, False, True),
}  # fmt: skip
PROVIDERS = {
    "cpu": [],
    "webgpu": [{"webgpu": {"enableGraphCapture": "0", "validationMode": "basic"}}],
    "cuda": [{"cuda": {"enable_cuda_graph": "0"}}],
    "dml": [{"dml": {"enable_graph_capture": "0"}}],
}


@pytest.fixture(scope="module")
def llama(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("devices") / "model"
    save_model("llama", folder, {})
    return folder


def manifest(bundle: Path) -> dict:
    return json.loads((bundle / "bundle.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(("device", "dtype"), EXPECTED)
def test_a_graph_has_what_its_device_takes(llama: Path, device: str, dtype: str, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle"
    argosy("export", "onnx", "--model", llama, "--for", "genai", "--device", device, "--dtype", dtype, "--check", "off", bundle)
    counts, is_whole, shares = EXPECTED[device, dtype]
    ops = ops_of(bundle / "model.onnx")
    assert {op: ops[op] for op in counts} == counts
    assert ops["SkipSimplifiedLayerNormalization"] == 4
    assert shares_buffers(bundle) == shares
    for node in onnx.load(bundle / "model.onnx", load_external_data=False).graph.node:
        if node.op_type == "GroupQueryAttention":
            assert (not any(node.input[1:3])) == is_whole
            assert any(each.name == "do_rotary" and each.i for each in node.attribute) == is_whole
    config = json.loads((bundle / "genai_config.json").read_text(encoding="utf-8"))
    assert config["model"]["decoder"]["session_options"]["provider_options"] == PROVIDERS[device]
    assert manifest(bundle).get("device") == (None if device == "cpu" else device)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    onnxruntime.InferenceSession(bundle / "model.onnx", options, providers=["CPUExecutionProvider"])


def test_the_cpu_is_what_is_meant_if_nothing_is_said(llama: Path, tmp_path: Path) -> None:
    argosy("export", "onnx", "--model", llama, "--for", "genai", "--check", "off", tmp_path / "silent")
    argosy("export", "onnx", "--model", llama, "--for", "genai", "--check", "off", "--device", "cpu", tmp_path / "said")
    names = {each.name for each in (tmp_path / "silent").iterdir()}
    assert names == {each.name for each in (tmp_path / "said").iterdir()}
    for name in names:
        assert (tmp_path / "silent" / name).read_bytes() == (tmp_path / "said" / name).read_bytes(), name


def test_a_bundle_does_not_claim_that_it_ran_on_its_device(llama: Path, tmp_path: Path) -> None:
    """The check runs its graphs in the engine, on the CPU, whatever provider the configuration names."""
    said = argosy("export", "onnx", "--model", llama, "--for", "genai", "--device", "webgpu", tmp_path / "bundle")
    assert "runs of greedy tokens in the engine" in said and "(on the CPU, not on webgpu)" in said, said
    assert manifest(tmp_path / "bundle")["check"]["compared"].endswith("(on the CPU, not on webgpu)")
    card = (tmp_path / "bundle/README.md").read_text(encoding="utf-8")
    assert "for WebGPU, but checks ran on the CPU" in card


def test_engines_without_ops_of_their_own_are_told_the_device(llama: Path, tmp_path: Path) -> None:
    said = argosy("export", "onnx", "--model", llama, "--for", "transformersjs", "--device", "webgpu", "--check", "off", tmp_path / "js")
    assert "the graphs have ops of ONNX alone" in said
    assert json.loads((tmp_path / "js/config.json").read_text(encoding="utf-8"))["transformers.js_config"]["device"] == "webgpu"
    argosy("export", "onnx", "--model", llama, "--for", "transformersjs", "--check", "off", tmp_path / "usual")
    assert "device" not in json.loads((tmp_path / "usual/config.json").read_text(encoding="utf-8"))["transformers.js_config"]
    for name in ("onnx/model.onnx_data",):
        assert (tmp_path / "js" / name).read_bytes() == (tmp_path / "usual" / name).read_bytes()
    assert ops_of(tmp_path / "js/onnx/model.onnx") == ops_of(tmp_path / "usual/onnx/model.onnx")


def test_an_unknown_device_is_answered_with_those_that_are_known(llama: Path, tmp_path: Path) -> None:
    done = subprocess.run([ARGOSY, "export", "onnx", "--model", str(llama), "--device", "vulkan", str(tmp_path / "x")],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 2
    assert '"vulkan" is not one of cpu, webgpu, cuda, dml' in done.stderr
    done = subprocess.run([ARGOSY, "export", "onnx", "--model", str(llama), "--device", "webgpu", "--dtype", "bf16", str(tmp_path / "x")],
                          capture_output=True, text=True)  # fmt: skip
    assert done.returncode == 1
    assert "WebGPU has no bfloat16" in done.stderr
