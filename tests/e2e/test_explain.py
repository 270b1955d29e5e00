"""`argosy explain` and the pages of `argosy inspect --html`, on exports of small models."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest
from exporter_tool import Exporter, make_exporter, save_twins
from page_reader import text_of_page

onnx = pytest.importorskip("onnx", reason="files of others are made with it")

LAYERS = 4


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("home"), "onnx")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Llama has four layers: in a graph, those after the first are alike."""
    from transformers import LlamaConfig

    from argosy.capture.twin import build, save, shrink

    folder = save_twins(tmp_path_factory.mktemp("twins"), "bert")
    config = shrink(LlamaConfig())
    config.num_hidden_layers = LAYERS
    save(build(config), folder / "llama")
    return folder


@pytest.fixture(scope="module")
def fused(exporter: Exporter, twins: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("fused") / "out"
    exporter.export(twins / "llama", "--for", "genai", folder)
    return folder


@pytest.fixture(scope="module")
def plain(exporter: Exporter, twins: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("plain") / "out"
    exporter.export(twins / "llama", "--optimize", "safe", folder)
    return folder


def lines_of(text: str) -> dict[str, str]:
    """What is said of each thing, by its name, in one line."""
    rows: dict[str, str] = {}
    name = ""
    for line in text.splitlines():
        if line.startswith("   "):
            rows[name] += " " + line.strip()
        elif line.startswith("  "):
            name, said = line.split(None, 1)
            rows[name] = said
    return rows


def test_what_was_recognised_is_told(exporter: Exporter, fused: Path) -> None:
    said, _ = exporter.run("explain", fused)
    assert said.startswith(f"{fused}: folder with 1 graph, LlamaForCausalLM, for genai\n\nmodel.onnx: ONNX model, ")
    assert said.count("\n") <= 40
    rows = lines_of(said)
    assert rows["attention"].startswith(f"{LAYERS} × com.microsoft.GroupQueryAttention (")
    assert f"{2 * LAYERS} × com.microsoft.SkipSimplifiedLayerNormalization" in rows["norms"]
    assert rows["rotary"] == f"{LAYERS} × inside com.microsoft.GroupQueryAttention (do_rotary)"
    assert "written out" not in said
    assert "com.microsoft 1" in rows["opsets"]
    assert f"{2 * LAYERS} past states" in rows["inputs"]
    assert exporter.run("explain", fused / "model.onnx")[0].endswith(said.partition(": ONNX model, ")[2])


def test_sizes_of_caches_are_those_of_the_model(exporter: Exporter, fused: Path, twins: Path) -> None:
    config = json.loads((twins / "llama/config.json").read_text())
    width = config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]
    a_token = 2 * 4 * config["num_hidden_layers"] * config["num_key_value_heads"] * width
    rows = lines_of(exporter.run("explain", fused)[0])
    assert f"{a_token:,} bytes a token (past_sequence): " in rows["caches"], rows["caches"]
    assert " at 1,024, " in rows["caches"] and rows["caches"].endswith(" at 32,768 tokens")


def test_what_is_written_out_is_told_and_why(exporter: Exporter, plain: Path) -> None:
    said, _ = exporter.run("explain", plain)
    rows = lines_of(said)
    assert rows["attention"].startswith(f"{LAYERS} × a Softmax between two products, written out in model.layers 0 to ")
    assert rows["norms"].startswith(f"{2 * LAYERS + 1} × an RMS norm in small ops, written out in model.layers 0 to ")
    assert rows["rotary"].startswith(f"{2 * LAYERS} × products with sines and cosines in small ops, written out in ")
    for row in ("attention", "norms", "rotary"):
        assert rows[row].endswith("why: opset 22 has no op for it, 23 has; the file uses no ops of ONNX Runtime")


def test_a_model_without_caches(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "bert", tmp_path / "out")
    rows = lines_of(exporter.run("explain", tmp_path / "out")[0])
    assert rows["caches"] == "none, by the names of inputs and outputs"
    assert rows["rotary"] == "none found"
    assert "LayerNormalization" in rows["norms"]


@pytest.mark.parametrize("name", ["fused", "plain"])
def test_a_page_shows_the_graph(exporter: Exporter, name: str, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder: Path = request.getfixturevalue(name)
    (model,) = folder.glob("*.onnx")
    page = tmp_path / "graph.html"
    text, _ = exporter.run("inspect", model, "--html", page)
    assert text == exporter.run("inspect", model)[0]
    shown = text_of_page(page)
    for part in (
        "Interface",
        "What was recognised",
        "Layer by layer",
        "Caches",
        "Ops",
        "Weights",
        "input_ids",
        "self_attn",
        "past state",
    ):
        assert part in shown, part
    assert re.search(
        r"layers 0 : \d+ nodes .* layers 1 to 3 : the same \d+ nodes in each; here layers 1 ", shown, re.DOTALL
    )
    assert ("GroupQueryAttention" in shown) == (name == "fused")
    assert ("attention, written out" in shown) == (name == "plain")
    first = page.read_bytes()
    exporter.run("inspect", model, "--html", page)
    assert page.read_bytes() == first
    assert str(tmp_path).encode() not in first and str(folder.parent).encode() not in first


def hostile_model(path: Path) -> None:
    bad = "<img src=x onerror=alert(1)>\"'&"
    value = lambda name: onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, ["b", bad])  # noqa: E731
    node = onnx.helper.make_node("Neg", ["past" + bad], ["present" + bad], name=f"{bad}.0/{bad}\x1b[2J")
    graph = onnx.helper.make_graph([node], bad, [value("past" + bad)], [value("present" + bad)])
    onnx.save(onnx.helper.make_model(graph, producer_name=bad, opset_imports=[onnx.helper.make_opsetid("", 22)]), path)


def test_names_of_a_file_are_only_text(exporter: Exporter, tmp_path: Path) -> None:
    hostile_model(tmp_path / "<b>.onnx")
    exporter.run("inspect", tmp_path / "<b>.onnx", "--html", tmp_path / "page.html")
    assert "onerror=alert(1)" in text_of_page(tmp_path / "page.html")
    assert "\x1b" not in exporter.run("explain", tmp_path / "<b>.onnx")[0]


def test_folders_of_anybody(exporter: Exporter, fused: Path, tmp_path: Path) -> None:
    (tmp_path / "onnx").mkdir()
    for name in ("model.onnx", "model.onnx.data"):
        shutil.copy(fused / name, tmp_path / "onnx")
    said, _ = exporter.run("explain", tmp_path)
    assert said.startswith(f"{tmp_path}: folder with 1 graph\n\nonnx/model.onnx: ONNX model, ")
    (tmp_path / "bundle.json").write_text(json.dumps({"graphs": [{"file": "../model.onnx"}]}))
    assert "not a plain path inside the folder" in exporter.run("explain", tmp_path, code=1)[1]
    (tmp_path / "bundle.json").write_text(json.dumps({"graphs": [{"file": "gone.onnx"}]}))
    assert "gone.onnx" in exporter.run("explain", tmp_path, code=1)[1]


def test_a_bundle_is_inspected_graph_by_graph(exporter: Exporter, fused: Path) -> None:
    said, _ = exporter.run("inspect", fused)
    assert said == exporter.run("inspect", fused / "model.onnx")[0]
    assert [each["kind"] for each in exporter.json("inspect", fused)["graphs"]] == ["onnx"]
    _, stderr = exporter.run("inspect", fused, "--html", fused.parent / "page.html", code=1)
    assert "name one for --html" in stderr


def test_what_cannot_be_explained_is_refused(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    said = exporter.run("explain", twins / "llama", code=1)[1]
    assert "there is no .onnx or .pte file in" in said and "argosy export" in said
    said = exporter.run("explain", twins / "llama/model.safetensors", code=1)[1]
    assert "is a safetensors checkpoint" in said and "argosy inspect" in said
    assert "there is no file or folder" in exporter.run("explain", tmp_path / "nothing", code=1)[1]
    said = exporter.run("inspect", twins / "llama/model.safetensors", "--html", tmp_path / "x.html", code=1)[1]
    assert "there is no page of a safetensors checkpoint" in said and not (tmp_path / "x.html").exists()


def test_programs_of_executorch(twins: Path, tmp_path: Path) -> None:
    exporter = make_exporter(tmp_path / "home", "executorch")
    exporter.export(twins / "llama", "--task", "text-generation", "--max-seq-len", "64", tmp_path / "out")
    said, _ = exporter.run("explain", tmp_path / "out")
    assert ", for executorch\n\nmodel.pte: ExecuTorch program, 1 method and " in said
    rows = lines_of(said)
    assert rows["method"].startswith("forward: ")
    assert f"{LAYERS} × llama::custom_sdpa" in rows["attention"]
    assert rows["caches"].startswith(f"{2 * LAYERS} states, ") and rows["caches"].endswith(
        " reserved, for texts of 64 tokens"
    )
    assert "XnnpackBackend" in rows["delegates"]
