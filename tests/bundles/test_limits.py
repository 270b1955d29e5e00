"""Exports say for which sizes they are right, where the engine looks for it, and refuse what they are not right for."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
import torch
import transformers

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))

TINY = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 128,
    "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip
#: Where block-sparse attention begins: (5 + 2 * 3) blocks of 8.
SPARSE = 88
ORIGINAL = 64


def argosy(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([ARGOSY, *map(str, arguments)], capture_output=True, text=True, timeout=600)


@pytest.fixture(scope="module")
def sparse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = transformers.BigBirdConfig(
        **TINY, block_size=8, num_random_blocks=3, max_position_embeddings=256, attention_type="block_sparse"
    )
    folder = tmp_path_factory.mktemp("sparse") / "model"
    torch.manual_seed(0)
    transformers.BigBirdForMaskedLM(config).save_pretrained(folder)
    return folder


def test_a_pt2_file_refuses_lengths_of_the_other_branch(sparse: Path, tmp_path: Path) -> None:
    done = argosy("export", "pt2", "--model", sparse, "--check", "off", tmp_path / "model.pt2")
    assert done.returncode == 0, done.stderr
    assert (
        f"model is right where sequence <= {SPARSE} (transformers/models/big_bird/modeling_big_bird.py:" in done.stderr
    )
    extra = {"argosy.json": ""}
    program = torch.export.load(tmp_path / "model.pt2", extra_files=extra).module()
    (component,) = json.loads(extra["argosy.json"])["components"]
    assert component["dims"]["sequence"]["max"] == SPARSE
    assert component["guards"][0]["condition"] == f"sequence <= {SPARSE}"
    eager = transformers.BigBirdForMaskedLM.from_pretrained(sparse).eval()
    for length in (SPARSE + 8, SPARSE):  # the longer one first: a short text turns sparse attention off for good
        ids = torch.randint(3, 128, (2, length))
        call = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        with torch.no_grad():
            expected = eager(**call).logits
        if length == SPARSE:
            assert torch.allclose(program(**call)["logits"], expected, atol=1e-5)
            continue
        with pytest.raises(Exception, match=str(SPARSE)):
            program(**call)


def test_a_range_on_both_sides_of_a_limit_is_refused(sparse: Path, tmp_path: Path) -> None:
    for backend, words in (("onnx", "sequence=1..200: the model's code takes another way"), ("executorch", "right up to 88 only")):  # fmt: skip
        done = argosy("export", backend, "--model", sparse, "--check", "off", "--shape", "sequence=1..200",
                      "-o", tmp_path / backend)  # fmt: skip
        assert done.returncode == 1, done.stderr
        assert words in " ".join(done.stderr.split()), done.stderr
        assert not (tmp_path / backend).exists()


def test_a_context_ends_where_the_rotary_embedding_changes(tmp_path: Path) -> None:
    pytest.importorskip("onnxruntime_genai")
    from argosy.capture.twin import save

    factors = {
        "rope_type": "longrope",
        "short_factor": [1.0 + 0.1 * i for i in range(8)],
        "long_factor": [2.0 + 0.5 * i for i in range(8)],
    }
    config = transformers.Phi3Config(
        **TINY, num_key_value_heads=2, rope_scaling=factors, max_position_embeddings=4 * ORIGINAL,
        original_max_position_embeddings=ORIGINAL,
    )  # fmt: skip
    torch.manual_seed(0)
    save(transformers.Phi3ForCausalLM(config), tmp_path / "model")
    done = argosy("export", "onnx", "--model", tmp_path / "model", "--for", "genai", tmp_path / "out")
    assert done.returncode == 0, done.stderr
    assert "check twin" in done.stderr
    settings = json.loads((tmp_path / "out/genai_config.json").read_text())
    assert settings["model"]["context_length"] == settings["search"]["max_length"] == ORIGINAL
    line = f"decode is right where total_sequence <= {ORIGINAL} or past_sequence == 0 or past_sequence > {ORIGINAL}"
    assert line in done.stderr
    assert line in (tmp_path / "out/README.md").read_text()
    done = argosy("check", tmp_path / "out", "--against", tmp_path / "model", "--tokens", "16")
    assert done.returncode == 0, done.stdout + done.stderr
