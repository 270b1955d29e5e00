"""Tiny checkpoints for tests, quantised by hand, and what is expected of them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from safetensors.torch import load_file, save_file
from sweeps import PROGRAM
from sweeps.weight_plans import stream

from argosy.capture.weight_plan import make_weight_plan
from argosy.check.dequantized import weights_of

Tensors = dict[str, Any]
DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16, "float32": torch.float32}


def save_model(folder: Path, model: Any, dtype: str = "bfloat16") -> Tensors:
    """The float model's folder; its tensors, to be replaced by quantised ones."""
    model.to(DTYPES[dtype]).save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def llama(folder: Path, dtype: str = "bfloat16", **changes: Any) -> Tensors:
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
    return save_model(folder, transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **changes})), dtype)


def write(folder: Path, tensors: Tensors, settings: dict[str, Any]) -> None:
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "quantization_config": settings}))


def quantise(tensors: Tensors, make: Callable[[str, Any], tuple[Tensors, Any]]) -> tuple[Tensors, Tensors]:
    """Every projection's matrix replaced by what ``make`` gives for its name and itself; and the values that these stand for."""
    stored, expected = {}, {}
    for name, tensor in tensors.items():
        if name.endswith("_proj.weight"):
            made, expected[name] = make(name.removesuffix(".weight"), tensor)
            stored.update(made)
        else:
            stored[name] = expected[name] = tensor
    return stored, expected


def assert_streams(folder: Path, expected: Tensors, *, eager: bool = True) -> dict[str, Any]:
    """What C++ makes of the checkpoint, and (``eager``) what ``argosy check`` compares with, is as expected; returns the plan."""
    plan = make_weight_plan(folder)
    assert plan["missing"] == [] and plan["unexpected"] == []
    found, message = stream(plan, folder, PROGRAM)
    assert not message
    replayed = weights_of(plan, folder) if eager else expected
    for name, wanted in expected.items():
        assert found[name].dtype == wanted.dtype, name
        assert torch.equal(found[name], wanted), name
        assert torch.equal(replayed[name], wanted), name
    return plan
