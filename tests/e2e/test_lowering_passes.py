"""Passes that backends share: what they leave must give the same bits as what they were given.

Archives of torch say little of who shares memory with whom, so schemas decide; captures say all of it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from cli_tool import Argosy, find_argosy
from models import LOWERED, cases_by_name
from round_trip import RoundTrip

torch = pytest.importorskip("torch", reason="archives are run with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")

PASSES = "decompose-structures,functionalise,normalise,eliminate-dead-code,compact-ids"


@pytest.fixture(scope="module")
def lowered(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    written = tmp_path_factory.mktemp("lowered")
    kept = os.environ.get("ARGOSY_E2E_DIR")
    result = RoundTrip(Path(kept).absolute() if kept else tmp_path_factory.mktemp("archives"), written, PASSES)
    selected = [item.callspec.params["archive"] for item in request.session.items if "archive" in params_of(item)]
    cases = cases_by_name()
    result.run({name: cases[name].kind for name in selected})
    return result


def params_of(item: pytest.Item) -> dict:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


@pytest.mark.parametrize("archive", LOWERED)
def test_lowered_archive_is_bit_equal(archive: str, lowered: RoundTrip) -> None:
    row = lowered.rows[archive]
    assert not row.error, row.error
    assert row.values > 0


@pytest.fixture(scope="module")
def argosy(tmp_path_factory: pytest.TempPathFactory) -> Argosy:
    return find_argosy(tmp_path_factory.mktemp("argosy"))


def results(archive: Path) -> list:
    """What the programs of an archive give for their own samples, and their inputs after the call."""
    from torch.export.pt2_archive._package import load_pt2
    from torch.utils._pytree import tree_leaves, tree_map

    leaves = []
    for _, program in sorted(load_pt2(archive).exported_programs.items()):
        args, kwargs = tree_map(lambda x: x.clone() if torch.is_tensor(x) else x, program.example_inputs)
        torch.manual_seed(0)
        with torch.no_grad():
            given = program.module()(*args, **kwargs)
        leaves += tree_leaves((given, args, kwargs))
    return leaves


# Views of views that are written, tensors that change their shape, parameters that change, experts, complex numbers.
@pytest.mark.parametrize("family", ["big_bird", "qwen3_next", "mixtral", "rwkv", "deepseek_v2"])
def test_lowered_capture_equals_the_plain_one(argosy: Argosy, family: str, tmp_path: Path) -> None:
    from argosy.capture.session import open_session, trace_session, write_session
    from argosy.capture.twin import shrink
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan

    model, capture, plan = (tmp_path / name for name in ("model", "m.capture", "plan.json"))
    session = open_session(shrink(transformers.CONFIG_MAPPING[family]()))
    trace_session(session, attention="whole")
    write_session(session, capture, {})
    session.twin.save_pretrained(model)
    write_weight_plan(make_weight_plan(model), plan)
    weights = ("--checkpoint", model, "--plan", plan)
    plain, lowered = tmp_path / "plain.pt2", tmp_path / "lowered.pt2"
    argosy.run("opt", capture, *weights, "--passes=decompose-structures", "-o", plain)
    passes = PASSES.replace("normalise,", "normalise,decompose-complex,")
    argosy.run("opt", capture, *weights, "--verify-each", f"--passes={passes}", "-o", lowered)
    expected, actual = results(plain), results(lowered)
    assert len(expected) == len(actual) > 0
    for a, b in zip(expected, actual, strict=True):
        # Products of complex numbers are rounded in another order.
        tolerance = 1e-5 if family == "deepseek_v2" else 0
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)
