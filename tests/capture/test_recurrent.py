"""Recurrent and hybrid models: one graph for any number of new tokens on any past."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from captured import capture, differences, twin_config, writes_in_place  # noqa: E402
from thorough import thorough  # noqa: E402

FAMILIES = ["mamba", "lfm2", *map(thorough, ("mamba2", "qwen3_next", "jamba", "rwkv", "minimax"))]


@pytest.mark.parametrize("family", FAMILIES)
def test_new_tokens_on_a_past_equal_all_tokens_at_once(family, tmp_path):
    session, graphs = capture(twin_config(family), tmp_path)
    assert [component.name for component in session.components] == ["decode"]
    assert differences(session, graphs) == []
    assert writes_in_place(session) == []


def test_the_graph_of_a_scan_does_not_grow_with_the_sequence(tmp_path):
    from argosy.capture import session as sessions
    from argosy.capture.components import Shape

    config = twin_config("mamba")
    counts = set()
    for shape in (Shape(2, 19, 23, 3), Shape(2, 37, 23, 3)):
        session = sessions.open_session(config)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(sessions, "trace_shape", lambda config, shape=shape: shape)
            sessions.trace_session(session)
        modules = [m for m in session.traced[0].program.graph_module.modules() if isinstance(m, torch.fx.GraphModule)]
        counts.add(sum(len(module.graph.nodes) for module in modules))
    assert len(counts) == 1, counts


def test_weights_of_rwkv_are_those_saved(tmp_path):
    """Transformers divides weights of the later layers in place before its first call; a graph takes them undivided."""
    from argosy.capture.components import Shape
    from argosy.capture.reader import read_capture
    from argosy.capture.twin import build

    config = twin_config("rwkv", rescale_every=1)
    session, wrong = capture(config, tmp_path)
    graphs = read_capture(tmp_path / "model.capture", build(config).state_dict())
    shapes = [Shape(2, 5, 7, 2), Shape(1, 1, 0, 0)]
    assert differences(session, graphs, shapes) == []
    assert differences(session, wrong, shapes), "the twin's weights are not divided: nothing was tested"
