"""The check itself: it passes a right capture, and fails when one part of it is wrong."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from captured import capture, differences, twin_config  # noqa: E402

from argosy.capture.components import Shape  # noqa: E402
from argosy.capture.reader import ReadGraph, read_capture  # noqa: E402

SHAPES = [Shape(2, 4, 6, 2), Shape(2, 1, 5, 0)]


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    folder = tmp_path_factory.mktemp("llama")
    session, _ = capture(twin_config("llama"), folder)
    return session, folder / "model.capture"


@pytest.fixture
def graph(captured) -> ReadGraph:
    session, path = captured
    return read_capture(path, session.twin.state_dict())["decode"]


def wrong(captured, graph: ReadGraph) -> list:
    return differences(captured[0], {"decode": graph}, SHAPES)


def nodes(graph: ReadGraph, text: str) -> list:
    found = [node for node in graph.program.graph.nodes if text in str(node.target) or text == node.name]
    assert found, f"no node {text}"
    return found


def test_a_right_capture_passes(captured, graph):
    assert differences(captured[0], {"decode": graph}) == []


def test_a_lost_mask_is_found(captured, graph):
    for node in nodes(graph, "scaled_dot_product_attention"):
        mask = node.args[3] if len(node.args) > 3 else node.kwargs["attn_mask"]
        node.replace_input_with(mask, None)
    assert len(wrong(captured, graph)) == len(SHAPES[:1]), (
        "padding and causality matter, a single token sees everything"
    )


def test_a_shifted_rotary_offset_is_found(captured, graph):
    (positions,) = nodes(graph, "position_ids")
    with graph.program.graph.inserting_after(positions):
        shifted = graph.program.graph.call_function(torch.ops.aten.add.Tensor, (positions, 1))
    positions.replace_all_uses_with(shifted, delete_user_cb=lambda user: user is not shifted)
    assert len(wrong(captured, graph)) == len(SHAPES)


def test_a_layer_with_the_cache_of_another_is_found(captured, graph):
    (first,), (second,) = nodes(graph, "past_key_values_0_key"), nodes(graph, "past_key_values_1_key")
    second.replace_all_uses_with(first)
    assert len(wrong(captured, graph)) == len(SHAPES)


@pytest.mark.parametrize("name", ["model.layers.1.mlp.down_proj.weight", "model.layers.0.input_layernorm.weight"])
def test_a_slightly_different_weight_is_found(captured, graph, name):
    graph.weights = {**graph.weights, name: graph.weights[name] * 1.001}
    assert len(wrong(captured, graph)) == len(SHAPES)


def test_outputs_that_are_missing_are_found(captured, graph):
    outputs = graph.interface["outputs"]
    graph.interface = {**graph.interface, "outputs": [{**outputs[0], "name": "scores"}, *outputs[1:]]}
    assert all("outputs differ" in result.error for result in wrong(captured, graph))
    assert len(wrong(captured, graph)) == len(SHAPES)
