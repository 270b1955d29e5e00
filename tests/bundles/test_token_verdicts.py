"""How tokens of a bundle are judged, and how a folder's engine is found: no engine is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from argosy.check.rows import Row
from argosy.check.tokens import ExpectedRun, judge, padded, run_bundle
from argosy.errors import ExportError
from argosy.run.bundles import is_for_an_engine, open_bundle
from argosy.run.runners import RunError, find_runner

TOLERANCE = 1e-4
EXPECTED = ExpectedRun([[1, 2], [3]], [[5, 6, 7, 8], [9, 9]], [[0.5, 0.5, 1e-5, 0.5], [0.5, 0.5]])


def verdict(made: list[list[int]]) -> Row:
    row = Row("bundle", "tokens", "", None)
    judge(row, EXPECTED, made, TOLERANCE)
    return row


def test_equal_tokens_are_right() -> None:
    row = verdict([[5, 6, 7, 8], [9, 9]])
    assert (row.ok, row.tokens, row.note) == (True, (6, 6), "")


def test_a_token_that_differs_is_wrong_with_its_place_and_margin() -> None:
    row = verdict([[5, 4, 7, 8], [9, 9]])
    assert (row.ok, row.tokens) == (False, (3, 6))
    assert "row 1, token 2 is 4 instead of 6" in row.note
    assert "5.0e-01" in row.note


def test_a_near_tie_is_told_but_not_wrong() -> None:
    row = verdict([[5, 6, 4, 1], [9, 9]])
    assert (row.ok, row.tokens) == (True, (4, 6))
    assert "near tie (up to 0.0002)" in row.note


def test_a_near_tie_excuses_no_other_row() -> None:
    assert verdict([[5, 6, 4, 1], [9, 8]]).ok is False


@pytest.mark.parametrize("row", [[9], [9, 9, 9], []])
def test_texts_must_end_where_eagers_end(row: list[int]) -> None:
    found = verdict([[5, 6, 7, 8], row])
    assert found.ok is False
    assert f"{len(row)} tokens instead of 2" in found.note


class Engine:
    """Stands for a process."""

    def __init__(self, tokens: list[list[int]] | None) -> None:
        self.tokens = tokens

    def ask(self, request: dict) -> dict:
        if self.tokens is None:
            raise RunError("no such op")
        return {"tokens": self.tokens, "seconds": 0.1}


def test_what_an_engine_refuses_is_wrong() -> None:
    row = run_bundle(Engine(None), EXPECTED, 4, TOLERANCE)
    assert (row.ok, row.note) == (False, "no such op")


def test_padding_that_eager_minds_too_is_no_mistake_of_the_bundle() -> None:
    expected = ExpectedRun([[1, 2], [3]], [[5, 6], [7, 8]], [[0.5, 0.5], [0.5, 0.5]], behind=[[5, 6], [7, 9]])
    row = run_bundle(Engine([[5, 6], [7, 9]]), expected, 2, TOLERANCE)
    assert row.ok and row.excused and "padding" in row.note
    assert run_bundle(Engine([[5, 6], [1, 9]]), expected, 2, TOLERANCE).ok is False


def test_eager_that_fails_is_no_mistake_of_the_bundle() -> None:
    row = run_bundle(Engine(None), ExpectedRun([[1]], reason="generate fails"), 4, TOLERANCE)
    assert (row.ok, row.note) == (None, "generate fails")


def test_padding_is_masked_on_its_side() -> None:
    front, behind = padded([[1, 2], [3]], 0, at_end=False), padded([[1, 2], [3]], 0, at_end=True)
    assert front["input_ids"].tolist() == [[1, 2], [0, 3]]
    assert front["attention_mask"].tolist() == [[1, 1], [0, 1]]
    assert behind["input_ids"].tolist() == [[1, 2], [3, 0]]
    assert behind["attention_mask"].tolist() == [[1, 1], [1, 0]]


@pytest.mark.parametrize(
    ("files", "engine"),
    [
        (("genai_config.json", "model.onnx", "config.json"), "genai"),
        (("onnx/model.onnx", "config.json"), "transformersjs"),
        (("model.onnx", "config.json"), "optimum"),
    ],
)
def test_folders_of_others_tell_by_their_files(files: tuple[str, ...], engine: str, tmp_path: Path) -> None:
    for file in files:
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text("{}")
    assert open_bundle(tmp_path).engine == engine
    assert not is_for_an_engine(tmp_path)  # nobody has said so
    (tmp_path / "bundle.json").write_text(json.dumps({"engine": "plain"}))
    assert open_bundle(tmp_path).engine == "plain"


@pytest.mark.parametrize("text", ["nonsense", "[]", "{}"])
def test_rejects_manifests_that_are_none(text: str, tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text(text)
    with pytest.raises(ExportError):
        open_bundle(tmp_path)


def test_rejects_engines_that_are_not_known(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text('{"engine": "abacus"}')
    with pytest.raises(ExportError, match="abacus"):
        find_runner(open_bundle(tmp_path))
