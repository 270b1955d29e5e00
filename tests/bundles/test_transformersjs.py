"""Bundles for transformers.js, run in it. All kinds of models are in `python tests/sweeps transformersjs`; here are those that need a graph
of their own: an encoder and decoder, a text with a picture, and pictures with texts."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from sweeps import transformersjs as sweep
from node_modules import node, node_modules

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))

# Node and its packages are installed by tools/setup; a machine without them builds and tests everything else.
pytestmark = pytest.mark.skipif(node() is None or node_modules() is None, reason="tools/setup has not installed transformers.js")


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> dict[str, sweep.Row]:
    scratch = tmp_path_factory.mktemp("js")
    (scratch / "bundles").mkdir()
    plan = [("t5", "seq2seq"), ("llava", "vision-language"), ("clip", "image and text")]
    made = sweep.run(ARGOSY, node_modules() / "@huggingface" / "transformers", plan, None, scratch)
    config = json.loads((scratch / "bundles" / "t5" / "config.json").read_text())
    assert config["transformers.js_config"] == {
        "dtype": "fp32", "use_external_data_format": {"decoder_model_merged.onnx": 1, "encoder_model.onnx": 1},
    }  # fmt: skip
    return {row.model_type: row for row in made}


@pytest.mark.parametrize("model_type", ["t5", "llava", "clip"])
def test_gives_what_torch_gives(rows: dict[str, sweep.Row], model_type: str) -> None:
    assert rows[model_type].verdict == "ok", rows[model_type].verdict
