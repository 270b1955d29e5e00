"""A few faults of each kind are caught by the check that every export has; `python tests/sweeps sabotage` has all of them."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from sweeps.fault_rows import GENAI, ONNX, PT2, PTE, ROWS, TASK, TASK_8DA4W, Row  # noqa: E402
from sweeps.sabotage import PROGRAM, Workshop, all_faults, warm_python  # noqa: E402
from thorough import thorough  # noqa: E402

CASES = [
    thorough(Row("gate-and-up", "llama", PT2)),
    Row("positions-from-zero", "llama", ONNX),
    thorough(Row("causal-off-by-one", "llama", PTE)),
    thorough(Row("cache-position", "llama", TASK)),
    Row("scale-of-neighbour", "llama", TASK_8DA4W),
    thorough(Row("onnx-state-order", "llama", GENAI)),
]


@pytest.fixture(scope="module")
def workshop(tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    return Workshop(tmp_path_factory.mktemp("sabotage"), PROGRAM, warm_python())


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.name)
def test_a_fault_is_caught(workshop: Workshop, row: Row) -> None:
    outcome = workshop.outcome(row)
    assert outcome.caught, outcome


def test_every_fault_has_a_row() -> None:
    assert set(all_faults()) == {row.fault for row in ROWS}


def test_a_fault_that_finds_no_place_is_an_error(workshop: Workshop) -> None:
    outcome = workshop.outcome(Row("sinks-dropped", "llama", PT2))
    assert not outcome.caught
    assert "finds no place" in outcome.said
