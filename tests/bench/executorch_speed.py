"""Speed of programs of one decoder in ExecuTorch's runtime, interleaved: each is a process, and they take turns.

    python tests/bench/executorch_speed.py NAME=FILE.pte ... [--rounds 5] [--limit 1.10]

The first is held against the best of the others. Programs take tokens and positions and keep a cache (method `forward`, as
ExecuTorch's LLM runner calls it); one that takes tokens and a mask instead has no cache, so that it only reads prompts. Seconds
are the least of all rounds, wall and CPU: what else runs on the machine makes them longer, never shorter.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2] / "python/argosy/check"))

PROMPTS = (32, 128)
DECODED = 48


def serve(file: str) -> int:
    """Answers lines: a number of prompt tokens, or "decode"."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    import executorch_worker
    import torch

    program = executorch_worker.open_program(file)
    method = program.load_method("forward")
    has_cache = len(program.metadata("forward").input_tensor_meta(1).sizes()) == 1

    def call(tokens: torch.Tensor, start: int) -> torch.Tensor:
        count = tokens.shape[1]
        second = torch.arange(start, start + count) if has_cache else torch.ones_like(tokens)
        return method.execute([tokens, second])[0]

    def timed(step) -> tuple[float, float]:
        wall, cpu = time.perf_counter(), time.process_time()
        step()
        return time.perf_counter() - wall, time.process_time() - cpu

    def decode() -> None:
        token = int(call(torch.arange(3, 35)[None], 0)[0, -1].argmax())
        for i in range(DECODED):
            token = int(call(torch.tensor([[token]]), 32 + i)[0, -1].argmax())

    call(torch.arange(3, 35)[None], 0)  # packs and warms up
    print(json.dumps({"has_cache": has_cache}), file=answers, flush=True)
    for line in sys.stdin:
        asked = line.strip()
        if asked == "decode":
            wall, cpu = timed(decode)
            less, less_cpu = timed(lambda: call(torch.arange(3, 35)[None], 0))
            made = ((wall - less) / DECODED, (cpu - less_cpu) / DECODED)
        else:
            prompt = torch.arange(3, 3 + int(asked))[None]
            made = timed(lambda prompt=prompt: call(prompt, 0))
        with open("/proc/self/status") as status:
            peak = next(int(text.split()[1]) for text in status if text.startswith("VmHWM"))
        print(json.dumps({"wall": made[0], "cpu": made[1], "peak_mb": peak // 1024}), file=answers, flush=True)
    return 0


def measure(programs: dict[str, str], rounds: int) -> dict[str, dict[str, dict[str, float]]]:
    import subprocess

    running = {
        name: subprocess.Popen([sys.executable, __file__, "--serve", file], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.DEVNULL, text=True)
        for name, file in programs.items()
    }  # fmt: skip
    has_cache = {name: json.loads(process.stdout.readline())["has_cache"] for name, process in running.items()}
    found: dict[str, dict[str, dict[str, float]]] = {name: {} for name in running}
    for _ in range(rounds):
        for asked in (*map(str, PROMPTS), "decode"):
            for name, process in running.items():
                if asked == "decode" and not has_cache[name]:
                    continue
                process.stdin.write(f"{asked}\n")
                process.stdin.flush()
                made = json.loads(process.stdout.readline())
                best = found[name].setdefault(asked, made)
                found[name][asked] = {key: (max if key == "peak_mb" else min)(best[key], made[key]) for key in made}
    for process in running.values():
        process.stdin.close()
        process.wait()
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("programs", nargs="*", metavar="NAME=FILE")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--limit", type=float, default=1.10, help="of the best of the others")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        return serve(options.serve)
    programs = dict(each.split("=", 1) for each in options.programs)
    found = measure(programs, options.rounds)
    ours = next(iter(programs))
    columns = ("program", *(f"prompt of {count}, ms" for count in PROMPTS), "token, ms", "tokens/s", "peak, MB")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    for name, made in found.items():
        cells = [f"{1000 * made[key]['wall']:.1f} (CPU {1000 * made[key]['cpu']:.1f})" if key in made else "-"
                 for key in (*map(str, PROMPTS), "decode")]  # fmt: skip
        speed = f"{1 / made['decode']['wall']:.1f}" if "decode" in made else "-"
        print(f"| {name} | {' | '.join(cells)} | {speed} | {max(each['peak_mb'] for each in made.values())} |")
    good = True
    for key in (*map(str, PROMPTS), "decode"):
        others = [made[key]["wall"] for name, made in found.items() if name != ours and key in made]
        if others and key in found[ours]:
            ratio = found[ours][key]["wall"] / min(others)
            good = good and ratio <= options.limit
            print(f"{key}: {ratio:.2f} times the best of the others")
    return 0 if good else 1


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    os._exit(code)
