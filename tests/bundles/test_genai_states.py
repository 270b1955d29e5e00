"""Caches that are more than keys and values, in ONNX Runtime GenAI: tokens are those of eager `generate`."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
import torch

pytest.importorskip("onnxruntime_genai")

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))

TINY = {
    "hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
    "vocab_size": 128, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0,
}  # fmt: skip

#: One convolution state in layers without keys; keys, a convolution and a recurrent state in one layer; values that are
#: narrower than keys.
MODELS = {
    "lfm2": {**TINY, "layer_types": ["conv", "full_attention", "conv"], "block_auto_adjust_ff_dim": False},
    "falcon_h1": {**TINY, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 8, "mamba_chunk_size": 8},
    "deepseek_v3": {**TINY, "kv_lora_rank": 16, "q_lora_rank": 16, "qk_nope_head_dim": 16, "qk_rope_head_dim": 8,
                    "v_head_dim": 8, "first_k_dense_replace": 3, "num_key_value_heads": 4},
}  # fmt: skip


@pytest.mark.parametrize("model_type", MODELS)
def test_tokens_are_those_of_the_model(model_type: str, tmp_path: Path) -> None:
    from transformers import AutoConfig, AutoModelForCausalLM

    from argosy.capture.twin import save

    torch.manual_seed(0)
    model = AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **MODELS[model_type]))
    with torch.no_grad():  # further apart than random weights would be, so that no two tokens are nearly equal
        for parameter in model.parameters():
            parameter.mul_(6 if parameter.dim() > 1 else 1)
    save(model, tmp_path / "model")
    export = [
        ARGOSY,
        "export",
        "onnx",
        "--model",
        tmp_path / "model",
        "--check",
        "off",
        "--for",
        "genai",
        tmp_path / "out",
    ]
    for command in (export, [ARGOSY, "lint", tmp_path / "out"],
                    [ARGOSY, "check", tmp_path / "out", "--against", tmp_path / "model", "--tokens", "32"]):  # fmt: skip
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True, timeout=600)
        assert done.returncode == 0, done.stdout + done.stderr
