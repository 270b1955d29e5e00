"""Rotary embeddings that depend on the length are right on both sides of the original one."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from captured import capture, differences  # noqa: E402

from argosy.check.captures import compare, within  # noqa: E402
from argosy.capture.components import Shape  # noqa: E402
from argosy.capture.patches import rotary  # noqa: E402
from argosy.capture.session import open_session, trace_session  # noqa: E402

LIMIT = 24
SMALL = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2, "num_attention_heads": 4,
    "num_key_value_heads": 2, "vocab_size": 128, "pad_token_id": 0,
}  # fmt: skip
LONGROPE = {
    "rope_type": "longrope",
    "short_factor": [1.0 + 0.1 * i for i in range(8)],
    "long_factor": [2.0 + 0.5 * i for i in range(8)],
}


def config_of(kind: str):
    if kind == "dynamic":
        scaling = {"rope_type": "dynamic", "factor": 4.0}
        return transformers.LlamaConfig(**SMALL, max_position_embeddings=LIMIT, rope_scaling=scaling)
    lengths = {"max_position_embeddings": 4 * LIMIT, "original_max_position_embeddings": LIMIT}
    return transformers.Phi3Config(**SMALL, **lengths, rope_scaling=LONGROPE)


PROMPTS = [Shape(2, LIMIT + more, 0, 0) for more in (-1, 0, 1, 5)]
STEPS = [Shape(2, 2, LIMIT - 2 + more, 0) for more in (-1, 0, 1, 5)] + [Shape(2, LIMIT + 6, 0, 6), Shape(2, 3, 30, 4)]
#: Those with a short past and a long text.
CROSSING = [Shape(2, 2, LIMIT - 1, 0)]


@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_both_sides_of_the_original_length(kind, tmp_path):
    session, graphs = capture(config_of(kind), tmp_path)
    assert rotary.rotary_limits(session.twin) == [LIMIT]
    (traced,) = session.traced
    steps = within(traced, STEPS)
    assert [shape for shape in STEPS if shape not in steps] == (CROSSING if kind == "longrope" else [])
    assert differences(session, graphs, PROMPTS + steps) == []

    # the check sees frequencies of the wrong side
    component = session.components[0]
    with torch.no_grad():
        right = component.reference(session.twin, PROMPTS[-1])["logits"]
        (module,) = (module for module in session.twin.modules() if hasattr(module, "rope_type"))
        rotary.forget_lengths(session.twin)
        module.rope_type = "default"
        fixed = component.reference(session.twin, PROMPTS[-1])["logits"]
        same = component.reference(session.twin, PROMPTS[0])["logits"]
        module.rope_type = kind
    assert not torch.allclose(right, fixed, atol=1e-3)
    assert torch.allclose(component.reference(session.twin, PROMPTS[0])["logits"], same, atol=1e-5)


def test_a_text_that_grows_beyond_the_original_length_is_refused(tmp_path):
    """``generate`` computes such a text anew, since keys of the past have the frequencies of a short one."""
    session, graphs = capture(config_of("longrope"), tmp_path)
    (traced,) = session.traced
    (guard,) = traced.guards
    assert guard.longest == LIMIT and "modeling_phi3.py:" in guard.where
    assert guard.condition == f"total_sequence <= {LIMIT} or past_sequence == 0 or past_sequence > {LIMIT}"
    for shape in CROSSING:
        assert not compare(traced.component, graphs["decode"], session.twin, shape).ok
    # Who asks for short texts only is not bothered.
    session = open_session(config_of("longrope"), shape=f"total_sequence=1..{LIMIT}")
    trace_session(session)
    assert session.traced[0].guards == []


def test_only_models_that_begin_anew_have_that_limit():
    assert rotary.restart(transformers.Phi3ForCausalLM(config_of("longrope")))[0] == LIMIT
    assert rotary.restart(transformers.LlamaForCausalLM(config_of("dynamic"))) is None
    assert rotary.restart(transformers.Phi3ForCausalLM(transformers.Phi3Config(**SMALL))) is None


@pytest.mark.thorough  # versions are pinned: run it when they change
@pytest.mark.parametrize("kind", ["dynamic", "longrope"])
def test_the_patch_is_needed(kind, tmp_path, monkeypatch):
    """When this fails, transformers traces such models itself: remove ``rotary_by_length``, or keep it for older ones."""
    monkeypatch.setattr(rotary, "_length_dependent_modules", lambda model: iter(()))
    with pytest.raises(Exception):  # noqa: B017 - a branch on data, or a constant without values
        capture(config_of(kind), tmp_path)


def test_everything_is_restored():
    config = config_of("longrope")
    model = transformers.Phi3ForCausalLM(config)
    (module,) = (module for module in model.modules() if hasattr(module, "rope_type"))
    before, forward = dict(module._buffers), type(module).forward
    with rotary.rotary_by_length(model):
        assert type(module).forward is not forward
        assert "inv_freq_beyond" in module._buffers
    assert type(module).forward is forward
    assert module._buffers.keys() == before.keys()
