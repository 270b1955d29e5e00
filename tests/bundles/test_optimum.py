"""Bundles for Optimum, fed as it feeds them. Optimum itself needs another transformers than ours, and so an environment of its
own: `python tests/sweeps optimum` runs it there."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from sweeps import transformersjs_cases as cases
from sweeps.exporting import export_bundle
from sweeps.transformersjs import make_twin
from sweeps.twin_texts import NEW_TOKENS

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))


@pytest.fixture(scope="module")
def t5(tmp_path_factory: pytest.TempPathFactory) -> tuple[cases.Case, Path]:
    scratch = tmp_path_factory.mktemp("optimum")
    cases.quiet()
    case = cases.seq2seq(make_twin("t5", "seq2seq", scratch / "twin"), "t5")
    assert export_bundle(ARGOSY, "optimum", scratch / "twin", scratch / "bundle")[0] == ""
    return case, scratch / "bundle"


def opened(folder: Path, name: str) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(folder / name, options)


def test_both_graphs_share_one_data_file(t5: tuple[cases.Case, Path]) -> None:
    assert sorted(file.name for file in t5[1].glob("*.onnx*")) == ["decoder_model_merged.onnx", "encoder_model.onnx", "encoder_model.onnx_data"]


def test_states_are_in_the_order_that_optimum_counts_on(t5: tuple[cases.Case, Path]) -> None:
    names = [each.name for each in opened(t5[1], "decoder_model_merged.onnx").get_inputs() if each.name.startswith("past")]
    parts = ("decoder.key", "decoder.value", "encoder.key", "encoder.value")
    assert names == [f"past_key_values.{layer}.{part}" for layer in range(len(names) // 4) for part in parts]


def test_takes_empty_states_of_any_shape_and_gives_what_torch_gives(t5: tuple[cases.Case, Path]) -> None:
    case, folder = t5
    given = case.request["inputs"]
    inputs = {name: np.array(spec["data"], np.int64).reshape(spec["dims"]) for name, spec in given.items()}
    hidden = opened(folder, "encoder_model.onnx").run(["last_hidden_state"], inputs)[0]
    decoder = opened(folder, "decoder_model_merged.onnx")
    outputs = [each.name for each in decoder.get_outputs()]
    # What Optimum takes for the number of heads and their size is not what all models have.
    states = {each.name: np.zeros((1, 7, 0, 5), np.float32) for each in decoder.get_inputs() if each.name.startswith("past")}
    tokens = [json.loads((folder / "generation_config.json").read_text())["decoder_start_token_id"]]
    crossed: dict[str, Any] = {}
    for _ in range(NEW_TOKENS):
        feed = {"input_ids": np.array([tokens[-1:]]), "encoder_attention_mask": inputs["attention_mask"], "encoder_hidden_states": hidden}
        made = dict(zip(outputs, decoder.run(None, feed | states), strict=True))
        tokens.append(int(made["logits"][0, -1].argmax()))
        states = {name.replace("present", "past_key_values"): value for name, value in made.items() if name.startswith("present")}
        kept = {name: value for name, value in states.items() if ".encoder." in name}
        crossed = crossed or kept
        assert all(np.array_equal(crossed[name], value) for name, value in kept.items()), "given back as they were given"
    assert case.judge([tokens]) == ""


def test_tokenizer_is_one_that_transformers_4_knows(t5: tuple[cases.Case, Path]) -> None:
    settings = json.loads((t5[1] / "tokenizer_config.json").read_text())
    assert settings["tokenizer_class"] != "TokenizersBackend"
    assert not isinstance(settings.get("extra_special_tokens"), list)
