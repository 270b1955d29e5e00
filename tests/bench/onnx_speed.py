"""Speed of graphs of one decoder in ONNX Runtime, in pairs: each graph has a process of its own, and they take turns.

    python tests/bench/onnx_speed.py ours=FOLDER other=FOLDER [--pairs 50] [--past 128,1024] [--prompt 128] [--threads 2]

Folders are bundles of ONNX Runtime GenAI (genai_config.json and the graph that it names). Where its configuration says that
caches share their buffers, they do here. Prints the mean milliseconds of each, and the ratio of the first to each other with
the 95 % interval of its mean: of the time that passed, and of processors' time, which a busy machine disturbs less.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
import time
from pathlib import Path

LARGEST = 4608  # tokens that a shared buffer has room for


class Decoder:
    """A graph with its caches, as the engine binds them."""

    def __init__(self, folder: Path, threads: int) -> None:
        import onnxruntime

        config = json.loads((folder / "genai_config.json").read_text())
        self.shares = config["search"]["past_present_share_buffer"]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        # A process that waits for its turn must not keep a core busy.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        file = folder / config["model"]["decoder"]["filename"]
        self.session = onnxruntime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        decoder = config["model"]["decoder"]
        self.heads, self.width = decoder["num_key_value_heads"], decoder["head_size"]
        self.caches = [each.name for each in self.session.get_inputs() if len(each.shape) == 4]
        self.inputs = [each.name for each in self.session.get_inputs() if len(each.shape) != 4]
        self.bindings: dict = {}

    def seconds(self, past: int, tokens: int) -> tuple[float, float]:
        """The time that passed, and processors' time."""
        if (past, tokens) not in self.bindings:
            self.bindings = {(past, tokens): self.bound(past, tokens)}  # one at a time: caches are large
        binding, _ = self.bindings[past, tokens]
        start, cpu_start = time.perf_counter(), time.process_time()
        self.session.run_with_iobinding(binding)
        return time.perf_counter() - start, time.process_time() - cpu_start

    def bound(self, past: int, tokens: int):
        import numpy as np
        import onnxruntime

        random = np.random.default_rng(0)
        length = LARGEST if self.shares else past
        binding = self.session.io_binding()
        for name in self.inputs:
            value = {
                "input_ids": lambda: random.integers(0, 1000, (1, tokens)),
                "attention_mask": lambda: np.ones((1, past + tokens), np.int64),
                "position_ids": lambda: np.arange(past, past + tokens)[None],
            }[name]()
            binding.bind_cpu_input(name, np.ascontiguousarray(value, np.int64))
        buffers = []
        for name in self.caches:
            values = random.standard_normal((1, self.heads, length, self.width), np.float32)
            value = onnxruntime.OrtValue.ortvalue_from_numpy(values)
            buffers.append(value)
            binding.bind_ortvalue_input(name, value)
            if self.shares:
                binding.bind_ortvalue_output(name.replace("past_key_values", "present"), value)
        for each in self.session.get_outputs():
            if len(each.shape) != 4 or not self.shares:
                binding.bind_output(each.name)
        self.session.run_with_iobinding(binding)  # the first run allocates
        return binding, buffers


def serve(folder: str, threads: int) -> int:
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    decoder = Decoder(Path(folder), threads)
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        past, tokens = map(int, line.split())
        print(*decoder.seconds(past, tokens), file=answers, flush=True)
    return 0


def interval(ratios: list[float]) -> tuple[float, float, float]:
    """The geometric mean, and the ends of the 95 % interval of it."""
    logs = [math.log(each) for each in ratios]
    mean = sum(logs) / len(logs)
    spread = math.sqrt(sum((each - mean) ** 2 for each in logs) / max(len(logs) - 1, 1) / len(logs))
    return math.exp(mean), math.exp(mean - 2 * spread), math.exp(mean + 2 * spread)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("graphs", nargs="+", metavar="NAME=FOLDER")
    parser.add_argument("--pairs", type=int, default=50)
    parser.add_argument("--past", default="128,1024", help="tokens in the cache when one is decoded")
    parser.add_argument("--prompt", default="128", help="tokens of prompts")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    workers = {}
    for each in options.graphs:
        name, folder = each.split("=", 1)
        command = [sys.executable, __file__, "--serve", folder, str(options.threads)]
        workers[name] = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for name, worker in workers.items():
        if worker.stdout.readline().strip() != "ready":
            sys.exit(f"{name} cannot be loaded")

    def ask(name: str, past: int, tokens: int) -> list[float]:
        print(past, tokens, file=workers[name].stdin, flush=True)
        return [float(each) for each in workers[name].stdout.readline().split()]

    calls = [(int(past), 1) for past in options.past.split(",") if past]
    calls += [(0, int(tokens)) for tokens in options.prompt.split(",") if tokens]
    names = list(workers)
    for past, tokens in calls:
        times: dict[str, list[list[float]]] = {name: [] for name in names}
        for turn in range(options.pairs):
            for name in names if turn % 2 else reversed(names):
                times[name].append(ask(name, past, tokens))
        what = f"decode at {past}" if past else f"prompt of {tokens}"
        means = ", ".join(f"{name} {sum(t for t, _ in each) / len(each) * 1000:.1f} ms" for name, each in times.items())
        for other in names[1:]:
            pairs = list(zip(times[names[0]], times[other], strict=True))
            found = []
            for index in range(2):
                mean, low, high = interval([a[index] / b[index] for a, b in pairs])
                found.append(f"{mean:.3f} ({low:.3f} to {high:.3f})")
            print(f"{what}: {means}; {names[0]}/{other} {found[0]}, processors' time {found[1]}", flush=True)
    for worker in workers.values():
        worker.stdin.close()
    return 0


if __name__ == "__main__":
    sys.exit(serve(sys.argv[2], int(sys.argv[3])) if sys.argv[1:2] == ["--serve"] else main())
