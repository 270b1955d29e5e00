"""What users see in a terminal of 80 columns: recorded sessions, which the documentation shows."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from recording import GOLDEN, REPOSITORY, SESSIONS, golden, normalised, record_all
from sessions_page import PAGE, shown, with_sessions
from warm import warm_python

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
#: Stages are drawn again each second; a busy machine is slow.
LONGEST_SILENCE = 20.0


@pytest.fixture(scope="module")
def recorded() -> tuple[dict[str, str], list[str], float]:
    if shutil.which("tmux") is None:
        pytest.skip("tmux is not there; tools/setup installs it")
    for package in ("torch", "transformers", "onnxruntime_genai", "huggingface_hub"):
        pytest.importorskip(package, reason="the sessions are of a machine that has it")
    return record_all(PROGRAM, warm_python())


@pytest.mark.parametrize("name", SESSIONS)
def test_a_session_is_as_it_was_recorded(recorded: tuple[dict[str, str], list[str], float], name: str) -> None:
    expected = golden(name).read_text(encoding="utf-8")
    assert normalised(recorded[0][name]) == normalised(expected), "tools/record_sessions --update, and read the difference"


def test_nothing_is_silent_for_long(recorded: tuple[dict[str, str], list[str], float]) -> None:
    assert recorded[2] < LONGEST_SILENCE


def test_lines_are_broken_between_words(recorded: tuple[dict[str, str], list[str], float]) -> None:
    assert recorded[1] == []


def test_the_page_shows_the_sessions_as_they_are() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_sessions(page) == page, "run tools/record_sessions --update"
    assert sorted(shown(page)) == sorted(SESSIONS) == sorted(file.stem for file in GOLDEN.glob("*.txt"))


def test_sessions_differ_in_more_than_times() -> None:
    text = golden("first-export").read_text(encoding="utf-8")
    assert normalised(text.replace("Exported to", "Written to")) != normalised(text)
    assert normalised("[1/4] Tracing A (first time, about 30 s)… 28.1 s") == normalised("[1/4] Tracing A (first time)… 3.0 s")
