"""Speed of encoders in ONNX Runtime beside what ONNX Runtime's own optimiser makes of the same models, in pairs.

    python tests/bench/encoder_speed.py SCRATCH [--minilm FOLDER] [--only bert,vit] [--layers 4] [--pairs 50] [--threads 2]

Models of BERT-base's, ViT-base's, Whisper-base's and CLIP's sizes, with random weights and fewer layers, and a trained MiniLM if
its folder is given. Ours is `--for optimum`. The peer is torch.onnx's export of the model with attention in small ops, which is
what onnxruntime.transformers.optimizer knows best, after that optimiser. Its graph is kept in SCRATCH for further runs. Both take
turns in one process. Prints what ops each has for attention, the medians, and the ratio of ours to the peer's with the 95 %
interval of its mean: of the time that passes, and of the processors' time, which other programs disturb less. Results that
differ are an error.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from onnx_speed import interval

ROOT = Path(__file__).parents[2]
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))
TOLERANCE = 1e-3  # of results of norms, which are near 1


@dataclass
class Encoder:
    config: Callable[[int], Any]  # of so many layers
    model: str  # a class of transformers
    optimiser: str  # the kind of model that the peer is told
    tokens: tuple[int, ...] = (0,)  # lengths of texts; 0: there is no text
    output: str = "last_hidden_state"
    file: str = "model.onnx"
    part: Callable[[Any], Any] = lambda model: model
    heads: int = 0  # as the peer is told; 0: it finds them
    width: int = 0


def encoders() -> dict[str, Encoder]:
    import transformers

    def whisper(layers: int) -> Any:
        sizes = {"d_model": 512, "encoder_attention_heads": 8, "decoder_attention_heads": 8, "encoder_ffn_dim": 2048, "decoder_ffn_dim": 2048}
        return transformers.WhisperConfig(encoder_layers=layers, decoder_layers=1, **sizes)

    def clip(layers: int) -> Any:
        return transformers.CLIPConfig(text_config={"num_hidden_layers": layers}, vision_config={"num_hidden_layers": layers})

    texts = (16, 128, 384)
    return {
        "minilm": Encoder(lambda _: None, "BertModel", "bert", texts, heads=12, width=384),
        "bert": Encoder(lambda layers: transformers.BertConfig(num_hidden_layers=layers), "BertModel", "bert", texts, heads=12, width=768),
        "vit": Encoder(lambda layers: transformers.ViTConfig(num_hidden_layers=layers), "ViTModel", "vit", heads=12, width=768),
        "whisper": Encoder(
            whisper, "WhisperForConditionalGeneration", "bart", file="encoder_model.onnx", part=lambda model: model.model.encoder, heads=8, width=512
        ),
        "clip": Encoder(clip, "CLIPModel", "clip", (16, 77), output="logits_per_image"),
    }  # fmt: skip


def inputs_of(name: str, tokens: int, batch: int = 1) -> dict[str, np.ndarray]:
    random = np.random.default_rng(0)
    inputs: dict[str, np.ndarray] = {}
    if tokens:
        inputs |= {"input_ids": random.integers(5, 1000, (batch, tokens)), "attention_mask": np.ones((batch, tokens), np.int64)}
    if name in ("bert", "minilm"):
        inputs["token_type_ids"] = np.zeros((batch, tokens), np.int64)
    if name in ("vit", "clip"):
        inputs["pixel_values"] = random.standard_normal((batch, 3, 224, 224)).astype(np.float32)
    if name == "whisper":
        inputs["input_features"] = random.standard_normal((batch, 80, 3000)).astype(np.float32)
    return inputs


def make_model(encoder: Encoder, layers: int, folder: Path) -> None:
    import torch
    import transformers

    if not folder.exists():
        torch.manual_seed(0)
        getattr(transformers, encoder.model)(encoder.config(layers)).save_pretrained(folder)


def make_ours(model: Path, folder: Path) -> None:
    command = [ARGOSY, "export", "onnx", "--model", str(model), "--for", "optimum", "--check", "off", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)


def make_peer(name: str, encoder: Encoder, model_folder: Path, file: Path) -> None:
    import torch
    import transformers
    from onnxruntime.transformers.optimizer import optimize_model

    model = getattr(transformers, encoder.model).from_pretrained(model_folder, attn_implementation="eager")
    inputs = inputs_of(name, encoder.tokens[0], batch=2)

    class ByPosition(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.part = encoder.part(model).eval()

        def forward(self, *tensors: torch.Tensor) -> torch.Tensor:
            return self.part(**dict(zip(inputs, tensors, strict=True)))[encoder.output]

    dims = {each: {0: "batch", 1: "sequence"} if value.ndim == 2 else {0: "images"} for each, value in inputs.items()}
    plain = file.with_suffix(".plain.onnx")
    with torch.no_grad():
        torch.onnx.export(
            ByPosition(), tuple(map(torch.from_numpy, inputs.values())), str(plain), input_names=list(inputs),
            output_names=[encoder.output], dynamic_axes=dims, opset_version=17, dynamo=False,
        )  # fmt: skip
    # With level 0 the runtime optimises when it loads the graph, as it does with ours.
    optimised = optimize_model(str(plain), encoder.optimiser, num_heads=encoder.heads, hidden_size=encoder.width, opt_level=0)
    optimised.save_model_to_file(str(file))
    plain.unlink()


def attention_ops(file: Path) -> str:
    import onnx

    ops = Counter(node.op_type for node in onnx.load(file, load_external_data=False).graph.node)
    kept = ("Attention", "MultiHeadAttention", "Softmax", "SkipLayerNormalization", "BiasGelu")
    return f"{ops.total() - ops['Constant']} nodes, " + ", ".join(f"{ops[op]} {op}" for op in kept if ops[op])


def opened(file: Path, threads: int) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.log_severity_level = 3
    # A session that waits for its turn must not keep a core busy.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    return onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])


def compare(name: str, encoder: Encoder, sessions: dict[str, Any], pairs: int) -> None:
    for tokens in encoder.tokens:
        times: dict[str, list[tuple[float, float]]] = {each: [] for each in sessions}
        results = {}
        given = inputs_of(name, tokens)
        for turn in range(pairs + 1):
            for each in sessions if turn % 2 else reversed(sessions):
                session = sessions[each]
                feed = {value.name: given[value.name] for value in session.get_inputs()}
                start, cpu_start = time.perf_counter(), time.process_time()
                results[each] = session.run([encoder.output], feed)[0]
                if turn:  # the first run allocates
                    times[each].append((time.perf_counter() - start, time.process_time() - cpu_start))
        worst = np.abs(results["ours"] - results["peer"]).max()
        if not worst < TOLERANCE:
            sys.exit(f"{name}: results differ by {worst}")
        medians = ", ".join(f"{each} {np.median(taken, axis=0)[0] * 1000:.1f} ms" for each, taken in times.items())
        print(f"{name}, {tokens} tokens: {medians}" if tokens else f"{name}: {medians}", end="")
        for what, index in (("time", 0), ("processors' time", 1)):
            ratios = [ours[index] / peer[index] for ours, peer in zip(times["ours"], times["peer"], strict=True)]
            mean, low, high = interval(ratios)
            print(f"; {what}: ours/peer {mean:.3f} ({low:.3f} to {high:.3f})", end="")
        print(flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--minilm", type=Path, help="folder of a trained MiniLM")
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--layers", type=int, default=4, help="of models with random weights")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for name, encoder in encoders().items():
        if (options.only and name not in options.only.split(",")) or (name == "minilm" and options.minilm is None):
            continue
        made = options.scratch / (name if name == "minilm" else f"{name}-{options.layers}")
        made.mkdir(parents=True, exist_ok=True)
        model = options.minilm if name == "minilm" else made / "model"
        if name != "minilm":
            make_model(encoder, options.layers, model)
        if not (made / "peer.onnx").exists():
            make_peer(name, encoder, model, made / "peer.onnx")
        make_ours(model, made / "ours")  # anew each time: it is what is looked at
        files = {"ours": made / "ours" / encoder.file, "peer": made / "peer.onnx"}
        for each, file in files.items():
            print(f"{name}, {each}: {attention_ops(file)}", flush=True)
        compare(name, encoder, {each: opened(file, options.threads) for each, file in files.items()}, options.pairs)
    return 0


if __name__ == "__main__":
    sys.exit(main())
