"""``python tests/sweeps SWEEP …``, from a checkout with the release preset built. ``python tests/sweeps SWEEP --help`` says more."""

from __future__ import annotations

import importlib
import os
import signal
import sys
from pathlib import Path

_TESTS = Path(__file__).resolve().parents[1]
_SOURCES = _TESTS.parent / "python"

#: Sweeps over families: they have options, limits and data alike.
FAMILY_SWEEPS = {
    "capture": "captures of twins, beside transformers' DynamoExporter",
    "pt2": "twins exported and run in PyTorch, beside eager",
    "onnx": "twins exported and run in ONNX Runtime, beside transformers' OnnxExporter",
    "executorch": "twins exported and run in ExecuTorch, beside transformers' ExecutorchExporter",
    "live-dynamo": "live models in DynamoExporter, beside transformers'",
    "live-onnx": "live models in OnnxExporter, beside transformers'",
    "live-executorch": "live models in ExecutorchExporter, beside transformers'",
    "bundles": "twins exported for an engine and run in it, greedy tokens beside eager's",
}
#: The others: a module with a function ``main``, and what it does.
OTHER_SWEEPS = {
    "twins": ("twins", "twins of many model types: which run"),
    "tasks": ("tasks", "models by task, at two sizes"),
    "types": ("all_types", "all model types exported and run in ONNX Runtime, beside eager"),
    "same-graph": ("same_graph", "whether a live model and the command give the same graph"),
    "media": ("media", "models that see and hear in ONNX Runtime GenAI, beside eager"),
    "generation": ("generation", "text generation in ExecuTorch's runner, beside eager"),
    "transformersjs": ("transformersjs", "models of all kinds in transformers.js"),
    "optimum": ("optimum", "models of several kinds in Optimum"),
    "webgpu": ("webgpu", "models of several kinds on ONNX Runtime's WebGPU kernels, beside its CPU's"),
    "weight-plans": ("weight_plans", "weight plans of all types with conversions, beside from_pretrained"),
    "differential": ("differential.sweep", "configurations drawn by seed, in three backends, beside eager"),
    "sabotage": ("sabotage", "whether the check finds deliberate faults"),
    "blocks": ("blocks", "code blocks of other exporters' documents, with the names changed"),
    "stamp": ("stamp", "stamped captures beside whole traces, node by node"),
    "lint": ("lint", "lint of many bundles at once"),
    "full-size": ("full_size", "captures of models of full size: time and memory"),
    "other-versions": ("other_versions", "captures on other versions of transformers"),
}
#: Those that make models in this process.
RUN_HERE = ("transformersjs", "optimum", "blocks")


def main(arguments: list[str]) -> int:
    # The sources, here and in what sweeps start; not the folder of this file, whose modules are a package.
    sys.path[:] = [str(_SOURCES), str(_TESTS), *(each for each in sys.path if each != str(_TESTS / "sweeps"))]
    os.environ["PYTHONPATH"] = os.pathsep.join([str(_SOURCES), *filter(None, [os.environ.get("PYTHONPATH")])])
    os.environ.setdefault("ARGOSY_PYTHON", sys.executable)
    name = arguments[0] if arguments else ""
    if name in FAMILY_SWEEPS:
        return importlib.import_module("sweeps.family_sweep").main(arguments)
    if name in OTHER_SWEEPS:
        return importlib.import_module(f"sweeps.{OTHER_SWEEPS[name][0]}").main(arguments[1:])
    print("usage: python tests/sweeps SWEEP …\n")
    for sweep, summary in (*FAMILY_SWEEPS.items(), *((each, text) for each, (_, text) in OTHER_SWEEPS.items())):
        print(f"  {sweep:16} {summary}")
    return 0 if name in ("", "-h", "--help") else 2


if __name__ == "__main__":
    # An end from outside unwinds, so that running jobs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    code = main(sys.argv[1:])
    if sys.argv[1:2] and sys.argv[1] in RUN_HERE:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)  # torch may crash while it frees fake tensors at exit
    sys.exit(code)
