"""Attention captured as one op."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from pathlib import Path

import pytest
import torch
from captured import twin_config
from thorough import thorough

import argosy.capture.attention as whole
from argosy.check.captures import compare, edge_shapes
from argosy.capture.configuration import canonical
from argosy.capture.reader import read_capture
from argosy.capture.session import open_session, shape_limits, trace_session, write_session


@pytest.mark.parametrize("model_type", [thorough("llama"), thorough("gemma2"), "gpt_oss", "whisper", "vit"])
def test_one_op_equals_eager(model_type: str, tmp_path: Path) -> None:
    session = open_session(twin_config(model_type))
    trace_session(session, attention="whole")
    write_session(session, tmp_path / "x.capture", canonical(session.config.to_dict()))
    ops = Counter(str(node.target) for traced in session.traced for node in traced.program.graph.nodes)
    assert ops["argosy.attention.default"] > 0
    assert (
        not ops["aten.scaled_dot_product_attention.default"] and not ops["aten.softmax.int"] or model_type == "gpt_oss"
    )
    if program := os.environ.get("ARGOSY_BIN"):
        verified = subprocess.run(
            [program, "opt", tmp_path / "x.capture", "--passes=verify"], capture_output=True, text=True
        )
        assert verified.returncode == 0, verified.stderr
    graphs = read_capture(tmp_path / "x.capture", session.twin.state_dict())
    limits = shape_limits(session)
    results = [
        compare(component, graphs[component.name], session.twin, shape)
        for component in session.components
        for shape in edge_shapes(component, limits)
    ]
    assert not [result for result in results if not result.ok]


def test_declines_what_it_does_not_know() -> None:
    """T5's bias of positions is an argument that the op has no place for."""
    session = open_session(twin_config("t5"))
    trace_session(session, attention="whole")
    ops = Counter(str(node.target) for traced in session.traced for node in traced.program.graph.nodes)
    assert ops["aten.scaled_dot_product_attention.default"] > 0


def test_causal_order_without_a_mask_declines() -> None:
    module = torch.nn.Module()
    module.is_causal = True
    query = torch.randn(1, 2, 5, 4)
    got, _ = whole.attention_forward(module, query, query, query, None)
    want = torch.nn.functional.scaled_dot_product_attention(query, query, query, is_causal=True)
    assert torch.equal(got, want.transpose(1, 2))


def test_implementations_are_restored() -> None:
    from argosy.capture.twin import build

    model = build(twin_config("llama"))
    before = model.config._attn_implementation
    with whole.whole_attention(model):
        assert model.config._attn_implementation == whole.NAME
    assert model.config._attn_implementation == before
