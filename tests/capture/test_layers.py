"""A model has more layers than its twin: their states vary as well."""

from __future__ import annotations

from argosy.capture.session import open_session, trace_session


def test_states_of_layers_that_the_twin_lacks_vary() -> None:
    from transformers import LlamaConfig

    config = LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=12, num_attention_heads=4,
                         num_key_value_heads=2, vocab_size=64)  # fmt: skip
    session = open_session(config)
    assert session.twin.config.num_hidden_layers < 12
    trace_session(session)
    assert not session.traced[0].specialized
    names = session.traced[0].dims.names
    assert names["past_key_values_11_key"] == names["past_key_values_0_key"] == {0: "batch", 2: "past_sequence"}
