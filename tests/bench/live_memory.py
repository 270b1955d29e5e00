"""What exporting a live model adds to the memory of its process: peak and lasting RSS, and whether weights were copied.

    python tests/bench/live_memory.py                 Llama of 1.1 B parameters in float32 (4.4 GB of memory)
    python tests/bench/live_memory.py --layers 2 --hidden 256 --vocabulary 1000

Prints one JSON object. The limit of 300 MB holds for the growth of the peak; more is exit code 1.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

LIMIT = 300 << 20


def memory(key: str) -> int:
    """A figure of /proc/self/status in bytes: VmRSS now, VmHWM its peak since the last reset."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(key + ":"):
            return int(line.split()[1]) << 10
    raise KeyError(key)


def reset_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def make_model(layers: int, hidden: int, vocabulary: int) -> Any:
    """A Llama with random weights, made in place: initialising by the model's own code takes longer than the export."""
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    config = LlamaConfig(
        num_hidden_layers=layers,
        hidden_size=hidden,
        intermediate_size=hidden * 11 // 4,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(hidden // 512, 1),
        vocab_size=vocabulary,
    )
    with torch.device("meta"):
        model = LlamaForCausalLM(config).eval()
    model = model.to_empty(device="cpu")
    torch.manual_seed(0)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.uniform_(-0.02, 0.02)
        for module in model.modules():  # buffers that no checkpoint has
            if hasattr(module, "original_inv_freq"):
                fresh = type(module)(config)
                module.inv_freq.copy_(fresh.inv_freq)
                module.original_inv_freq.copy_(fresh.inv_freq)
    return model


def measure(layers: int, hidden: int, vocabulary: int) -> dict[str, Any]:
    import torch

    from argosy.exporters import DynamoConfig, DynamoExporter

    model = make_model(layers, hidden, vocabulary)
    inputs = {"input_ids": torch.arange(1, 9).reshape(2, 4), "attention_mask": torch.ones(2, 4, dtype=torch.int64)}
    inputs["attention_mask"][0, 0] = 0
    storages = {parameter.data_ptr() for parameter in model.parameters()}
    result: dict[str, Any] = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "weight_bytes": sum(parameter.numel() * parameter.element_size() for parameter in model.parameters()),
        "rss_before": memory("VmRSS"),
    }
    reset_peak()
    start, cpu = time.monotonic(), time.process_time()
    programs = DynamoExporter().export_for_generation(model, inputs, DynamoConfig(dynamic=True))
    result["seconds"] = round(time.monotonic() - start, 1)
    result["cpu_seconds"] = round(time.process_time() - cpu, 1)
    result["peak_growth"] = memory("VmHWM") - result["rss_before"]
    result["lasting_growth"] = memory("VmRSS") - result["rss_before"]
    result["programs"] = sorted(programs)
    result["weights_shared"] = all(
        tensor.data_ptr() in storages
        for program in programs.values()
        for name, tensor in program.state_dict.items()
        if name in dict(model.named_parameters())
    )
    return result


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=22)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--vocabulary", type=int, default=32000)
    options = parser.parse_args()
    result = measure(options.layers, options.hidden, options.vocabulary)
    print(json.dumps(result))
    return 0 if result["peak_growth"] <= LIMIT and result["weights_shared"] else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)  # torch may crash while it frees fake tensors at exit
