"""`argosy lint`: nothing to say about good bundles, and the right thing about each spoilt one."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest
from lint_bundles import MAKERS
from lint_cases import CASES, Case

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
DOCUMENT = ROOT / "docs/lint.md"
PUBLIC_ISSUES = 10


def lint(*arguments: str | Path) -> tuple[int, str, str]:
    """Exit code, stdout, stderr."""
    done = subprocess.run([str(ARGOSY), "lint", *map(str, arguments)], capture_output=True, timeout=60, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def findings(folder: Path, *arguments: str) -> tuple[int, list[dict]]:
    code, out, error = lint(folder, "--json", *arguments)
    assert code in (0, 3), error
    return code, json.loads(out)["findings"]


@pytest.mark.parametrize("name", MAKERS)
def test_good_bundles_have_no_findings(name: str, tmp_path: Path) -> None:
    MAKERS[name](tmp_path)
    code, out, _ = lint(tmp_path, "--json")
    report = json.loads(out)
    assert report["findings"] == []
    assert code == 0
    assert report["engine"] == name.split("_")[0]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.name}")
def test_seeded_violation_is_found(case: Case, tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    MAKERS[case.bundle](folder)
    case.spoil(folder)
    engine = case.engine or case.bundle.split("_")[0]
    code, found = findings(folder, "--for", engine)
    messages = [each["what"] for each in found if each["rule"] == case.rule]
    assert any(case.message in message for message in messages), found
    assert all("\n" not in each["what"] + each["hint"] and each["hint"] for each in found)
    assert {each["rule"] for each in found} == {case.rule, *case.also}
    assert code == (3 if any(each["severity"] == "error" for each in found) else 0)


def rules() -> list[dict]:
    return json.loads(lint("--list-rules", "--json")[1])["rules"]


def test_every_rule_has_a_violation() -> None:
    assert {rule["rule"] for rule in rules()} == {case.rule for case in CASES}


def test_defects_of_public_issues_are_among_them() -> None:
    assert len({case.issue for case in CASES if case.issue}) >= PUBLIC_ISSUES


def rows_of_rules() -> list[str]:
    return [
        f"| {rule['engine'] or 'all'} | `{rule['rule']}` | {rule['severity']} | {rule['what']} |" for rule in rules()
    ]


def listed_rows(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith("| ") and " | `" in line and line.count(" | ") == 3]


def test_documentation_lists_the_rules() -> None:
    hint = "python tests/bundles/lint_rules_table.py writes them"
    assert listed_rows(DOCUMENT.read_text()) == rows_of_rules(), hint


def test_text_has_a_line_for_each_finding(tmp_path: Path) -> None:
    MAKERS["genai"](tmp_path)
    (tmp_path / "model.onnx.data").unlink()
    code, out, _ = lint(tmp_path)
    assert code == 3
    first, last = out.splitlines()
    assert first.startswith(
        'error[external-data-missing] model.onnx: its weights are in "model.onnx.data", which is not there; copy'
    )
    assert last.startswith("as a bundle for genai: 1 error, 0 warnings (1 graph,")


def test_exit_codes(tmp_path: Path) -> None:
    assert lint(tmp_path / "none")[0] == 1
    (tmp_path / "file").write_text("")
    assert lint(tmp_path / "file")[0] == 1
    assert lint()[0] == 2
    assert lint(tmp_path, "--for", "nobody")[0] == 2
    assert lint(tmp_path)[0] == 3
