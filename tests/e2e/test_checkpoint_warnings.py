"""What an export says of a checkpoint that is right to export and still worth a word."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import torch
import transformers
from exporter_tool import make_exporter
from safetensors.torch import load_file, save_file

ENDINGS = {"pt2": ".pt2", "onnx": ".onnx", "executorch": ".pte"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("warnings")


@pytest.fixture
def bert(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    config = transformers.BertConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4,
                                     vocab_size=96, max_position_embeddings=64)  # fmt: skip
    transformers.BertModel(config).save_pretrained(tmp_path / "bert")
    return tmp_path / "bert"


def change(model: Path, **tensors: torch.Tensor) -> None:
    file = model / "model.safetensors"
    save_file({**load_file(file), **tensors}, file, {"format": "pt"})


@pytest.mark.parametrize("backend", ENDINGS)
def test_a_usual_checkpoint_is_worth_no_word(backend: str, folder: Path, bert: Path, tmp_path: Path) -> None:
    change(bert, **{"embeddings.position_ids": torch.arange(64)[None]})  # as old checkpoints have them
    said = make_exporter(folder, backend).export(bert, tmp_path / f"m{ENDINGS[backend]}")
    assert not any(text in said for text in ("NaN", "nothing that is exported uses", "modules.json", "ties")), said


@pytest.mark.parametrize("backend", ENDINGS)
def test_weights_that_are_no_numbers_are_named(backend: str, folder: Path, bert: Path, tmp_path: Path) -> None:
    dense = "encoder.layer.0.output.dense.weight"
    norm = "embeddings.LayerNorm.weight"
    tensors = load_file(bert / "model.safetensors")
    tensors[dense][3, 5] = float("nan")
    tensors[norm][31] = float("-inf")
    change(bert, **tensors)
    said = make_exporter(folder, backend).export(bert, tmp_path / f"m{ENDINGS[backend]}")
    assert f'2 tensors of the checkpoint have values that are NaN or infinite: "{norm}", "{dense}"' in said


def test_tensors_that_nothing_uses_are_counted_and_named(folder: Path, bert: Path, tmp_path: Path) -> None:
    change(bert, **{f"extra.{i}.weight": torch.ones(2) for i in range(5)})
    said = make_exporter(folder, "pt2").export(bert, tmp_path / "m.pt2")
    assert (
        'nothing that is exported uses 5 tensors of the checkpoint: "extra.0.weight", "extra.1.weight", "extra.2.weight" and 2 more'
        in said
    )


def test_modules_behind_the_model_are_told_and_in_the_card(folder: Path, bert: Path, tmp_path: Path) -> None:
    kinds = ["Transformer", "Pooling", "Normalize"]
    modules = [
        {"idx": i, "name": str(i), "path": f"{i}_{kind}" if i else "", "type": f"sentence_transformers.models.{kind}"}
        for i, kind in enumerate(kinds)
    ]
    (bert / "modules.json").write_text(json.dumps(modules))
    (bert / "1_Pooling").mkdir()
    (bert / "1_Pooling/config.json").write_text(
        json.dumps({"word_embedding_dimension": 32, "pooling_mode_mean_tokens": True})
    )
    text = 'modules.json puts "Pooling" (mean), then "Normalize" behind the model; that is not part of the export'
    assert text in make_exporter(folder, "onnx").export(bert, "-o", tmp_path / "bundle")
    assert text in (tmp_path / "bundle/README.md").read_text()


@pytest.mark.parametrize("backend", ENDINGS)
def test_classification_without_a_padding_token_takes_one_row(backend: str, folder: Path, tmp_path: Path) -> None:
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=32, intermediate_size=48, num_hidden_layers=1, num_attention_heads=4, vocab_size=96, num_labels=3,
        max_position_embeddings=64, initializer_range=0.2,
    )  # fmt: skip
    transformers.LlamaForSequenceClassification(config).eval().save_pretrained(tmp_path / "m")
    exporter = make_exporter(folder, backend)
    said = exporter.export(tmp_path / "m", tmp_path / f"m{ENDINGS[backend]}")
    assert "dim 0 of input_ids is always 1: the model refuses more rows (Cannot handle batch sizes > 1" in said
    assert '"pad_token_id" in config.json' in said
    exporter.run("check", tmp_path / f"m{ENDINGS[backend]}", "--against", tmp_path / "m")


def test_classification_with_a_padding_token_takes_batches(tmp_path: Path) -> None:
    from argosy.capture.session import open_session

    for changes, takes_batches in (({"pad_token_id": 0}, True), ({}, False)):
        config = transformers.GPT2Config(
            n_embd=32, n_layer=1, n_head=4, vocab_size=96, n_positions=64, architectures=["GPT2ForSequenceClassification"],
            bos_token_id=1, eos_token_id=2, **changes,
        )  # fmt: skip
        (dims,) = open_session(config).dims.values()
        assert (dims.names["input_ids"].get(0) == "batch") == takes_batches
