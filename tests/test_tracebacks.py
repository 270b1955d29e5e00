"""What the package's programs say of failures that they did not foresee."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from argosy.tracebacks import explain_failure


def failure(error: Exception) -> Exception:
    try:
        raise error
    except Exception as raised:
        return raised


def test_a_missing_package_is_named_with_what_brings_it(capsys: pytest.CaptureFixture[str]) -> None:
    error = failure(ModuleNotFoundError("No module named 'torch'"))
    assert explain_failure(error, "the check failed", "the check needs torch", "torch") == 1
    said = capsys.readouterr().err
    assert said.startswith("error[not-found]: the check needs torch: No module named 'torch'\n  hint: pip install 'argosy[torch]',")
    assert said.count("\n") == 2


def test_other_failures_are_two_lines_and_a_file(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert explain_failure(failure(ValueError("sizes 3 and 4")), "the check failed", "", "torch") == 1
    said = capsys.readouterr().err
    assert said.startswith("error[internal]: the check failed: ValueError: sizes 3 and 4\n") and said.count("\n") == 2
    found = re.search(r"the traceback is in (\S+);", said)
    assert found and "in failure\n" in Path(found[1]).read_text()
