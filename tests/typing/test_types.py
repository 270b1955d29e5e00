"""A project that uses every public name of the package has types that mypy --strict accepts."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
from pathlib import Path

import argosy
import pytest
from argosy import exporters

HERE = Path(__file__).resolve().parent
SAMPLE = HERE / "sample"
ROOT = HERE.parents[1]
PROGRAM = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy")).absolute()
PUBLIC = sorted({*argosy.__all__, *exporters.__all__})


def stub() -> Path | None:
    """The types of the extension, beside the program that was built or installed with it."""
    prefix = PROGRAM.parents[1]
    built = [prefix / "python/_core.pyi", *prefix.glob("lib/python*/site-packages/argosy/_core.pyi")]
    built += [PROGRAM.resolve().parents[1] / "python/_core.pyi", ROOT / "build/release/apps/python/_core.pyi"]
    return next((file for file in built if file.is_file()), None)


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that has the package as an installation has it, and nothing else."""
    environment = tmp_path_factory.mktemp("types") / "environment"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", environment], check=True)
    package = next(environment.glob("lib/python*/site-packages")) / "argosy"
    package.mkdir()
    for each in (ROOT / "python/argosy").iterdir():
        if each.name != "__pycache__":
            (package / each.name).symlink_to(each)
    types = stub()
    assert types is not None
    (package / "_core.pyi").symlink_to(types)
    return environment / "bin/python"


def check(python: Path, cache: Path, *files: Path) -> tuple[int, str]:
    command = [sys.executable, "-m", "mypy", "--config-file", HERE / "mypy.ini", "--cache-dir", cache]
    command += ["--python-executable", python, *files]
    # The package of the environment, not the sources.
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(
        [str(part) for part in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=cache, env=kept
    )
    return done.returncode, done.stdout


needs_types = pytest.mark.skipif(stub() is None, reason="the types of the extension are not built: target argosy_stub")


@needs_types
def test_a_project_that_uses_all_names_is_right(python: Path, tmp_path: Path) -> None:
    code, said = check(python, tmp_path, *sorted(SAMPLE.glob("*.py")))
    assert code == 0, said


@needs_types
def test_no_name_is_without_a_type_and_wrong_uses_are_found(python: Path, tmp_path: Path) -> None:
    lines = [*(f"reveal_type(argosy.{name})" for name in argosy.__all__)]
    lines += [f"reveal_type(argosy.exporters.{name})" for name in exporters.__all__]
    wrong = ["argosy.export(1, 'onnx', 'out')", "argosy.OnnxConfig(opset=22)", "argosy.open_checkpoint('a').nothing"]
    (tmp_path / "names.py").write_text("\n".join(["import argosy", "import argosy.exporters", *lines, *wrong, ""]))
    code, said = check(python, tmp_path, tmp_path / "names.py")
    revealed = re.findall(r'names\.py:(\d+): note: Revealed type is "(.*)"', said)
    assert len(revealed) == len(lines), said
    untyped = [lines[int(line) - 3] for line, kind in revealed if kind == "Any"]
    assert not untyped
    errors = {int(line) for line in re.findall(r"names\.py:(\d+): error", said)}
    assert code == 1 and errors == {len(lines) + 2 + each for each in (1, 2, 3)}, said


def test_the_project_uses_every_public_name() -> None:
    used: set[str] = set()
    for file in SAMPLE.glob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            # An import alone is no use.
            if isinstance(node, ast.Name):
                used.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "argosy":
                used.add(node.attr)
    missing = sorted({*PUBLIC} - used)
    assert not missing, f"add a use of {', '.join(missing)} to {SAMPLE}"
