"""A capture with the weights of a checkpoint, attached by C++ through a weight plan, computes what the eager model does."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tool import REPOSITORY

torch = pytest.importorskip("torch", reason="captures are made with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()


def run(*command: str | Path) -> None:
    variables = {**os.environ, "PYTHONPATH": str(REPOSITORY / "python"), "OMP_NUM_THREADS": "1"}
    subprocess.run([str(word) for word in command], check=True, env=variables)


def run_graph(program, inputs: dict) -> list:
    """The outputs of a graph whose missing inputs are caches without a past."""
    arguments = []
    for spec in program.graph_signature.input_specs:
        if spec.target in program.state_dict:
            arguments.append(program.state_dict[spec.target])
        elif spec.target is not None:
            arguments.append(program.constants[spec.target])
        else:
            arguments.append(inputs[spec.arg.name])
    with torch.no_grad():
        return program.graph_module(*arguments)


def test_experts_that_were_stacked_by_the_plan_compute_what_eager_does(tmp_path: Path) -> None:
    from torch.export.pt2_archive._package import load_pt2

    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_hidden_layers": 2, "vocab_size": 40}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "num_local_experts": 3}
    torch.manual_seed(0)
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(**sizes, **heads)).eval()
    model.save_pretrained(tmp_path / "m")
    for module, output in (("argosy.capture", "m.capture"), ("argosy.capture.weight_plan", "plan.json")):
        run(sys.executable, "-m", module, "--model", tmp_path / "m", "-o", tmp_path / output)
    checkpoint = ["--checkpoint", tmp_path / "m", "--plan", tmp_path / "plan.json"]
    run(PROGRAM, "opt", tmp_path / "m.capture", *checkpoint, "-o", tmp_path / "m.pt2")

    program = load_pt2(str(tmp_path / "m.pt2")).exported_programs["decode"]
    ids = torch.randint(1, 40, (2, 5))
    mask = torch.ones_like(ids)
    inputs = {"input_ids": ids, "attention_mask": mask, "position_ids": torch.arange(5).expand(2, 5)}
    for layer in range(2):
        for part in ("key", "value"):
            inputs[f"past_key_values_{layer}_{part}"] = torch.zeros(2, 2, 0, 4)
    with torch.no_grad():
        expected = model(input_ids=ids, attention_mask=mask).logits
    assert (run_graph(program, inputs)[0] - expected).abs().max() <= 1e-6
