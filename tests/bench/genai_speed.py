"""Speed of bundles of one decoder in ONNX Runtime GenAI's own loop, in pairs; time and memory of loading them.

    python tests/bench/genai_speed.py ours=FOLDER other=FOLDER [--pairs 20] [--past 128,1024] [--tokens 8] [--loads 5]

Each bundle has a process of its own, and they take turns. A turn is a prompt of that many tokens and the tokens that follow, in
a new generator. Loading is timed in new processes, the files being in memory before; the memory is the most that the process
had, after loading and after a prompt of 16 tokens. Ratios are of the first to each other, with the 95 % interval of the mean.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

from onnx_speed import interval

SHORT = 16


def opened(folder: str, threads: int):
    import onnxruntime_genai as og

    config = og.Config(folder)
    # A process that waits for its turn must not keep a core busy.
    session = {"intra_op_num_threads": threads, "session.intra_op.allow_spinning": "0"}
    config.overlay(json.dumps({"model": {"decoder": {"session_options": session}}}))
    return og.Model(config)


def generate(model, prompt: int, tokens: int) -> list[float]:
    """Seconds for the prompt and for a token: the time that passed, then processors' time."""
    import numpy as np
    import onnxruntime_genai as og

    params = og.GeneratorParams(model)
    length = prompt + tokens + 1
    params.set_search_options(do_sample=False, max_length=length, min_length=length)  # the end of a text does not end it
    generator = og.Generator(model, params)
    ids = np.random.default_rng(0).integers(5, 1000, prompt).astype(np.int32)
    times = [(time.perf_counter(), time.process_time())]
    generator.append_tokens(ids)
    generator.generate_next_token()  # picks one; the next call computes
    times.append((time.perf_counter(), time.process_time()))
    for _ in range(tokens):
        generator.generate_next_token()
    times.append((time.perf_counter(), time.process_time()))
    (a, a_cpu), (b, b_cpu), (c, c_cpu) = times
    return [b - a, (c - b) / tokens, b_cpu - a_cpu, (c_cpu - b_cpu) / tokens]


def peak() -> float:
    """The most memory that this process had, in MB."""
    status = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    return float(status["VmHWM"].split()[0]) / 1000


def serve(folder: str, threads: int) -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    model = opened(folder, threads)
    generate(model, SHORT, 1)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        print(*generate(model, *map(int, line.split())), file=answers, flush=True)
    return 0


def load(folder: str, threads: int) -> int:
    __import__("onnxruntime_genai")  # not what is timed

    start, cpu_start = time.perf_counter(), time.process_time()
    model = opened(folder, threads)
    taken, cpu = time.perf_counter() - start, time.process_time() - cpu_start
    loaded = peak()
    generate(model, SHORT, 1)
    print(taken, cpu, loaded, peak(), flush=True)
    return 0


def report(what: str, unit: str, names: list[str], found: dict[str, list[float]], scale: float) -> None:
    means = ", ".join(f"{name} {sum(found[name]) / len(found[name]) * scale:.1f} {unit}" for name in names)
    for other in names[1:]:
        mean, low, high = interval([a / b for a, b in zip(found[names[0]], found[other], strict=True)])
        print(f"{what}: {means}; {names[0]}/{other} {mean:.3f} ({low:.3f} to {high:.3f})", flush=True)


def compare_loads(folders: dict[str, str], threads: int, loads: int) -> None:
    rows: dict[str, list[list[float]]] = {name: [] for name in folders}
    for turn in range(loads + 1):
        for name, folder in folders.items():
            command = [sys.executable, __file__, "--load", folder, str(threads)]
            said = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            if turn:  # the first reads the files
                rows[name].append([float(each) for each in said.split()[-4:]])
    kinds = [("loading", "ms", 1000.0), ("loading, processors' time", "ms", 1000.0)]
    kinds += [("memory after loading", "MB", 1.0), ("memory after a prompt", "MB", 1.0)]
    for index, (what, unit, scale) in enumerate(kinds):
        report(what, unit, list(folders), {name: [row[index] for row in rows[name]] for name in folders}, scale)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bundles", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--pairs", type=int, default=20)
    parser.add_argument("--past", default="128,1024", help="tokens of prompts")
    parser.add_argument("--tokens", type=int, default=8, help="that follow a prompt")
    parser.add_argument("--loads", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    folders = dict(each.split("=", 1) for each in options.bundles)
    if options.loads:
        compare_loads(folders, options.threads, options.loads)
    calls = [int(past) for past in options.past.split(",") if past]
    workers = {}
    for name, folder in folders.items() if calls else ():
        command = [sys.executable, __file__, "--serve", folder, str(options.threads)]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if workers[name].stdout.readline().strip() != "ready":
            sys.exit(f"{name} cannot be loaded")
    names = list(folders)
    for past in calls:
        rows: dict[str, list[list[float]]] = {name: [] for name in names}
        for turn in range(options.pairs):
            for name in names if turn % 2 else reversed(names):
                print(past, options.tokens, file=workers[name].stdin, flush=True)
                rows[name].append([float(each) for each in workers[name].stdout.readline().split()])
        kinds = (f"prompt of {past}", f"a token after {past}")
        for index, what in enumerate((*kinds, *(f"{kind}, processors' time" for kind in kinds))):
            report(what, "ms", names, {name: [row[index] for row in rows[name]] for name in names}, 1000.0)
    for worker in workers.values():
        worker.stdin.close()
        worker.wait()
    return 0


if __name__ == "__main__":
    asked = {"--serve": serve, "--load": load}.get(sys.argv[1] if len(sys.argv) > 1 else "")
    sys.exit(asked(sys.argv[2], int(sys.argv[3])) if asked else main())
