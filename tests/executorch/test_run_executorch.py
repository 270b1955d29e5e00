"""`argosy run` and `argosy check` for ExecuTorch's bundles and programs, with the trained decoder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from argosy.run.bundles import open_bundle
from argosy.run.runners import BundleProcess

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


def test_the_same_seed_draws_the_same_text(bundle: Path) -> None:
    request = {"text": "def __init__(self, ", "chat": False, "max_new_tokens": 12}

    def drawn(**changes: float) -> str:
        sampling = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "seed": 2, **changes}
        return process.ask({**request, "sampling": sampling})["text"]

    with BundleProcess(open_bundle(bundle)) as process:
        best = process.ask(request)["text"]
        texts = {seed: drawn(seed=seed) for seed in range(4)}
        assert len({*texts.values(), best}) == 5
        assert drawn(seed=1) == texts[1] and drawn() == texts[2]
        assert drawn(top_k=1) == drawn(top_p=0.0001) == best
        assert len({drawn(top_k=3), drawn(top_p=0.5), texts[2], best}) == 4
    done = argosy("run", bundle, "--prompt", request["text"], "--max-new-tokens", "12", "--temperature", "1.5", "--seed", "1")
    assert done.returncode == 0 and done.stdout == texts[1] + "\n", done.stderr


def test_a_program_for_a_task_is_called_as_its_runner_calls_it(bundle: Path) -> None:
    done = argosy("check", bundle / "model.pte", "--against", MODEL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "calls as runners make them" in done.stdout
    assert "9 on 0" in done.stdout and "1 on 9" in done.stdout and "4 on 3" in done.stdout


def test_a_quantised_program_is_compared_in_its_scheme_and_measured(tmp_path: Path) -> None:
    """Its own scheme in PyTorch decides, the model as it is gives figures; bundle and card say that it is quantised."""
    text = tmp_path / "text.txt"
    text.write_text("def read(self, path):\n    return open(path).read()\n")
    folder = tmp_path / "out"
    done = argosy("export", "executorch", "--model", MODEL, "--task", "text-generation", "--qlinear", "8da4w", "--qembedding", "8w",
                  "--check", "full", "--text", text, "-o", folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    (said,) = [line for line in done.stderr.splitlines() if "this model with its own weights agrees with PyTorch" in line]
    assert "KL divergence" in said and "perplexity" in said and "best token" in said
    manifest = json.loads((folder / "bundle.json").read_text())
    assert manifest["check"]["kind"] == "full"
    assert {each["encoding"] for each in manifest["quantized"]} == {"8da4w", "8w"}
    card = (folder / "README.md").read_text()
    assert "of linear layers stored as 8da4w" in card and "of embedding layers stored as 8w" in card
    done = argosy("check", folder, "--against", MODEL, "--tokens", "16")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "are those of the unquantised model" in done.stdout


def test_components_are_checked_within_bounds(tmp_path: Path) -> None:
    program = tmp_path / "model.pte"
    done = argosy("export", "executorch", "--model", MODEL, "--recipe", "portable", "--shape", "batch=1..1", "--check", "off", "-o", program)
    assert done.returncode == 0, done.stderr
    done = argosy("check", program, "--against", MODEL)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "shapes are larger than what memory is reserved for" in done.stdout and "2x" not in done.stdout
