"""Model cards show how a bundle is run: their code runs on the bundle that has them. Cards of models that see and hear are
run where tests of bundles make such bundles."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import pytest
from card_run import run_card
from node_modules import node, node_modules
from prepared import DECODER, export
from thorough import always

pytestmark = pytest.mark.skipif(find_spec("torch") is None, reason="captures are made with it")

TASK = ("executorch", "--task", "text-generation", "--max-seq-len", "96")
#: What is exported, and a Python package without which it cannot run.
BUNDLES = {
    "plain": (("onnx",), "onnxruntime"),
    "genai": (("onnx", "--for", "genai"), "onnxruntime_genai"),
    "optimum": (("onnx", "--for", "optimum"), "optimum"),
    "executorch": (("executorch",), "executorch"),
    "executorch text": (TASK, "executorch"),
    "executorch text in 4 bits": ((*TASK, "--qlinear", "8da4w"), "executorch"),
    "executorch text in 4 bits, embedding in 8, data beside": (
        (*TASK, "--qlinear", "8da4w", "--qembedding", "8w", "--ptd"),
        "executorch",
    ),
    "executorch text by the runtime's own kernels": ((*TASK, "--no-custom-sdpa", "--no-custom-kv-cache"), "executorch"),
}


#: Others have the code of one of these, or of a page of docs/how-to, which runs.
ALWAYS = ("plain", "genai", "optimum", "executorch", "executorch text in 4 bits, embedding in 8, data beside")


@pytest.mark.parametrize("name", always(ALWAYS, BUNDLES))
def test_a_cards_code_runs(name: str, environment: dict[str, str], tmp_path: Path) -> None:
    arguments, package = BUNDLES[name]
    if find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    bundle = tmp_path / "bundle"
    export(environment, *arguments, "--model", DECODER, "-o", bundle)
    said = run_card(bundle, tmp_path)
    # Text that this model writes, or shapes.
    assert len(said) > 20, said


@pytest.mark.skipif(node() is None or node_modules() is None, reason="tools/setup has not installed transformers.js")
def test_code_for_transformersjs_runs(environment: dict[str, str], tmp_path: Path) -> None:
    export(environment, "onnx", "--for", "transformersjs", "--model", DECODER, "-o", tmp_path / "bundle")
    said = run_card(tmp_path / "bundle", tmp_path, node(), node_modules())
    assert "generated_text" in said
