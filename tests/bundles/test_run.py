"""`argosy run` and `argosy check --tokens`, with the trained decoder in ONNX Runtime GenAI."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
MODEL = ROOT / "tests/fixtures/trained-decoder"
PROMPT = "def __init__(self, "
NEW_TOKENS = 24


def argosy(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    own = {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([str(ARGOSY), *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, **own, **environment})  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    folder = place / "bundle"
    done = argosy("export", "onnx", "--model", MODEL, "--for", "genai", "--check", "off", "-o", folder,
                  ARGOSY_CACHE=str(place / "cache"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_text_is_that_of_the_model(bundle: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODEL, local_files_only=True)
    ids = tokenizer(PROMPT, return_tensors="pt")
    made = model.generate(**ids, max_new_tokens=NEW_TOKENS, do_sample=False)[0, ids["input_ids"].shape[1] :]
    done = argosy("run", bundle, "--prompt", PROMPT, "--max-new-tokens", str(NEW_TOKENS))
    assert done.returncode == 0, done.stderr
    assert done.stdout == tokenizer.decode(made, skip_special_tokens=True) + "\n"
    assert f"prompt of {ids['input_ids'].shape[1]} tokens" in done.stderr  # figures are no text


def test_tokens_are_those_of_the_model(bundle: Path) -> None:
    done = argosy("check", bundle, "--against", MODEL, "--tokens", "32", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert report["engine"] == "genai"
    assert [row["call"] for row in report["rows"]] == ["tokenizer"] + ["tokens"] * 4
    assert all(row["ok"] for row in report["rows"]), report["rows"]
    assert "padded batch" in report["rows"][-1]["shape"]
    assert report["rows"][-1]["tokens"] == [96, 96]


def test_spoilt_weights_are_found(bundle: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt"
    shutil.copytree(bundle, spoilt)
    data = spoilt / "model.onnx.data"
    content = bytearray(data.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400_000] = content[middle + 400_000 : middle + 800_000]
    data.write_bytes(content)
    done = argosy("check", spoilt, "--against", MODEL, "--tokens", "32")
    assert done.returncode == 3, done.stderr + done.stdout
    assert "WRONG" in done.stdout


def test_what_to_do_is_said(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime_genai.py").write_text("raise ModuleNotFoundError('no', name='onnxruntime_genai')\n")
    path = os.pathsep.join((str(tmp_path), str(ROOT / "python")))
    done = argosy("run", bundle, "--prompt", "a", PYTHONPATH=path)
    assert done.returncode == 1
    assert "pip install onnxruntime-genai" in done.stderr
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "bundle.json").write_text('{"engine": "plain"}')
    done = argosy("run", plain, "--prompt", "a")
    assert done.returncode == 1
    assert "--for one of genai" in done.stderr
    done = argosy("run", tmp_path, "--prompt", "a")
    assert done.returncode == 1
    assert "does not say which engine" in done.stderr
