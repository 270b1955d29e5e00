"""What variants cost: perplexity of the trained decoder in ONNX Runtime, beside eager and beside the same arithmetic in PyTorch.

    python tests/bench/onnx_quality.py [--argosy build/release/apps/cli/argosy] [--tokens 8192]

Prints a row for each variant: perplexity on text that the model was not trained on, that of the scheme's reference in PyTorch,
how far the two are apart, and the share of positions at which the most likely token is eager's.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import onnxruntime
import torch
from executorch_quality import MODEL, REPOSITORY, Eager, likelihood
from train_decoder import corpus, stream
from transformers import AutoTokenizer

from argosy.check.schemes import QuantizedModel

VARIANTS = {
    "float32": (),
    "float16": ("--dtype", "float16"),
    "mixed16": ("--dtype", "mixed16"),
    "int8": ("--quantize", "int8"),
    "int4": ("--quantize", "int4"),
    "int4, level 1": ("--quantize", "int4", "--accuracy-level", "1"),
    "int4, zero points": ("--quantize", "int4", "--quantize-zero-points"),
    "int4, rtn": ("--quantize", "int4", "--quantize-method", "rtn"),
    "int4, k_quant": ("--quantize", "int4", "--quantize-method", "k_quant"),
    "int4, head and embedding int8": ("--quantize", "int4,lm_head=int8,embedding=int8"),
    "int4, float16": ("--quantize", "int4", "--dtype", "float16"),
    "nf4": ("--quantize", "nf4"),
    "dynamic-int8": ("--quantize", "dynamic-int8"),
    "dynamic-uint8": ("--quantize", "dynamic-uint8"),
}


class Graph:
    """The `decode` graph, called without a past."""

    def __init__(self, argosy: Path, arguments: tuple[str, ...], folder: Path) -> None:
        command = [argosy, "export", "onnx", "--model", MODEL, "--check", "off", *arguments, "-o", folder / "out"]
        subprocess.run([str(part) for part in command], check=True, capture_output=True)
        self.quantized = json.loads((folder / "out/bundle.json").read_text()).get("quantized") or []
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(folder / "out/decode.onnx", options, providers=["CPUExecutionProvider"])

    def __call__(self, tokens: torch.Tensor, start: int) -> torch.Tensor:
        assert start == 0
        positions = torch.arange(tokens.shape[1])[None]
        given = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "position_ids": positions}
        feeds = {}
        for each in self.session.get_inputs():
            dtype = torch.float16 if each.type == "tensor(float16)" else torch.float32
            feeds[each.name] = given[each.name] if each.name in given else torch.zeros(1, each.shape[1], 0, each.shape[3], dtype=dtype)
        (logits,) = self.session.run(["logits"], {name: value.numpy() for name, value in feeds.items()})
        return torch.from_numpy(logits).float()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--argosy", type=Path, default=REPOSITORY / "build/release/apps/cli/argosy")
    parser.add_argument("--tokens", type=int, default=8192)
    options = parser.parse_args()
    text = stream(AutoTokenizer.from_pretrained(MODEL), corpus()[1])[: options.tokens]
    before, best = likelihood(Eager(), text)
    print("| variant | perplexity | beside eager | reference in PyTorch | apart | same token as eager |\n|---|---:|---:|---:|---:|---:|")
    print(f"| eager, float32 | {before:.3f} | | | | |", flush=True)
    for name, arguments in VARIANTS.items():
        with tempfile.TemporaryDirectory() as folder:
            graph = Graph(options.argosy, arguments, Path(folder))
            found, tokens = likelihood(graph, text)
            eager = Eager()
            if "float16" in arguments:
                eager.model.half()
            with QuantizedModel(eager.model, graph.quantized) if graph.quantized else contextlib.nullcontext():
                expected, _ = likelihood(lambda each, start, eager=eager: eager(each, start).float(), text)
        share = (tokens == best).float().mean().item()
        print(f"| {name} | {found:.3f} | {100 * (found / before - 1):+.2f} % | {expected:.3f} | {100 * abs(found / expected - 1):.3f} % | "
              f"{100 * share:.1f} % |", flush=True)  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
