"""The C++ interface as users have it: an install tree, find_package, and the example built against it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from cli_tool import REPOSITORY
from exporter_tool import PROGRAM, Exporter, make_exporter, save_twins

# Where the libraries are: the program may be an installed one, which is not in a build folder.
BUILDS = [PROGRAM.parents[2], *(REPOSITORY / "build" / preset for preset in ("release", "dev"))]
PACKAGE = PROGRAM.parents[1]  # where it is one of an installed package
BUILD = next((folder for folder in BUILDS if (folder / "cmake_install.cmake").exists()), None)

pytestmark = pytest.mark.skipif(BUILD is None, reason="the libraries are not built: cmake --build --preset release")


def do(*command: str | Path) -> None:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def build(folder: Path, prefix: Path) -> Path:
    """The example, against the argosy that is installed there."""
    do("cmake", "-S", REPOSITORY / "examples/cpp", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}")
    do("cmake", "--build", folder)
    return folder / "export_onnx"


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cpp")
    do("cmake", "--install", BUILD, "--prefix", folder / "prefix", "--component", "development")
    return build(folder / "build", folder / "prefix")


def run(example: Path, *arguments: Path, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([example, *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_the_example_exports_what_the_command_does(example: Path, tmp_path: Path) -> None:
    exporter: Exporter = make_exporter(tmp_path, "onnx")
    model = save_twins(tmp_path / "twins", "llama") / "llama"
    capture = tmp_path / "llama.capture"
    exporter.run("capture", "--model", model, "-o", capture)
    told, _ = run(example, capture, model, tmp_path / "by_api")
    assert "LlamaForCausalLM" in told and "decode.onnx" in told
    exporter.export(model, tmp_path / "by_command", "--capture", capture)
    found, expected = (onnx.load(tmp_path / name / "decode.onnx") for name in ("by_api", "by_command"))
    assert found.graph == expected.graph
    _, said = run(example, capture, tmp_path, tmp_path / "other", code=1)
    assert "error[" in said and "hint" in said
    assert not (tmp_path / "other").exists()

    if not (PACKAGE / "lib/cmake/argosy").exists():
        return
    # The library of the package is another one (apps/library), with the same classes.
    packaged = build(tmp_path / "build", PACKAGE)
    assert run(packaged, capture, model, tmp_path / "by_package")[0] == told.replace("by_api", "by_package")
    assert onnx.load(tmp_path / "by_package/decode.onnx").graph == found.graph
    assert run(packaged, capture, tmp_path, tmp_path / "other", code=1)[1] == said


def test_tied_weights_come_by_one_name_with_a_plan_and_without(example: Path, tmp_path: Path) -> None:
    exporter: Exporter = make_exporter(tmp_path, "onnx")
    model = REPOSITORY / "tests/fixtures/trained-decoder"
    capture, plan = tmp_path / "decoder.capture", tmp_path / "plan.json"
    exporter.run("capture", "--model", model, "--dtype", "float32", "-o", capture)
    command = [sys.executable, "-m", "argosy.capture.weight_plan", "--model", model, "-o", plan]
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **exporter.environment()})
    run(example, capture, model, tmp_path / "by_api")
    run(example, capture, model, tmp_path / "by_plan", plan)
    exporter.export(model, tmp_path / "by_command", "--capture", capture)
    data = [(tmp_path / name / "model.onnx.data").read_bytes() for name in ("by_api", "by_plan", "by_command")]
    assert data[0] == data[1] == data[2]


def test_it_says_how_it_is_used(example: Path) -> None:
    assert "usage" in run(example, code=2)[1]
