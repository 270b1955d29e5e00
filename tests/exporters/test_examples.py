"""The published uses of DynamoExporter and OnnxExporter run with only the import changed, against models that come from a Hub."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path

import pytest
from transformers import CONFIG_MAPPING

import argosy
from argosy.capture.twin import build, save, shrink

sys.path.append(str(Path(__file__).parents[1] / "e2e"))
from hub_server import HubServer, hub_server  # noqa: E402

PICTURE = "/datasets/huggingface/documentation-images/resolve/main/pipeline-cat-chonk.jpeg"


def png(width: int, height: int) -> bytes:
    """A small picture in colours."""
    rows = b"".join(
        b"\0" + bytes((x * 9 + y * k) % 256 for x in range(width) for k in (3, 5, 7)) for y in range(height)
    )

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


@pytest.fixture(scope="module")
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[HubServer]:
    """Twins under the names of the models that the examples use, with tokenizers and processors; and a picture."""
    folder = tmp_path_factory.mktemp("models")
    with hub_server() as server:
        for name, model_type in (("Qwen/Qwen3-0.6B", "qwen3"), ("Qwen/Qwen2-VL-2B-Instruct", "qwen2_vl")):
            server.add(name, save(build(shrink(CONFIG_MAPPING[model_type]())), folder / model_type))
        server.pages[PICTURE] = ("image/png", png(20, 12))
        yield server


def run_examples(hub: HubServer, home: Path, *names: str, script: str = "examples.py") -> dict:
    path = Path(__file__).with_name(script)
    environment = {
        **os.environ,
        **hub.environment(home),
        "EXAMPLE_PICTURE": hub.url + PICTURE,
        "PYTHONPATH": str(Path(argosy.__file__).parents[1]),
    }
    done = subprocess.run(
        [sys.executable, str(path), *names], capture_output=True, text=True, env=environment, cwd=home
    )
    assert done.returncode == 0, done.stderr[-4000:]
    return json.loads(done.stdout.splitlines()[-1])


def test_quick_start_and_dynamic_shapes(hub: HubServer, tmp_path: Path) -> None:
    results = run_examples(hub, tmp_path, "quick_start", "dynamic_shapes")
    assert results["quick_start"]["program"] == "ExportedProgram" and results["quick_start"]["difference"] < 1e-5
    assert results["dynamic_shapes"]["ranges"] == [[1, 32], [1, 2048]]
    assert results["dynamic_shapes"]["difference"] < 1e-5
    assert hub.downloads("Qwen3-0.6B/resolve/main/config.json") or hub.downloads("config.json")


@pytest.mark.thorough  # the one below shows the same, in ONNX Runtime
def test_multimodal_generation(hub: HubServer, tmp_path: Path) -> None:
    pytest.importorskip("PIL", reason="the processor reads pictures with it")
    results = run_examples(hub, tmp_path, "multimodal")["multimodal"]
    names = ["image_encoder", "language_model", "lm_head", "decode"]
    assert results["components"] == dict.fromkeys(names, "ExportedProgram") and results["loop"] == names
    assert results["difference"] < 1e-4
    assert any(asked.path == PICTURE for asked in hub.log)


def test_onnx_quick_start_and_dynamic_shapes(hub: HubServer, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="it runs the models")
    results = run_examples(hub, tmp_path, "quick_start", "dynamic_shapes", script="onnx_examples.py")
    assert results["quick_start"]["program"] == "ONNXProgram" and results["quick_start"]["difference"] < 1e-4
    assert results["dynamic_shapes"]["dims"] == {"input_ids": ["batch", "seq"], "attention_mask": ["batch", "seq"]}
    assert results["dynamic_shapes"]["difference"] < 1e-4


def test_onnx_multimodal_generation(hub: HubServer, tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime", reason="it runs the models")
    pytest.importorskip("PIL", reason="the processor reads pictures with it")
    results = run_examples(hub, tmp_path, "multimodal", script="onnx_examples.py")["multimodal"]
    names = ["image_encoder", "language_model", "lm_head", "decode"]
    assert results["components"] == dict.fromkeys(names, "ONNXProgram")
    assert max(results["differences"].values()) < 1e-4


def test_executorch_examples(hub: HubServer, tmp_path: Path) -> None:
    pytest.importorskip("executorch", reason="it runs the programs")
    pytest.importorskip("PIL", reason="the processor reads pictures with it")
    results = run_examples(hub, tmp_path, "quick_start", "dynamic_shapes", "multimodal", script="executorch_examples.py")
    assert results["quick_start"]["program"] == "ExecutorchProgram" and results["quick_start"]["difference"] < 1e-4
    assert results["dynamic_shapes"]["dims"] == {"input_ids": ["batch", "seq"], "attention_mask": ["batch", "seq"]}
    names = ["image_encoder", "language_model", "lm_head", "decode"]
    assert results["multimodal"]["components"] == dict.fromkeys(names, "ExecutorchProgram")
    assert max(results["multimodal"]["differences"].values()) < 1e-4
