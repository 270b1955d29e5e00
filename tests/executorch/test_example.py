"""The C++ example on ExecuTorch's SDK: built, and its tokens compared with those of the eager model."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path

import pytest
from warm import warm_python

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("executorch")

REPOSITORY = Path(__file__).parents[2]
MODEL = REPOSITORY / "tests/fixtures/trained-decoder"
PROGRAMS = [REPOSITORY / "build" / preset / "apps/cli/argosy" for preset in ("release", "dev")]
PROGRAM = os.environ.get("ARGOSY_BIN") or next((str(path) for path in PROGRAMS if path.exists()), "argosy")

pytestmark = pytest.mark.skipif(shutil.which("cmake") is None, reason="the example is built with cmake")


def run(*command: object, **environment: str) -> str:
    done = subprocess.run([str(each) for each in command], capture_output=True, text=True, env={**os.environ, **environment})
    assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def generate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("example")
    # This folder has the name of the package, and both are on the path.
    sdk = next(each for each in find_spec("executorch").submodule_search_locations if Path(each, "share/cmake").is_dir())
    run("cmake", "-S", REPOSITORY / "examples/executorch", "-B", build, f"-DCMAKE_PREFIX_PATH={sdk}")
    run("cmake", "--build", build)
    return build / "generate"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("program")
    run(
        PROGRAM, "export", "executorch", "--model", MODEL, "--task", "text-generation", "--dtype", "float32",
        "--max-seq-len", "96", "--check", "off", "-o", folder / "decoder",
        ARGOSY_PYTHON=warm_python(), PYTHONPATH=str(REPOSITORY / "python"), ARGOSY_CACHE=str(folder / "cache"),
    )  # fmt: skip
    return folder / "decoder/model.pte"


def eager(prompt: list[int], count: int) -> list[int]:
    model = transformers.AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32)
    tokens = model.generate(torch.tensor([prompt]), max_new_tokens=count, do_sample=False)
    return tokens[0, len(prompt) :].tolist()


def test_tokens_are_those_of_the_model(generate: Path, program: Path) -> None:
    dice = random.Random(1)
    prompt = [dice.randrange(1, 2048) for _ in range(70)]  # more keys than the kernel takes at once
    expected = eager(prompt, 20)
    assert len(set(expected)) > 10
    tokens = [int(each) for each in run(generate, program, 20, *prompt).split()]
    assert tokens == expected


def test_neither_python_nor_libtorch_is_needed(generate: Path) -> None:
    libraries = run("ldd", generate)
    assert "libexecutorch" in libraries
    assert "libtorch" not in libraries and "libpython" not in libraries
