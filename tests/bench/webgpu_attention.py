"""Whether ONNX Runtime's WebGPU kernel of GroupQueryAttention gives what its CPU kernel gives, by tokens, width and what the op is given.

    VENV/bin/python tests/bench/webgpu_attention.py

VENV has onnxruntime-webgpu and onnx; docs/how-to/devices.md says how to run without a GPU. Why: docs/decisions/0019-devices.md.
"""

from __future__ import annotations

import itertools
import sys

import numpy
import onnxruntime
from onnx import TensorProto, helper

HEADS, KEY_HEADS, POSITIONS = 4, 2, 64
#: Rows, new tokens, tokens before them.
CALLS = ((1, 1, 7), (2, 1, 7), (1, 2, 0), (1, 4, 0), (1, 2, 2), (1, 5, 0), (1, 2, 3), (1, 7, 0), (2, 7, 0), (1, 40, 0))
TOLERANCE = 1e-5


def model(width: int, rotary: bool, packed: bool) -> bytes:
    query, key = HEADS * width, KEY_HEADS * width
    names = ["query", *(["", ""] if packed else ["key", "value"]), "past_key", "past_value", "last", "total", *(["cos", "sin"] if rotary else [])]
    node = helper.make_node("GroupQueryAttention", names, ["out", "present_key", "present_value"], domain="com.microsoft", num_heads=HEADS,
                            kv_num_heads=KEY_HEADS, do_rotary=int(rotary))  # fmt: skip
    shapes = {
        "query": ["b", "s", query + 2 * key if packed else query], "key": ["b", "s", key], "value": ["b", "s", key],
        "past_key": ["b", KEY_HEADS, "p", width], "past_value": ["b", KEY_HEADS, "p", width], "cos": [POSITIONS, width // 2],
        "sin": [POSITIONS, width // 2], "last": ["b"], "total": [],
    }  # fmt: skip
    inputs = [helper.make_tensor_value_info(name, TensorProto.INT32 if name in ("last", "total") else TensorProto.FLOAT, shapes[name])
              for name in names if name]  # fmt: skip
    outputs = [helper.make_tensor_value_info("out", TensorProto.FLOAT, ["b", "s", query])]
    outputs += [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["b", KEY_HEADS, "t", width]) for name in ("present_key", "present_value")]
    opsets = [helper.make_opsetid("", 21), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(helper.make_graph([node], "attention", inputs, outputs), opset_imports=opsets, ir_version=10).SerializeToString()


def difference(width: int, rotary: bool, packed: bool, rows: int, tokens: int, past: int) -> float:
    """The largest one of any output."""
    random = numpy.random.default_rng(0)
    angles = numpy.arange(POSITIONS)[:, None] * 0.1 ** numpy.arange(width // 2)
    query, key = HEADS * width, KEY_HEADS * width
    made = {
        "query": random.standard_normal((rows, tokens, query + 2 * key if packed else query)),
        "key": random.standard_normal((rows, tokens, key)), "value": random.standard_normal((rows, tokens, key)),
        "past_key": random.standard_normal((rows, KEY_HEADS, past, width)),
        "past_value": random.standard_normal((rows, KEY_HEADS, past, width)), "cos": numpy.cos(angles), "sin": numpy.sin(angles),
    }  # fmt: skip
    given = {name: array.astype(numpy.float32) for name, array in made.items()}
    given |= {"last": numpy.full(rows, past + tokens - 1, numpy.int32), "total": numpy.array(past + tokens, numpy.int32)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    found = []
    for provider in ("CPUExecutionProvider", "WebGpuExecutionProvider"):
        session = onnxruntime.InferenceSession(model(width, rotary, packed), options, providers=[provider])
        known = {each.name for each in session.get_inputs()}
        found.append(session.run(None, {name: array for name, array in given.items() if name in known}))
    return max(float(numpy.abs(a - b).max()) for a, b in zip(*found, strict=True))


def main() -> int:
    wrong = 0
    print("width  rotary  packed  rows  tokens  past  difference")
    cases = [(16, rotary, packed) for rotary, packed in itertools.product((False, True), repeat=2)]
    for case, call in itertools.product([*cases, (64, False, False), (128, True, True)], CALLS):
        found = difference(*case, *call)
        wrong += not found <= TOLERANCE
        cells = (*case, *call, f"{found:.1e}" + ("" if found <= TOLERANCE else "  wrong"))
        print("  ".join(str(cell).rjust(size) for cell, size in zip(cells, (5, 6, 6, 4, 6, 4, 0), strict=True)), flush=True)
    print(f"{wrong} wrong" if wrong else "all right")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
