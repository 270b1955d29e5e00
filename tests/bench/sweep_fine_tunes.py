#!/usr/bin/env python3
"""Exports many fine-tunes of a few configurations by a sweep: how often something is captured, and what an export takes after that.

    python tests/bench/sweep_fine_tunes.py --count 200

The models are twins with random weights; each fine-tune has its own. The cache is empty at the start, unless one is named.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("ARGOSY_BIN", str(REPOSITORY / "build/release/apps/cli/argosy"))
TYPES = ("bert", "gpt2", "llama", "t5", "vit")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--cache", type=Path, help="a cache to begin with and to keep (default: an empty one)")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="argosy-sweep-"))
    try:
        make_models(folder, options.count)
        environment = {**os.environ, "ARGOSY_CACHE": str(options.cache or folder / "cache"), "ARGOSY_PYTHON": sys.executable}
        start = time.monotonic()
        command = [PROGRAM, "sweep", folder / "jobs.jsonl", "-o", folder / "out", f"--jobs={options.jobs}", "--discard"]
        done = subprocess.run(command, env=environment)
        wall = time.monotonic() - start
        entries = json.loads(subprocess.check_output([PROGRAM, "cache", "ls", "--json"], env=environment))["entries"]
        return report(folder, [entry["kind"] for entry in entries], wall, done.returncode)
    finally:
        shutil.rmtree(folder)


def make_models(folder: Path, count: int) -> None:
    import torch
    from safetensors.torch import load_file, save_file
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import build, save, shrink

    first = {each: save(build(shrink(CONFIG_MAPPING[each]())), folder / f"models/{each}-0") for each in TYPES}
    lines = []
    for i in range(count):
        each = TYPES[i % len(TYPES)]
        model = folder / f"models/{each}-{i // len(TYPES)}"
        if i >= len(TYPES):
            shutil.copytree(first[each], model)
            generator = torch.Generator().manual_seed(i)
            tensors = load_file(model / "model.safetensors")
            noisy = {name: value + 0.01 * torch.randn(value.shape, generator=generator).to(value.dtype) if value.is_floating_point() else value
                     for name, value in tensors.items()}  # fmt: skip
            save_file(noisy, model / "model.safetensors", {"format": "pt"})
        lines.append(json.dumps({"model": str(model)}))
    (folder / "jobs.jsonl").write_text("\n".join(lines) + "\n")


def report(folder: Path, kinds: list[str], wall: float, exit_code: int) -> int:
    lines = [json.loads(line) for line in (folder / "out/results.jsonl").read_text().splitlines()]
    first = {line["family"]: line for line in reversed(lines)}
    later = sorted(line["seconds"] for line in lines if line is not first[line["family"]])
    cpu = sorted(line["cpu_seconds"] for line in lines if line is not first[line["family"]])
    print(json.dumps({
        "jobs": len(lines), "right": sum(line["status"] == "right" for line in lines), "exit code": exit_code,
        "captures": kinds.count("capture"), "plans": kinds.count("plan"), "checks": kinds.count("check"), "seconds": round(wall, 1),
        "first of its configuration, seconds": {family: line["seconds"] for family, line in sorted(first.items())},
        "and of CPU": {family: line["cpu_seconds"] for family, line in sorted(first.items())},
        "later ones, seconds": {"median": later[len(later) // 2], "most": later[-1], "above 0.5": sum(each > 0.5 for each in later),
                                "median of CPU": cpu[len(cpu) // 2]},
    }, indent=1))  # fmt: skip
    return 0 if kinds.count("capture") == len(TYPES) else 1


if __name__ == "__main__":
    sys.exit(main())
