"""What the package's programs say to people and to scripts."""

from __future__ import annotations

import json

import pytest
from argosy.errors import ExportError
from argosy.summary import Summary
from argosy.terminal import say_error, wrapped


def test_lines_are_broken_between_words_and_go_on_indented() -> None:
    assert wrapped("error[io]: one two three", 16) == "error[io]: one\n  two three"
    assert wrapped("  hint: four five six seven", 16) == "  hint: four\n    five six\n    seven"
    assert wrapped("see /a/path-that-is/longer-than/a-line b", 16) == "see\n  /a/path-that-is/longer-than/a-line\n  b"
    assert wrapped("sixteen columns.", 16) == "sixteen columns."


def test_errors_are_lines_where_there_is_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    say_error(ExportError("a " * 60 + "b", code="io", hint="c"))
    assert capsys.readouterr().err == f"error[io]: {'a ' * 60}b\n  hint: c\n"


def test_a_summary_begins_with_the_command_and_ends_with_how_it_went(capsys: pytest.CaptureFixture[str]) -> None:
    summary = Summary("run")
    summary.fields["text"] = "ä"
    summary.print(3)
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["command", "text", "seconds", "exit_code"] and found["text"] == "ä" and found["exit_code"] == 3
    summary.print(1, ExportError("no", code="io"))
    found = json.loads(capsys.readouterr().out)
    assert list(found) == ["command", "seconds", "exit_code", "error"]
    assert found["error"] == {"code": "io", "message": "no", "hint": ""}
