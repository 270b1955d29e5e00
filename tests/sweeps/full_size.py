"""Captures models of full size from nothing but their configurations, and prints what each costs.

    python tests/sweeps full-size [NAME ...]

One process a model. ``torch`` is the CPU time inside torch.export and torch's serialisation of the same graphs in the same
process; the budget is 1.25 times that + 10 s for imports, and 1 GB of memory (Mamba 1.25 GB).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

LLAMA_2_7B = {
    "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "intermediate_size": 11008,
    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "dtype": "float16",
}  # fmt: skip
CONFIGURATIONS = {
    "Llama-2-7B": LLAMA_2_7B,
    "Qwen2.5-7B": {
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "hidden_size": 3584, "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4, "vocab_size": 152064,
        "max_position_embeddings": 131072, "rope_theta": 1000000.0, "use_sliding_window": False, "dtype": "bfloat16",
    },
    "Mixtral-8x7B": {
        "model_type": "mixtral", "architectures": ["MixtralForCausalLM"], "hidden_size": 4096, "intermediate_size": 14336,
        "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "vocab_size": 32000,
        "num_local_experts": 8, "num_experts_per_tok": 2, "sliding_window": None, "max_position_embeddings": 32768,
        "rope_theta": 1000000.0, "dtype": "bfloat16",
    },
    "Gemma-3-12B (text)": {
        "model_type": "gemma3_text", "architectures": ["Gemma3ForCausalLM"], "hidden_size": 3840, "intermediate_size": 15360,
        "num_hidden_layers": 48, "num_attention_heads": 16, "num_key_value_heads": 8, "head_dim": 256,
        "sliding_window": 1024, "vocab_size": 262208, "query_pre_attn_scalar": 256, "dtype": "bfloat16",
    },
    "Mamba-2.8B": {
        "model_type": "mamba", "architectures": ["MambaForCausalLM"], "hidden_size": 2560, "num_hidden_layers": 64,
        "state_size": 16, "conv_kernel": 4, "expand": 2, "time_step_rank": 160, "vocab_size": 50280, "dtype": "float32",
    },
    "T5-3B": {
        "model_type": "t5", "architectures": ["T5ForConditionalGeneration"], "d_model": 1024, "d_ff": 16384, "d_kv": 128,
        "num_layers": 24, "num_heads": 32, "vocab_size": 32128, "decoder_start_token_id": 0, "dtype": "float32",
    },
    "Whisper-large-v3": {
        "model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": 1280,
        "encoder_layers": 32, "decoder_layers": 32, "encoder_attention_heads": 20, "decoder_attention_heads": 20,
        "encoder_ffn_dim": 5120, "decoder_ffn_dim": 5120, "vocab_size": 51866, "num_mel_bins": 128, "dtype": "float16",
    },
    "ViT-large": {
        "model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": 1024, "intermediate_size": 4096,
        "num_hidden_layers": 24, "num_attention_heads": 16, "image_size": 224, "patch_size": 16, "dtype": "float32",
    },
    "LLaVA-1.5-7B": {
        "model_type": "llava", "architectures": ["LlavaForConditionalGeneration"], "image_token_index": 32000,
        "text_config": {**LLAMA_2_7B, "vocab_size": 32064},
        "vision_config": {
            "model_type": "clip_vision_model", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 24,
            "num_attention_heads": 16, "image_size": 336, "patch_size": 14, "projection_dim": 768,
        },
        "dtype": "float16",
    },
    "Qwen2.5-VL-7B": {
        "model_type": "qwen2_5_vl", "architectures": ["Qwen2_5_VLForConditionalGeneration"], "hidden_size": 3584,
        "intermediate_size": 18944, "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "vocab_size": 152064, "max_position_embeddings": 128000, "rope_theta": 1000000.0, "image_token_id": 151655,
        "video_token_id": 151656, "vision_start_token_id": 151652, "vision_end_token_id": 151653,
        "rope_scaling": {"type": "mrope", "mrope_section": [16, 24, 24]},
        "vision_config": {
            "depth": 32, "hidden_size": 1280, "intermediate_size": 3420, "num_heads": 16, "in_chans": 3,
            "out_hidden_size": 3584, "patch_size": 14, "spatial_merge_size": 2, "window_size": 112,
            "fullatt_block_indexes": [7, 15, 23, 31], "temporal_patch_size": 2,
        },
        "dtype": "bfloat16",
    },
    "Llama-3-70B": {
        "model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": 8192, "intermediate_size": 28672,
        "num_hidden_layers": 80, "num_attention_heads": 64, "num_key_value_heads": 8, "vocab_size": 128256,
        "max_position_embeddings": 8192, "rope_theta": 500000.0, "dtype": "bfloat16",
    },
}  # fmt: skip


def measure(name: str, folder: Path) -> dict:
    """Captures one model; the figures of its process."""
    (folder / "config.json").write_text(json.dumps(CONFIGURATIONS[name]))
    command = [sys.executable, "-m", "argosy.capture", "--model", str(folder), "--progress", "json",
               "-o", str(folder / "model.capture")]  # fmt: skip
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    lines = process.stderr.read().splitlines()
    _, status, usage = os.wait4(process.pid, 0)
    figures = {"cpu": usage.ru_utime + usage.ru_stime, "peak_mb": usage.ru_maxrss / 1024, "failed": bool(status)}
    if status:
        figures["reason"] = lines[-1] if lines else f"status {status}"
        return figures
    stages = [json.loads(line) for line in lines if line.startswith("{")]
    capture = folder / "model.capture"
    return {**figures, **stages[-1], "megabytes": capture.stat().st_size / 1e6, "fixed": fixed_inputs(capture)}


def fixed_inputs(capture: Path) -> list[str]:
    """What callers may expect to vary and does not: dims that the trace fixed, and states of layers without a named batch."""
    with zipfile.ZipFile(capture) as archive:
        components = json.loads(archive.read("capture.json"))["components"]
    found = []
    for component in components:
        found += [f"{component['name']}.{each['input']} dim {each['dim']}" for each in component["specialized"]]
        states = {state["input"] for state in (component["cache"] or {"states": []})["states"]}
        found += [
            f"{component['name']}.{each['name']}"
            for each in component["inputs"]
            if each["name"] in states and not any(isinstance(dim, str) for dim in each["dims"])
        ]
    return found


def main(arguments: list[str]) -> int:
    names = arguments or list(CONFIGURATIONS)
    print(
        f"{'model':20} {'components':36} {'nodes':>6} {'MB':>5} {'CPU s':>6} {'torch s':>7} {'budget':>6} {'peak MB':>7}"
    )
    bad = 0
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            figures = measure(name, Path(folder))
        if figures["failed"]:
            print(f"{name:20} failed: {figures['reason'][:200]}", flush=True)
            bad += 1
            continue
        torch_seconds = figures["export_cpu"] + figures["serialize_cpu"]
        budget = 1.25 * torch_seconds + 10
        memory = 1280 if name.startswith("Mamba") else 1024
        within = figures["cpu"] <= budget and figures["peak_mb"] <= memory
        bad += not within or bool(figures["fixed"])
        components = " ".join(figures["components"])
        print(f"{name:20} {components:36} {figures['nodes']:6} {figures['megabytes']:5.1f} {figures['cpu']:6.1f} "
              f"{torch_seconds:7.1f} {budget:6.1f} {figures['peak_mb']:7.0f}{'' if within else '  OVER'}", flush=True)  # fmt: skip
        if figures["fixed"]:
            print(f"{'':20} fixed: {', '.join(figures['fixed'][:4])}, {len(figures['fixed'])} in all", flush=True)
    return bad
