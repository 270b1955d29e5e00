"""Runs a graph on ONNX Runtime's WebGPU kernels and on its CPU, with the same inputs. Imports nothing of this project: the Python
that has ``onnxruntime-webgpu`` needs numpy besides; with ``onnxruntime-genai`` bundles for it are run in that engine, too.

    python webgpu_worker.py FOLDER

FOLDER/job.json: ``{"graph", "calls": [[names of .npz files, a step each], …], "states": [[input, output], …], "bundle", "prompt",
"new_tokens"}``; the last three are of bundles for ONNX Runtime GenAI, else ``bundle`` is "". The steps of a call
follow each other: states start with length 0 and are what the step before gave. Writes ``cpu.CALL.STEP.npz`` and
``webgpu.CALL.STEP.npz`` with all outputs, and prints a line of JSON: version, nodes by provider and op, seconds, and what the
engine made of the prompt.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy
import onnxruntime

PROVIDERS = {"cpu": "CPUExecutionProvider", "webgpu": "WebGpuExecutionProvider"}
TYPES = {"tensor(float)": numpy.float32, "tensor(float16)": numpy.float16, "tensor(int64)": numpy.int64}


def open_session(graph: str, provider: str, folder: Path) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    options.enable_profiling = True
    options.profile_file_prefix = str(folder / "profile")
    session = onnxruntime.InferenceSession(graph, options, providers=[provider])
    if session.get_providers()[0] != provider:
        raise RuntimeError(f"{provider} is not there: {session.get_providers()}")
    return session


def placement(session: onnxruntime.InferenceSession) -> dict[str, dict[str, int]]:
    """Nodes that ran, by provider and op."""
    file = session.end_profiling()
    seen = set()
    for event in json.loads(Path(file).read_text(encoding="utf-8")):
        about = event.get("args", {})
        if event.get("cat") == "Node" and about.get("provider"):
            seen.add((about["provider"], about["op_name"], event["name"]))
    os.remove(file)
    return {provider: dict(sorted(Counter(op for each, op, _ in seen if each == provider).items())) for provider in sorted({each for each, *_ in seen})}


def first_states(session: onnxruntime.InferenceSession, names: list[str], batch: int) -> dict[str, Any]:
    """Rows of nothing: caches of length 0, and states of fixed sizes as zeros."""
    found = {}
    for each in session.get_inputs():
        if each.name in names:
            sizes = [batch if i == 0 else size if isinstance(size, int) else 0 for i, size in enumerate(each.shape)]
            found[each.name] = numpy.zeros(sizes, TYPES[each.type])
    return found


def run(folder: Path, job: dict[str, Any], kind: str) -> dict[str, Any]:
    start = time.perf_counter()
    session = open_session(job["graph"], PROVIDERS[kind], folder)
    outputs = [each.name for each in session.get_outputs()]
    known = {each.name for each in session.get_inputs()}
    follows = {output: name for name, output in job["states"]}
    for number, steps in enumerate(job["calls"]):
        states: dict[str, Any] | None = None
        for step, file in enumerate(steps):
            with numpy.load(folder / file, allow_pickle=False) as stored:
                inputs = {name: stored[name] for name in stored.files if name in known}
            if states is None:
                states = first_states(session, list(follows.values()), len(next(iter(inputs.values()))))
            results = dict(zip(outputs, session.run(outputs, inputs | states), strict=True))
            numpy.savez(folder / f"{kind}.{number}.{step}.npz", **results)
            states = {follows[name]: value for name, value in results.items() if name in follows}
    seconds = time.perf_counter() - start
    return {"seconds": round(seconds, 1), "nodes": placement(session)}


def in_engine(job: dict[str, Any], on_cpu: bool) -> dict[str, Any] | None:
    """Greedy tokens of the engine, and what it says that it runs on; None: it is not there."""
    try:
        import onnxruntime_genai
    except ModuleNotFoundError:
        return None
    config = onnxruntime_genai.Config(job["bundle"])
    if on_cpu:
        config.clear_providers()
    model = onnxruntime_genai.Model(config)
    parameters = onnxruntime_genai.GeneratorParams(model)
    parameters.set_search_options(do_sample=False, max_length=len(job["prompt"]) + job["new_tokens"])
    generator = onnxruntime_genai.Generator(model, parameters)
    generator.append_tokens(numpy.array([job["prompt"]], numpy.int32))
    tokens = []
    while not generator.is_done():
        generator.generate_next_token()
        tokens.append(int(generator.get_next_tokens()[0]))
    return {"device": model.device_type, "tokens": tokens}


def main(folder: Path) -> None:
    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    found = {kind: run(folder, job, kind) for kind in PROVIDERS}
    if job["bundle"]:
        found["engine"] = {kind: in_engine(job, kind == "cpu") for kind in PROVIDERS}
    print(json.dumps({"version": onnxruntime.__version__, **found}), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    os._exit(0)  # a device that is torn down at exit may crash
