"""Twelve draws of the differential sweep, and its own arithmetic."""

from __future__ import annotations

from typing import Any

import pytest

from sweeps import PROGRAM
from sweeps.differential.draw import draw, families
from sweeps.differential.sweep import run_draw
from sweeps.differential.table import page, summary
from thorough import thorough

SEED = 1
#: Indices of seed 1: cheap ones, of decoders with windows, sinks, soft caps, experts and scaled positions, and of encoders.
DRAWS = (1, 2, 3, 4, 5, 6, 8, 13, 21, 23, 71, 94)


def _name(index: int) -> str:
    drawn = draw(SEED, index)
    return f"{index}-{drawn.family}-{drawn.head}"


@pytest.mark.parametrize("index", [*DRAWS[:5], *map(thorough, DRAWS[5:])], ids=_name)
def test_exports_of_a_draw_are_right(index: int) -> None:
    row = run_draw(PROGRAM, SEED, index)
    assert "invalid" not in row, row["invalid"]
    assert set(row["backends"]) >= {"pt2", "onnx", "executorch"}
    for backend, found in row["backends"].items():
        assert found["verdict"] == "right", f"{backend}: {found}"
        assert "right" in found["runs"].values()


@pytest.mark.parametrize("index", (6, 21), ids=_name)
def test_exports_of_a_draw_in_few_bits_are_right(index: int) -> None:
    row = run_draw(PROGRAM, SEED, index, schemes=True)
    assert "invalid" not in row, row["invalid"]
    assert [name.split()[0] for name in row["backends"]] == ["onnx", "onnx", "executorch"]
    for scheme, found in row["backends"].items():
        assert found["verdict"] == "right", f"{scheme}: {found}"


def test_draws_depend_on_seed_and_index_alone() -> None:
    assert draw(3, 17) == draw(3, 17)
    assert draw(3, 17).fields != draw(4, 17).fields
    assert len({draw(1, index).family for index in range(len(families()))}) == len({name for _, name in families()})


def test_a_sweep_of_300_crosses_what_checkpoints_vary() -> None:
    drawn = [draw(SEED, index) for index in range(300)]
    ropes = {each.fields.get("rope_parameters", {}).get("rope_type") for each in drawn}
    assert {"default", "linear", "dynamic", "yarn", "llama3", "longrope"} <= ropes
    windows = [(each.fields.get("sliding_window"), each.prompt) for each in drawn if each.fields.get("sliding_window")]
    assert any(window < prompt for window, prompt in windows) and any(window > prompt for window, prompt in windows)
    assert {each.dtype for each in drawn} == {"float32", "float16", "bfloat16"}
    assert {each.second_source for each in drawn} == {"", "equal", "different"}
    assert {each.kind for each in drawn} == {"decoder", "seq2seq", "single"}
    paddings = {("none" if (token := each.fields["pad_token_id"]) is None else "end" if token == each.fields["eos_token_id"] else "own")
                for each in drawn if each.head == "causal-lm"}  # fmt: skip
    assert paddings == {"none", "end", "own"}


def test_differences_are_told_from_rounding() -> None:
    torch = pytest.importorskip("torch")  # without it nothing here is compared
    from sweeps.differential.play import difference

    expected = torch.tensor([[1.0, -2.0], [0.5, 0.25]])
    assert difference(expected, expected + 1e-6) < 1e-5
    assert difference(expected, expected * 1.01) > 1e-3
    assert difference(expected, expected[:1]) == float("inf")
    assert difference(expected, torch.full_like(expected, float("nan"))) == float("inf")
    ignored = torch.tensor([[False], [True]])
    assert difference(expected, torch.tensor([[1.0, -2.0], [9.0, 9.0]]), ignored) == 0.0


def test_a_model_is_unsteady_if_eager_is_as_far_from_itself() -> None:
    torch = pytest.importorskip("torch")  # without it nothing here is compared
    from sweeps.differential.calls import Feed, Run
    from sweeps.differential.run_draw import _unsteady

    def runs(*values: float) -> list[Run]:
        return [Run(f"run {i}", [Feed({}, {"logits": torch.tensor([value])})]) for i, value in enumerate(values)]

    found = {"runs": {"run 0": "wrong", "run 1": "right"}, "differences": {"run 0": 0.6}, "note": "run 0: logits of call 1"}
    assert _unsteady(found, runs(1, 1), [runs(1, 1), runs(1.5, 1)], 0.1)["verdict"] == "unsteady"
    assert not _unsteady(found, runs(1, 1), [runs(1.05, 2)], 0.1), "within what is allowed"
    assert not _unsteady(found, runs(1, 1), [runs(1.15, 2)], 0.1), "the export is off by far more"
    both = {"runs": {"run 0": "wrong", "run 1": "wrong"}, "differences": {"run 0": 0.6, "run 1": 0.6}, "note": ""}
    assert not _unsteady(both, runs(1, 1), [runs(1.5, 1)], 0.1), "one run is steady"


def test_what_is_silent_is_counted() -> None:
    def row(**verdicts: str) -> dict[str, Any]:
        backends = {name: {"verdict": verdict, "note": "call 1"} for name, verdict in verdicts.items()}
        return {"draw": draw(1, 0).describe(), "backends": backends}

    rows = [row(pt2="right", onnx="wrong"), row(pt2="caught", onnx="refused")]
    assert summary(rows) == {"right": 1, "silent": 1, "caught": 1, "refused": 1}
    text = "\n".join(page(rows, 1))
    assert "| onnx | 0 | 1 | 0 | 0 | 1 | 0 | 0 | 0 | 0 |" in text and "| onnx | silent | " in text
