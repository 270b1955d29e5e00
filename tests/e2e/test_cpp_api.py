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
    """The examples, against the argosy that is installed there."""
    do("cmake", "-S", REPOSITORY / "examples/cpp", "-B", folder, f"-DCMAKE_PREFIX_PATH={prefix}")
    do("cmake", "--build", folder)
    return folder


def install_library(prefix: Path, component: str) -> Path:
    """What find_package finds, of the static libraries ("development") or the shared one ("library")."""
    assert BUILD is not None
    if component == "library" and not any(BUILD.glob("apps/library/libargosy.so*")):
        pytest.skip("the shared library is not built: cmake --build --preset release")
    do("cmake", "--install", BUILD, "--prefix", prefix, "--component", component)
    return prefix


@pytest.fixture(scope="module", params=["development", "library"])
def examples(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The examples, with the static libraries and with the shared one of packages."""
    folder = tmp_path_factory.mktemp("cpp")
    return build(folder / "build", install_library(folder / "prefix", request.param))


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("exporter"), "onnx")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_twins(tmp_path_factory.mktemp("twins"), "llama") / "llama"


@pytest.fixture(scope="module")
def capture(exporter: Exporter, model: Path) -> Path:
    path = exporter.cache.parent / "llama.capture"
    exporter.run("capture", "--model", model, "-o", path)
    return path


def run(program: Path, *arguments: str | Path, code: int = 0) -> tuple[str, str]:
    done = subprocess.run([program, *arguments], capture_output=True, text=True)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def contents(folder: Path) -> dict[str, bytes]:
    """All files, or of a file it."""
    files = [folder] if folder.is_file() else sorted(path for path in folder.rglob("*") if path.is_file())
    assert files
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_the_example_exports_what_the_command_does(
    examples: Path, exporter: Exporter, model: Path, capture: Path, tmp_path: Path
) -> None:
    told, _ = run(examples / "export_onnx", capture, model, tmp_path / "by_api")
    assert "LlamaForCausalLM" in told and "decode.onnx" in told
    exporter.export(model, tmp_path / "by_command", "--capture", capture)
    assert contents(tmp_path / "by_api") == contents(tmp_path / "by_command")
    onnx.checker.check_model(onnx.load(tmp_path / "by_api/decode.onnx"))
    _, said = run(examples / "export_onnx", capture, tmp_path, tmp_path / "other", code=1)
    assert "error[" in said and "hint" in said
    assert not (tmp_path / "other").exists()

    if not (PACKAGE / "lib/cmake/argosy").exists():
        return
    # That of an installed package.
    packaged = build(tmp_path / "build", PACKAGE)
    assert run(packaged / "export_onnx", capture, model, tmp_path / "by_package")[0] == told.replace(
        "by_api", "by_package"
    )
    assert contents(tmp_path / "by_package") == contents(tmp_path / "by_api")
    assert run(packaged / "export_onnx", capture, tmp_path, tmp_path / "other", code=1)[1] == said


def test_a_quantised_program_has_the_bytes_of_the_command(
    examples: Path, exporter: Exporter, model: Path, capture: Path, tmp_path: Path
) -> None:
    told, _ = run(examples / "export_pte", capture, model, tmp_path / "by_api")
    assert "model.pte" in told.splitlines()
    options = (
        "--task",
        "text-generation",
        "--max-seq-len",
        "128",
        "--dtype",
        "fp32",
        "--qlinear",
        "8da4w",
        "--qembedding",
        "8w",
    )
    exporter.run(
        "export",
        "executorch",
        "--model",
        model,
        "--capture",
        capture,
        *options,
        "--check",
        "off",
        tmp_path / "by_command",
    )
    assert contents(tmp_path / "by_api") == contents(tmp_path / "by_command")


@pytest.mark.parametrize(("backend", "dtype"), [("onnx", "q4"), ("onnx", "mixed16"), ("pt2", "fp16")])
def test_what_is_in_the_cache_is_exported_as_by_the_command(
    examples: Path, exporter: Exporter, model: Path, tmp_path: Path, backend: str, dtype: str
) -> None:
    """With dtypes and variants of --dtype. Once it is there, no Python is needed."""
    name = "out.pt2" if backend == "pt2" else "out"
    (tmp_path / "by_command").mkdir()
    (tmp_path / "by_api").mkdir()
    exporter.run(
        "export", backend, "--model", model, "--dtype", dtype, "--check", "off", tmp_path / "by_command" / name
    )
    told, _ = run(examples / "export_cached", exporter.cache, model, tmp_path / "by_api" / name, dtype)
    assert told.startswith("LlamaForCausalLM: ")
    assert contents(tmp_path / "by_api") == contents(tmp_path / "by_command")


def test_variants_share_a_bundle_as_those_of_the_command(examples: Path, exporter: Exporter, tmp_path: Path) -> None:
    model = REPOSITORY / "tests/fixtures/trained-decoder"
    for variants in (["fp32", "q4"], ["q4", "mixed16", "fp32"]):
        name = "-".join(variants)
        exporter.export(model, tmp_path / "by_command" / name, "--for", "transformersjs", "--dtype", ",".join(variants))
        told, _ = run(examples / "export_variants", exporter.cache, model, tmp_path / "by_api" / name, *variants)
        assert "onnx/model_q4.onnx" in told.splitlines()
        assert contents(tmp_path / "by_api" / name) == contents(tmp_path / "by_command" / name)
    told, _ = run(examples / "lint_bundle", tmp_path / "by_api" / name)
    assert "  variant mixed16, check: off\n" in told
    said = run(examples / "export_variants", exporter.cache, model, tmp_path / "wrong", "q4", "q4", code=1)[1]
    assert "q4 is asked for twice" in said and not (tmp_path / "wrong").exists()


def test_what_the_cache_lacks_is_an_error_that_says_how_it_is_made(examples: Path, model: Path, tmp_path: Path) -> None:
    said = run(examples / "export_cached", tmp_path / "empty", model, tmp_path / "out", code=1)[1]
    assert "has no capture" in said and "argosy cache import" in said
    said = run(examples / "export_cached", tmp_path / "empty", model, tmp_path / "out", "fp8", code=1)[1]
    assert '"fp8" is no dtype' in said


def test_a_capture_in_another_dtype_is_refused(examples: Path, exporter: Exporter, model: Path, tmp_path: Path) -> None:
    capture = tmp_path / "half.capture"
    exporter.run("capture", "--model", model, "--dtype", "fp16", "-o", capture)
    said = run(examples / "export_pte", capture, model, tmp_path / "out", code=1)[1]
    assert "float32 is asked for, and weights are f16" in said and "argosy capture --dtype float32" in said
    assert not (tmp_path / "out").exists()


def test_files_are_inspected_and_bundles_linted_as_by_the_command(
    examples: Path, exporter: Exporter, model: Path, capture: Path, tmp_path: Path
) -> None:
    bundle, program = tmp_path / "bundle", tmp_path / "program.pte"
    exporter.export(model, bundle, "--capture", capture, "--dtype", "fp32")
    exporter.run("export", "executorch", "--model", model, "--capture", capture, "--check", "off", program)
    files = (capture, model, bundle, program)
    told, _ = run(examples / "inspect_files", *files)
    assert told == "".join(exporter.run("inspect", each, "--json")[0] for each in files)
    said = run(examples / "inspect_files", tmp_path / "none", code=1)[1]
    assert said.startswith("error[not-found]")

    told, _ = run(examples / "lint_bundle", bundle)
    assert told.startswith("LlamaForCausalLM for plain, check: off not asked for\n")
    assert "  decode.onnx: decode\n" in told
    (bundle / "model.onnx.data").unlink()
    told, _ = run(examples / "lint_bundle", bundle, code=3)
    found = [line for line in told.splitlines() if line.startswith(("error[", "warning["))]
    assert any(line.startswith("error[external-data-missing] ") for line in found)
    assert found == exporter.run("lint", bundle, code=3)[0].splitlines()[:-1]
    assert "error[" in run(examples / "lint_bundle", bundle, "none", code=1)[1]


def test_tied_weights_come_by_one_name_with_a_plan_and_without(examples: Path, tmp_path: Path) -> None:
    exporter: Exporter = make_exporter(tmp_path, "onnx")
    model = REPOSITORY / "tests/fixtures/trained-decoder"
    capture, plan = tmp_path / "decoder.capture", tmp_path / "plan.json"
    exporter.run("capture", "--model", model, "--dtype", "float32", "-o", capture)
    command = [sys.executable, "-m", "argosy.capture.weight_plan", "--model", model, "-o", plan]
    subprocess.run([str(part) for part in command], check=True, env={**os.environ, **exporter.environment()})
    run(examples / "export_onnx", capture, model, tmp_path / "by_api")
    run(examples / "export_onnx", capture, model, tmp_path / "by_plan", plan)
    exporter.export(model, tmp_path / "by_command", "--capture", capture)
    data = [(tmp_path / name / "model.onnx.data").read_bytes() for name in ("by_api", "by_plan", "by_command")]
    assert data[0] == data[1] == data[2]


def test_versions_are_told_and_compared(examples: Path, exporter: Exporter, tmp_path: Path) -> None:
    version = run(examples / "inspect_files", "--version")[0]
    assert version.split() == ["argosy", exporter.run("--version")[0].split()[1]]
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.25)\nproject(a LANGUAGES CXX)\nfind_package(argosy 0.2 CONFIG REQUIRED)\n"
    )
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", f"-DCMAKE_PREFIX_PATH={examples.parent / 'prefix'}"]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True)
    assert done.returncode != 0 and 'compatible with requested version "0.2"' in " ".join(done.stderr.split())


@pytest.mark.parametrize(
    "name", ["export_onnx", "export_pte", "export_cached", "export_variants", "inspect_files", "lint_bundle"]
)
def test_each_says_how_it_is_used(examples: Path, name: str) -> None:
    assert run(examples / name, code=2)[1].startswith(f"usage: {name} ")
