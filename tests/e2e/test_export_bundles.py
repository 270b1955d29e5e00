"""What is in a bundle, whatever its engine: files, manifest, card, sizes. That engines run them is tested in tests/bundles."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from exporter_tool import Exporter, make_exporter, save_twins

MAKE_LLAMA = Path(__file__).parents[1] / "bench" / "make_llama.py"


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("home"), "onnx")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_twins(tmp_path_factory.mktemp("twins"), "llama", "bert")


@pytest.fixture(scope="module")
def whisper(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """30 MB, of which encoder and decoder share nothing."""
    from transformers import WhisperConfig, WhisperForConditionalGeneration

    from argosy.capture.twin import save

    layers = {"encoder_layers": 3, "decoder_layers": 3, "encoder_ffn_dim": 1024, "decoder_ffn_dim": 1024}
    heads = {"encoder_attention_heads": 4, "decoder_attention_heads": 4}
    config = WhisperConfig(d_model=256, vocab_size=2000, **layers, **heads)
    config.bos_token_id = config.eos_token_id = config.pad_token_id = config.decoder_start_token_id = 1
    config.suppress_tokens = config.begin_suppress_tokens = None
    return save(WhisperForConditionalGeneration(config), tmp_path_factory.mktemp("whisper") / "model")


def contents(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()
    }


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_a_bundle_is_whole_and_says_what_it_is(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    model = tmp_path / "models--org--name/snapshots/0123abc"
    shutil.copytree(twins / "llama", model)
    (model / "README.md").write_text("---\nlicense: apache-2.0\n---\n# Llama\n")
    (model / "LICENSE").write_text("terms")
    (model / "modeling_own.py").write_text("raise SystemExit")
    exporter.export(model, "--for", "genai", tmp_path / "out")
    files = contents(tmp_path / "out")
    manifest = json.loads(files["bundle.json"])
    assert {*manifest["files"], "bundle.json"} == set(files)
    assert manifest["engine"] == "genai"
    assert manifest["graphs"] == [{"file": "model.onnx", "component": "decode", "renamed": {}}]
    kept = {"config.json", "generation_config.json", "tokenizer.json", "chat_template.jinja", "LICENSE"}
    assert kept | {"genai_config.json", "model.onnx", "model.onnx.data", "README.md"} <= set(files)
    assert "modeling_own.py" not in files and "model.safetensors" not in files
    card = files["README.md"].decode()
    head, own, rest = card.split("---\n", 2)[1], *card.partition("## The model's own card")[::2]
    assert "library_name: onnxruntime-genai\npipeline_tag: text-generation\nbase_model: org/name\nlicense: apache-2.0\n" in head
    assert "commit `0123abc`" in own and "with `--for=genai`" in own and rest.endswith("\n# Llama\n")
    assert manifest["source"] == {"name": "org/name", "commit": "0123abc"} and manifest["options"] == ["--for=genai"]
    assert not [name for name, data in files.items() if str(tmp_path).encode() in data]


def test_the_same_bytes_and_only_own_folders_are_replaced(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", "--engine", "transformersjs", tmp_path / "out")
    first = contents(tmp_path / "out")
    assert "onnx/model.onnx" in first
    exporter.export(twins / "llama", "--engine", "transformersjs", "--threads", "4", tmp_path / "out")
    assert contents(tmp_path / "out") == first
    exporter.export(twins / "llama", "--for", "genai", tmp_path / "out")  # another engine's takes its place
    assert not (tmp_path / "out/onnx").exists()
    (tmp_path / "out/notes").mkdir()
    (tmp_path / "out/notes/mine.txt").write_text("keep")
    said = exporter.export(twins / "llama", "--for", "genai", tmp_path / "out", code=1)
    assert 'holds "notes"' in said and "did not write" in said
    assert (tmp_path / "out/notes/mine.txt").read_text() == "keep"


def test_what_an_engine_cannot_run_is_refused_before_anything_is_written(
    exporter: Exporter, twins: Path, tmp_path: Path
) -> None:
    said = exporter.export(twins / "bert", "--for", "genai", tmp_path / "out", code=1)
    assert "cannot run this model" in said and "consists of model" in said and "--for plain" in said
    said = exporter.export(twins / "llama", "--for", "genai", tmp_path / "out.onnx", code=1)
    assert "wants a folder" in said
    assert list(tmp_path.iterdir()) == []


def test_what_a_model_lacks_is_told(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    shutil.copytree(twins / "llama", model)
    (model / "tokenizer.json").unlink()
    said = exporter.export(model, "--for", "genai", tmp_path / "out", code=1)
    assert "has no tokenizer.json" in said and "--for plain" in said
    assert not (tmp_path / "out").exists()
    exporter.export(model, "--for", "plain", tmp_path / "out")


@pytest.mark.parametrize("engine", ["genai", "plain"])
def test_weights_are_written_once(exporter: Exporter, whisper: Path, twins: Path, tmp_path: Path, engine: str) -> None:
    exporter.export(whisper, "--for", engine, tmp_path / "whisper")
    assert size(tmp_path / "whisper") <= 1.02 * size(whisper) + 5_000_000
    subprocess.run([sys.executable, MAKE_LLAMA, "17m", tmp_path / "llama"], check=True)
    for name in ("tokenizer.json", "tokenizer_config.json"):  # which engines ask for
        shutil.copy(twins / "llama" / name, tmp_path / "llama" / name)
    exporter.export(tmp_path / "llama", "--for", engine, tmp_path / "out")
    assert size(tmp_path / "out") <= 1.02 * size(tmp_path / "llama") + 5_000_000
