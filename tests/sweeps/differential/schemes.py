"""Ways to store the weights of a draw in few bits: ``drawn_schemes(draw)`` is the same everywhere, from Python's own generator alone."""

from __future__ import annotations

import random
from dataclasses import dataclass

from .draw import Draw

#: Largest difference that is no mistake, of the largest expected value, where activations are rounded to eight bits: a value that
#: lies between two integers may become the other one.
ROUNDED = 1e-1
#: The same where one scale is for a whole tensor: a value that becomes another integer moves all that follows.
ROUNDED_WHOLE = 0.25
#: In arguments: a file with the ranges of activations that eager's own runs show.
RANGES = "{ranges}"


@dataclass(frozen=True)
class Scheme:
    name: str
    #: after ``argosy export``
    arguments: tuple[str, ...]
    #: an export of ``engines.EXTRAS``, or none
    extra: str = ""


def drawn_schemes(drawn: Draw) -> list[Scheme]:
    """Three: ONNX in 4 bits, in 8 bits or another scheme, and a .pte."""
    rng = random.Random(f"scheme {drawn.seed} {drawn.index}")
    found = [_onnx(rng, drawn, 4), _onnx(rng, drawn, 8), _executorch(rng, drawn)]
    other = random.Random(f"other scheme {drawn.seed} {drawn.index}")
    if other.random() < 0.5:
        found[1] = _other_onnx(other, drawn)
    if other.random() < 0.3:
        found[2] = _static(drawn)
    return found


def _for_genai(drawn: Draw) -> tuple[str, ...]:
    return ("--for", "genai") if drawn.head == "causal-lm" and "genai" in drawn.extras else ()


def _other_onnx(rng: random.Random, drawn: Draw) -> Scheme:
    quantize = rng.choice(("nf4", "dynamic-int8", "dynamic-uint8"))
    bundle = _for_genai(drawn)
    name = f"onnx {quantize}" + (" genai" if bundle else "")
    return Scheme(name, ("onnx", *bundle, "--quantize", quantize, "--dtype", "fp32"), "genai" if bundle else "")


def _static(drawn: Draw) -> Scheme:
    is_task = "text-generation" in drawn.extras
    task = ("--task", "text-generation") if is_task else ()
    arguments = ("executorch", *task, "--qlinear", "8a8w", "--qconv", "8a8w", "--dtype", "fp32", "--seen-values", RANGES)
    return Scheme("executorch 8a8w" + (" text-generation" if is_task else ""), arguments, "text-generation" if is_task else "")


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
    bundle = _for_genai(drawn)
    name = f"onnx int{bits}" + (" genai" if bundle else "")
    return Scheme(name, ("onnx", *bundle, *arguments), "genai" if bundle else "")


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
