"""Passes that backends share, on captures: what they leave must give the same bits as what they were given. A capture says who
shares memory with whom; test_roundtrip.py has the same for archives of torch, where schemas decide."""

from __future__ import annotations

from pathlib import Path

import pytest
from cli_tool import Argosy, find_argosy
from round_trip import LOWERING_PASSES
from sweeps.configurations import configuration
from thorough import thorough

torch = pytest.importorskip("torch", reason="archives are run with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")


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


def lowered_results(argosy: Argosy, family: str, folder: Path, passes: str) -> tuple[list, list]:
    """What a capture's archive gives as it is, and after passes."""
    from argosy.capture.session import open_session, trace_session, write_session
    from argosy.capture.twin import shrink
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan

    model, capture, plan = (folder / name for name in ("model", "m.capture", "plan.json"))
    session = open_session(shrink(configuration(family)))
    trace_session(session, attention="whole")
    write_session(session, capture, {})
    session.twin.save_pretrained(model)
    write_weight_plan(make_weight_plan(model), plan)
    weights = ("--checkpoint", model, "--plan", plan)
    plain, lowered = folder / "plain.pt2", folder / "lowered.pt2"
    argosy.run("opt", capture, *weights, "--passes=decompose-structures", "-o", plain)
    argosy.run("opt", capture, *weights, "--verify-each", f"--passes={passes}", "-o", lowered)
    expected, actual = results(plain), results(lowered)
    assert len(expected) == len(actual) > 0
    return expected, actual


# Views of views that are written, tensors that change their shape, parameters that change, experts, complex numbers.
@pytest.mark.parametrize("family", ["big_bird", "qwen3_next", "deepseek_v2", thorough("mixtral"), thorough("rwkv")])
def test_lowered_capture_equals_the_plain_one(argosy: Argosy, family: str, tmp_path: Path) -> None:
    passes = LOWERING_PASSES.replace("normalise,", "normalise,decompose-complex,")
    for a, b in zip(*lowered_results(argosy, family, tmp_path, passes), strict=True):
        # Products of complex numbers are rounded in another order.
        tolerance = 1e-5 if family == "deepseek_v2" else 0
        torch.testing.assert_close(b, a, rtol=tolerance, atol=tolerance, equal_nan=True)


# Rotary embeddings by halves, by pairs, and of a part of each head.
@pytest.mark.parametrize("family", ["gemma3_text", thorough("helium"), thorough("stablelm")])
def test_what_is_recognised_computes_the_same(argosy: Argosy, family: str, tmp_path: Path) -> None:
    passes = f"{LOWERING_PASSES},recognise,join-views,decompose-structures,eliminate-dead-code,compact-ids"
    for a, b in zip(*lowered_results(argosy, family, tmp_path, passes), strict=True):
        torch.testing.assert_close(b, a, rtol=1e-5, atol=1e-5)
