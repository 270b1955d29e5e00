"""Live models in bfloat16: files that engines on CPUs load, with the model's own weights."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

from sweeps.model_state import ModelState  # noqa: E402
from argosy.exporters import ExecutorchConfig, ExecutorchExporter, OnnxConfig, OnnxExporter  # noqa: E402


@pytest.mark.parametrize(("exporter", "config"), [(OnnxExporter, OnnxConfig), (ExecutorchExporter, ExecutorchConfig)])
def test_a_bfloat16_model_is_a_float32_file(exporter: type, config: type) -> None:
    torch.manual_seed(0)
    sizes = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=64)
    model = LlamaForCausalLM(LlamaConfig(**sizes, tie_word_embeddings=True)).eval().to(torch.bfloat16)
    inputs = {"input_ids": torch.arange(12).reshape(2, 6), "attention_mask": torch.ones(2, 6, dtype=torch.long)}
    state = ModelState(model)
    program = exporter().export(model, inputs, config(dynamic=True))
    assert state.differences() == []
    assert any("bfloat16" in note for note in program.notes)
    with torch.no_grad():
        expected = LlamaForCausalLM(model.config).eval().float()
        expected.load_state_dict({name: tensor.float() for name, tensor in model.state_dict().items()})
        wanted = expected(**inputs).logits
    for rows in (2, 1):
        given = {name: value[:rows] for name, value in inputs.items()}
        torch.testing.assert_close(program(**given)[0], wanted[:rows], rtol=0, atol=1e-5)
    embeds = model.get_input_embeddings()(inputs["input_ids"])
    program = exporter().export(model, {"inputs_embeds": embeds}, config())
    torch.testing.assert_close(program(inputs_embeds=embeds)[0], wanted, rtol=0, atol=1e-5)
