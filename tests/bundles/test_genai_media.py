"""Models that see and hear, in ONNX Runtime GenAI: its own processors on real files, tokens equal to eager's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from warm import warm_python

pytest.importorskip("onnxruntime_genai")
pytest.importorskip("transformers")

from argosy.check import media_runs as media  # noqa: E402
from sweeps.media_twins import media_twin, save_media_twin  # noqa: E402
from argosy.run.bundles import open_bundle  # noqa: E402
from argosy.run.given_media import wants_given_media  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy")).absolute()
#: Seeds of twins that say something: others repeat one token.
SEEDS = {"whisper": 0, "qwen2_5_vl": 0, "gemma3": 3}


def export(model: Path, output: Path, cache: Path) -> subprocess.CompletedProcess:
    environment = {
        **os.environ,
        "ARGOSY_CACHE": str(cache),
        "ARGOSY_PYTHON": warm_python(),
        "PYTHONPATH": str(ROOT / "python"),
    }
    command = [ARGOSY, "export", "onnx", "--model", model, "--for", "genai", "--check", "off", "-o", output]
    return subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=900, check=False
    )


@pytest.mark.parametrize("model_type", SEEDS)
def test_tokens_equal_eager_with_the_engines_processor(model_type: str, tmp_path: Path) -> None:
    model = media_twin(model_type, SEEDS[model_type])
    twin = save_media_twin(model, tmp_path / model_type)
    done = export(twin, tmp_path / "bundle", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    run = media.compare(model, twin, tmp_path / "bundle", tmp_path)
    assert run.prepared_by == "engine"
    assert run.engine == run.eager
    assert len(run.eager) == media.NEW_TOKENS
    assert run.distinct >= 8
    if model_type != "whisper":  # the engine begins and ends spectrograms in another way
        assert run.difference < 1e-5
    graphs = {each["file"] for each in json.loads((tmp_path / "bundle/bundle.json").read_text())["graphs"]}
    assert graphs == (
        {"encoder.onnx", "decoder.onnx"} if model_type == "whisper" else {"model.onnx", "embedding.onnx", "vision.onnx"}
    )
    (weights,) = (tmp_path / "bundle").glob("*.data")
    assert weights.stat().st_size <= 1.02 * (twin / "model.safetensors").stat().st_size + (5 << 20)


def test_pictures_that_transformers_prepares(tmp_path: Path) -> None:
    """The engine has no processor for LLaVA; `argosy run` gives it what transformers' makes."""
    pytest.importorskip("PIL")
    twin = save_media_twin(media_twin("llava"), tmp_path / "llava")
    settings = json.loads((twin / "processor_config.json").read_text())
    # Of the encoder's tokens the first stands for the whole picture, and goes.
    (twin / "processor_config.json").write_text(json.dumps({**settings, "num_additional_image_tokens": 1}))
    done = export(twin, tmp_path / "bundle", tmp_path / "cache")
    assert done.returncode == 0, done.stderr
    bundle = open_bundle(tmp_path / "bundle")
    assert wants_given_media(bundle)
    assert "processor(images=" in (tmp_path / "bundle/README.md").read_text()
    picture = media.write_picture(tmp_path / "picture.png")
    command = [
        sys.executable,
        "-m",
        "argosy.run",
        bundle.folder,
        "--prompt",
        "what is it",
        "--image",
        picture,
        "--max-new-tokens",
        "4",
    ]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    ran = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, env=environment, timeout=900, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert " new in " in ran.stderr
