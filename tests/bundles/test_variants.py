"""Several variants of a model in one export: the bytes of each are those of an export of it alone, and each runs in its engine."""

from __future__ import annotations

import json
import re
import sysconfig
from pathlib import Path

import pytest
from node_modules import node, node_modules
from sweeps.exporting import export
from test_fast_graphs import ARGOSY, save_model

from argosy.check.full import check_bundle
from argosy.errors import ExportError
from argosy.run.bundles import open_bundle

TRAINED = Path(__file__).resolve().parents[1] / "fixtures/trained-decoder"
ALL = {"fp32": "", "fp16": "_fp16", "q4": "_q4", "q4f16": "_q4f16", "q8": "_quantized"}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("variants") / "model"
    save_model("llama", folder, {})
    return folder


def made(model: Path, engine: str, dtypes: str) -> Path:
    bundle = model.parent / f"{engine}-{dtypes}"
    refusal, said = export(ARGOSY, "onnx", "--model", model, "--for", engine, "--dtype", dtypes, "--check", "off", "-o", bundle)
    assert refusal == "", said
    return bundle


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


@pytest.fixture(scope="module")
def in_one_bundle(model: Path) -> Path:
    return made(model, "transformersjs", "all")


def test_graphs_of_all_variants_are_in_one_bundle(model: Path, in_one_bundle: Path) -> None:
    files = contents(in_one_bundle)
    manifest, config = (json.loads(files[name]) for name in ("bundle.json", "config.json"))
    assert [each["name"] for each in manifest["variants"]] == list(ALL) and "--dtype=" + ",".join(ALL) in manifest["options"]
    assert config["transformers.js_config"]["use_external_data_format"] == {f"model{suffix}.onnx": 1 for suffix in ALL.values()}
    for name, suffix in ALL.items():
        alone = contents(made(model, "transformersjs", name))
        graphs = {file: data for file, data in alone.items() if file.startswith("onnx/")}
        assert set(graphs) == {f"onnx/model{suffix}.onnx", f"onnx/model{suffix}.onnx_data"}
        assert {file: files[file] for file in graphs} == graphs
    assert sum(file.startswith("onnx/") for file in files) == 2 * len(ALL)


@pytest.mark.skipif(node() is None or node_modules() is None, reason="tools/setup has not installed transformers.js")
@pytest.mark.parametrize("name", ALL)
def test_each_generates_in_transformersjs(name: str, model: Path, in_one_bundle: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(node_modules()))
    checked = check_bundle(in_one_bundle, model, variant=name, count=8)
    assert checked.ok, checked.summary()
    assert any(row.origin == "tokens" and row.ok for row in checked.rows)


@pytest.mark.skipif(node() is None or node_modules() is None, reason="tools/setup has not installed transformers.js")
def test_mixed_float16_generates_in_transformersjs_as_its_float16(model: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NODE_PATH", str(node_modules()))
    bundle = made(model, "transformersjs", "mixed16")
    assert (bundle / "onnx/model_fp16.onnx").is_file()
    checked = check_bundle(bundle, model, count=8)
    assert checked.ok, checked.summary()
    assert any(row.origin == "tokens" and row.ok for row in checked.rows)


def test_mixed_float16_is_calibrated_on_the_graphs_of_the_bundle(model: Path) -> None:
    text = model.parent / "text.txt"
    text.write_text("def add(a, b):\n    return a + b\n" * 8)
    bundle = model.parent / "calibrated"
    refusal, said = export(ARGOSY, "onnx", "--model", model, "--for", "genai", "--dtype", "mixed16", "--calibrate", text, "--check", "off",
                           "-o", bundle)  # fmt: skip
    assert refusal == "", said
    assert re.search(r"model.onnx: (\d+) of \1 products compute in float16", said) and "no values were seen" not in said, said
    checked = check_bundle(bundle, model, count=8)
    assert checked.ok and any(row.origin == "tokens" and row.ok for row in checked.rows), checked.summary()


def test_other_engines_get_a_folder_for_each(model: Path) -> None:
    both = made(model, "genai", "fp32,q4")
    for name in ("fp32", "q4"):
        assert contents(both / name) == contents(made(model, "genai", name))
    assert json.loads((both / "bundle.json").read_text())["folders"] == ["fp32", "q4"]
    assert open_bundle(both, "q4").folder == both / "q4"
    with pytest.raises(ExportError, match="a folder for each variant: fp32, q4"):
        open_bundle(both)
    checked = check_bundle(both, model, variant="q4", count=8)
    assert checked.ok and any(row.origin == "tokens" and row.ok for row in checked.rows)
    # An export may take the place of an earlier one, and of nothing else.
    assert made(model, "genai", "fp32,q4") == both
    (both / "q4/own.txt").write_text("of the user")
    refusal, _ = export(ARGOSY, "onnx", "--model", model, "--for", "genai", "--dtype", "fp32,q4", "--check", "off", "-o", both)
    assert "q4/own.txt" in refusal and (both / "q4/own.txt").exists()


def test_each_is_checked(model: Path) -> None:
    refusal, said = export(ARGOSY, "onnx", "--model", model, "--for", "genai", "--dtype", "fp32,q4", "-o", model.parent / "checked")
    assert refusal == "", said
    for name in ("fp32", "q4"):
        assert f"check of {name}: a small model of this kind, exported with the same options, agrees with PyTorch" in said
        check = json.loads((model.parent / "checked" / name / "bundle.json").read_text())["check"]
        assert check["kind"] == "twin" and "greedy tokens in the engine" in check["compared"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--dtype", "fp32,q4", "-o", "one.onnx"), "is to be one model, but several variants are asked for"),
        (("--dtype", "q4", "--min-agreement", "0.9"), "are about the model's own weights"),
        (("--dtype", "q4", "--quantize", "int8"), "says how weights are stored, and so does --quantize"),
        (("--for", "transformersjs", "--dtype", "fp16,mixed16"), "have the same names in a bundle for transformers.js"),
        (("--dtype", "fp32", "--calibrate", "text.txt"), "values are seen for mixed float16, which is not asked for"),
        (("--dtype", "fp16", "--mixed16"), "mixed float16 is made of float32, not of float16"),
        (("--mixed16", "--quantize", "int4"), "weights in few bits have no mixed float16"),
        (("--dtype", "fp32,q4", "--capture", "x.capture"), "needs captures of its own"),
        (("--for", "transformersjs", "--dtype", "fp32,q4", "--weights", "link"), "wants data files of its own"),
    ],
)
def test_what_cannot_be_is_refused(options: tuple[str, ...], expected: str, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    refusal, said = export(ARGOSY, "onnx", "--model", model, *options)
    assert expected in refusal, said
    assert not list(tmp_path.iterdir())


def test_what_each_costs_is_measured_and_limited(tmp_path: Path) -> None:
    text = Path(sysconfig.get_path("stdlib")) / "textwrap.py"  # which it was not trained on
    arguments = ("onnx", "--model", TRAINED, "--for", "genai", "--check", "full", "--text", text, "-o", tmp_path / "out")
    refusal, said = export(ARGOSY, *arguments, "--dtype", "fp32,fp16,q4,q8", "--min-agreement", "0.5", "--max-kl", "0.5")
    assert refusal == "", said
    found = {name: json.loads((tmp_path / "out" / name / "bundle.json").read_text())["check"] for name in ("fp32", "fp16", "q4", "q8")}
    assert "quality" not in found["fp32"]  # it computes what the model does
    quality = {name: check["quality"] for name, check in found.items() if name != "fp32"}
    for name, figures in quality.items():
        assert figures["tokens"] > 500 and figures["perplexity"] > 1
        line = f"best token as the unquantised model's in {100 * figures['agreement']:.1f} % of {figures['tokens']} tokens"
        assert line in said and line in found[name]["compared"] and line in (tmp_path / "out" / name / "README.md").read_text()
    assert quality["fp16"]["kl"] < quality["q8"]["kl"] < quality["q4"]["kl"]
    assert quality["fp16"]["agreement"] >= 0.995
    assert abs(quality["q8"]["perplexity"] / quality["q8"]["perplexity_before"] - 1) < 0.005
    limit = quality["q4"]["kl"] / 2
    refusal, _ = export(ARGOSY, *arguments[:-1], tmp_path / "other", "--dtype", "q4", "--max-kl", str(limit))
    assert "the KL divergence is" in refusal and f"more than --max-kl {limit}" in refusal
    assert not (tmp_path / "other").exists()
    refusal, _ = export(ARGOSY, *arguments[:-1], tmp_path / "other", "--dtype", "q4", "--min-agreement", "1")
    assert "less than --min-agreement 1" in refusal
