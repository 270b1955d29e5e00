"""Ways to store the weights of a draw in few bits: ``drawn_schemes(draw)`` is the same everywhere, from Python's own generator alone."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .draw import Draw

#: Largest difference that is no mistake, of the largest expected value, where activations are rounded to eight bits: a value that
#: lies between two integers may become the other one.
ROUNDED = 1e-1


@dataclass(frozen=True)
class Scheme:
    name: str
    #: after ``argosy export``
    arguments: tuple[str, ...]
    #: an export of ``engines.EXTRAS``, or none
    extra: str = ""


def drawn_schemes(drawn: Draw) -> list[Scheme]:
    """Three: ONNX in 4 and 8 bits, and a .pte."""
    rng = random.Random(f"scheme {drawn.seed} {drawn.index}")
    return [_onnx(rng, drawn, 4), _onnx(rng, drawn, 8), _executorch(rng, drawn)]


def _onnx(rng: random.Random, drawn: Draw, bits: int) -> Scheme:
    method = rng.choice(("default", "default", "rtn", "k_quant"))
    rules = [f"int{bits}"]
    if rng.random() < 0.4:
        rules.append(f"embedding={rng.choice(('int4', 'int8'))}")
    if drawn.head == "causal-lm" and rng.random() < 0.3:
        rules.append(f"lm_head={rng.choice(('int8', 'float'))}")
    arguments = ["--quantize", ",".join(rules), "--quantize-block", rng.choice(("16", "16", "32")), "--quantize-method", method]
    if method != "k_quant" and rng.random() < 0.4:
        arguments.append("--quantize-zero-points")
    arguments += ["--dtype", rng.choice(("fp32", "fp32", "fp16")), "--accuracy-level", rng.choice(("1", "1", "4"))]
    is_bundle = drawn.head == "causal-lm" and "genai" in drawn.extras
    name = f"onnx int{bits}" + (" genai" if is_bundle else "")
    return Scheme(name, ("onnx", *(("--for", "genai") if is_bundle else ()), *arguments), "genai" if is_bundle else "")


def _executorch(rng: random.Random, drawn: Draw) -> Scheme:
    encoding = rng.choice(("8da4w", "8da8w", "4w", "8w"))
    arguments = ["--qlinear", encoding]
    if encoding == "8da4w":
        arguments += ["--qlinear-group-size", "32"]
    if rng.random() < 0.4:
        arguments += ["--qembedding", "8w"]
    is_task = "text-generation" in drawn.extras
    task = ("--task", "text-generation") if is_task else ()
    return Scheme(f"executorch {encoding}" + (" text-generation" if is_task else ""), ("executorch", *task, *arguments), "text-generation" if is_task else "")
