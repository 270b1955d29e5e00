"""Every file of the hostile corpus is refused by `argosy inspect` with its own message, quickly and in little memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "corpus"))

from make_corpus import all_cases, make_corpus

ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
CASES = all_cases()
SECONDS = 10
MAX_RESIDENT = 1_000_000_000
# What may be reserved without being used: parsers reserve for the worst case.
MAX_RESERVED = 4 << 30
# Archives are read with these; hostile graphs that should get past their ops use no others.
SCHEMAS = """\
aten::add.Tensor(Tensor self, Tensor other, *, Scalar alpha=1) -> Tensor
aten::relu(Tensor self) -> Tensor
"""


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    make_corpus(folder)
    (folder / "op_schemas.txt").write_text(SCHEMAS)
    return folder


@pytest.fixture(scope="session")
def messages() -> dict[str, str]:
    """The first line of each refusal, to see that no two are alike."""
    return {}


def run_inspect(path: Path, schemas: Path) -> tuple[dict, str]:
    """What it took, and what was said on stderr."""
    runner = [sys.executable, "-I", "-S", str(ROOT / "tests/e2e/run_limited.py"), str(SECONDS), str(MAX_RESERVED)]
    command = [*runner, str(ARGOSY), "inspect", str(path)]
    environment = {**os.environ, "ARGOSY_SCHEMAS": str(schemas)}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    return json.loads(done.stdout), done.stderr


def test_corpus_is_large_enough() -> None:
    assert len(CASES) >= 50


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.path)
def test_is_refused(case, corpus: Path, messages: dict[str, str]) -> None:
    took, said = run_inspect(corpus / case.path, corpus / "op_schemas.txt")
    assert took["seconds"] < SECONDS, "killed, since it ran too long"
    assert took["code"] == 1, said
    assert f"error[{case.code}]" in said, said
    assert case.message in said, said
    assert "internal" not in said
    assert took["resident"] < MAX_RESIDENT
    message = said.splitlines()[0].replace(str(corpus / case.path), "").replace(Path(case.path).name, "")
    assert message not in messages, f"{messages[message]} is refused with the same message"
    messages[message] = case.path
