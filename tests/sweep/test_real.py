"""A sweep of real exports: fine-tunes share a capture, and a configuration becomes a small model."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from simulated import REPOSITORY

sys.path.append(str(REPOSITORY / "tests/warm"))
from warm import warm_python  # noqa: E402

pytest.importorskip("torch", reason="captures are made with it")
pytest.importorskip("transformers", reason="captures are made with it")

PROGRAM = os.environ.get("ARGOSY_BIN", str(REPOSITORY / "build/release/apps/cli/argosy"))


def test_fine_tunes_share_a_capture_and_configurations_are_exported(tmp_path: Path) -> None:
    for name in ("base", "tuned"):
        shutil.copytree(REPOSITORY / "tests/fixtures/trained-decoder", tmp_path / name)
    weights = tmp_path / "tuned/model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-64] + bytes(64))
    settings = json.loads((tmp_path / "tuned/config.json").read_text())
    (tmp_path / "tuned/config.json").write_text(json.dumps(settings | {"_name_or_path": "somebody/tuned"}))
    jobs = [{"model": "base", "check": "off"}, {"model": "tuned", "check": "off"}, {"configuration": "bert", "check": "off"},
            {"configuration": "no-such-type"}, {"configuration": "no-such-type", "backend": "pt2"}, {"model": "base", "backend": "executorch", "task": "text-generation", "check": "off"}]  # fmt: skip
    (tmp_path / "jobs.jsonl").write_text("\n".join(map(json.dumps, jobs)) + "\n")
    environment = {**os.environ, "ARGOSY_CACHE": str(tmp_path / "cache"), "ARGOSY_PYTHON": warm_python(),
                   "PYTHONPATH": str(REPOSITORY / "python")}  # fmt: skip
    done = subprocess.run([PROGRAM, "sweep", "jobs.jsonl", "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 3, done.stdout + done.stderr
    assert json.loads(done.stdout)["ended"] == {"written": 4, "failed": 1, "not captured": 1}
    lines = {(line["name"], line["target"]): line for line in map(json.loads, (tmp_path / "jobs/results.jsonl").read_text().splitlines())}
    assert lines["no-such-type", "onnx"]["reason"] == "transformers has no model type 'no-such-type', and there is no such folder"
    assert lines["bert", "onnx"]["model_class"].startswith("Bert") and lines["bert", "onnx"]["family"] == "bert"
    assert lines["base", "onnx"]["family"] == "llama"
    assert len(list((tmp_path / "cache/captures").iterdir())) == 2  # of the decoder, and of BERT
    base, tuned = (tmp_path / "jobs" / lines[name, "onnx"]["output"] for name in ("base", "tuned"))
    # The last weight of the file is small, and so in the graph itself.
    assert (base / "decode.onnx").read_bytes() != (tuned / "decode.onnx").read_bytes()
    assert (base / "model.onnx.data").read_bytes() == (tuned / "model.onnx.data").read_bytes()

    again = subprocess.run([PROGRAM, "sweep", "jobs.jsonl", "--json"], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert json.loads(again.stdout)["ended"] == {"written": 4, "failed": 1, "not captured": 1} and json.loads(again.stdout)["seconds"] < 30
    assert len((tmp_path / "jobs/results.jsonl").read_text().splitlines()) == 6
