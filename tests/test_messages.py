"""The list of all messages: it is that of the sources, and the tool that makes it sees what changes."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tools"))
from list_messages import GOLDEN, list_messages, of_cpp, of_python  # noqa: E402


def test_the_list_is_that_of_the_sources() -> None:
    found, listed = set(list_messages()), set(GOLDEN.read_text(encoding="utf-8").splitlines())
    assert found == listed, "run tools/list_messages.py and read what changes in tests/golden/messages.txt"


def test_texts_of_cpp_are_found_wherever_errors_are_made() -> None:
    source = r"""
    constexpr const char* kHint = "try "  // in two parts
                                  "again";
    // fail(ErrorCode::kIo, "in a comment")
    if (a) return fail(ErrorCode::kIo, format("cannot read {}", quoted(name, "x")), kHint);
    Error error{ErrorCode::kIo, is_new ? "one \"a\"" : "other"};
    terminal.log(LogLevel::kWarn, "slow");
    terminal.log(LogLevel::kInfo, "not listed");
    diagnostics.notes.push_back(format("{} are fixed", 3));
    return corrupt(R"(a "raw" text)");
    names.push_back("not listed either");
    """
    assert list(of_cpp(source, {"corrupt"})) == [
        "cannot read {} / x | try again",
        'one "a" / other',
        "slow",
        "{} are fixed",
        'a "raw" text',
    ]


def test_texts_of_python_are_found_where_errors_are_raised() -> None:
    source = """
raise ExportError(f"{name} has no {len(x)} files", code="not-found", hint="give " + "another")
raise KeyError(name)
logger.warning("%s is old", name)
print("not listed")
"""
    assert list(of_python(source)) == ["{} has no {} files | give  / another", "%s is old"]
