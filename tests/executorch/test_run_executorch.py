"""`argosy run` and `argosy check` for ExecuTorch's bundles and programs, with the trained decoder."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("executorch.extension.pybindings.portable_lib")

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
MODEL = ROOT / "tests/fixtures/trained-decoder"


def argosy(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    own = {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}
    return subprocess.run([str(ARGOSY), *map(str, arguments)], capture_output=True, text=True, timeout=600, check=False,
                          env={**os.environ, **own})  # fmt: skip


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("run") / "bundle"
    done = argosy("export", "executorch", "--model", MODEL, "--task", "text-generation", "--check", "off", "-o", folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_text_and_tokens(bundle: Path) -> None:
    done = argosy("run", bundle, "--prompt", "def __init__(self, ", "--max-new-tokens", "8")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() and "ExecuTorch" in done.stderr and "8 new" in done.stderr
    done = argosy("check", bundle, "--against", MODEL, "--tokens", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("ok 16 of 16 tokens") == 3 and "tokenizer" in done.stdout


def test_a_program_for_a_task_is_not_checked_by_components(bundle: Path) -> None:
    done = argosy("check", bundle / "model.pte", "--against", MODEL)
    assert done.returncode == 1 and "made for a task" in done.stderr and "--tokens" in done.stderr


def test_components_are_checked_within_bounds(tmp_path: Path) -> None:
    program = tmp_path / "model.pte"
    done = argosy("export", "executorch", "--model", MODEL, "--recipe", "portable", "--shape", "batch=1..1", "--check", "off", "-o", program)
    assert done.returncode == 0, done.stderr
    done = argosy("check", program, "--against", MODEL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shapes are larger than what memory is reserved for" in done.stdout and "2x" not in done.stdout
