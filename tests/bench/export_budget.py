"""Time and memory of `argosy export` beside `cp` and `sync` of the same bytes, interleaved.

    python tests/bench/export_budget.py 135m 1.1b 7b --folder SCRATCH [--backend onnx] [--argosy build/release/apps/cli/argosy]
    python tests/bench/export_budget.py 134m 7b --folder SCRATCH --backend executorch

Makes the checkpoints, captures them (not timed), then runs both in turn, three times, and prints a table. The budget is 1.25
times the copy and one second, and 400 MB of memory. For onnx also: `--weights link`, at most 2 s and 4 MB of new bytes, and of
bfloat16 checkpoints float16, at most 1.5 times the copy. For executorch, a program that generates: float32 (not of bfloat16
checkpoints), and 8da4w with embeddings of 8 bits, at most 2 CPU seconds for 134 M parameters. 7b needs 41 GB of disk. Nothing else should use the disk meanwhile.
"""

from __future__ import annotations

import argparse
import math
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from make_llama import SIZES, configuration, tensors

REPOSITORY = Path(__file__).resolve().parents[2]
MEMORY_BYTES = 400_000_000


def usage_of(command: list[str]) -> tuple[int, float]:
    """Peak resident memory, in bytes, and CPU seconds of a command that must succeed. Its own words are on stderr if it
    does not."""
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    said = process.stderr.read()
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}\n{said}")
    return usage.ru_maxrss * 1024, usage.ru_utime + usage.ru_stime


def fresh(*paths: Path) -> None:
    """Removes files, and lets the disk come to rest."""
    for path in paths:
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    os.sync()


def copy_seconds(model: Path, target: Path) -> float:
    fresh(target)
    target.mkdir()
    files = sorted(model.glob("*.safetensors"))
    start = time.perf_counter()
    subprocess.run(["cp", *files, target], check=True)
    subprocess.run(["sync", *(target / file.name for file in files)], check=True)
    return time.perf_counter() - start


@dataclass(frozen=True)
class Kind:
    """One way to export, and its budget: seconds as a function of those of the copy, bytes that are not links, CPU seconds
    for each parameter."""

    name: str
    arguments: tuple[str, ...]
    seconds: Callable[[float], float]
    new_bytes: int | None = None
    cpu_seconds: float | None = None


COPY = Kind("copy", (), lambda copied: 1.25 * copied + 1)
LINK = Kind("link", ("--weights", "link"), lambda copied: 2.0, 4_000_000)
GENERATION = ("--task", "text-generation", "--max-seq-len", "512")
QUANTISED = (*GENERATION, "--dtype", "float32", "--qlinear", "8da4w", "--qembedding", "8w")
HALF = Kind("float16", ("--dtype", "float16"), lambda copied: 1.5 * copied)


def kinds(backend: str, size: str) -> list[Kind]:
    """The dtype of a checkpoint is kept but where it is the subject: onnx would make float32 of bfloat16."""
    is_half = SIZES[size]["dtype"] == "bfloat16"
    if backend == "pt2":
        return [COPY]
    if backend == "executorch":
        cpu = 2.0 * parameters(size) / parameters("134m")
        quantised = Kind("8da4w", QUANTISED, COPY.seconds, cpu_seconds=cpu)
        same = Kind("float32", (*GENERATION, "--dtype", "float32"), COPY.seconds)
        return [quantised] if is_half else [same, quantised]
    same = Kind(COPY.name, ("--dtype", SIZES[size]["dtype"]), COPY.seconds)
    link = Kind(LINK.name, (*LINK.arguments, "--dtype", SIZES[size]["dtype"]), LINK.seconds, LINK.new_bytes)
    return [same, link, HALF] if is_half else [same, link]


def parameters(size: str) -> int:
    return sum(math.prod(shape) for _, shape in tensors(configuration(size)))


def new_bytes(output: Path) -> int:
    """Of what was written; a hard link has a second name."""
    files = [path for path in output.rglob("*") if path.is_file()] if output.is_dir() else [output]
    return sum(file.stat().st_size for file in files if file.stat().st_nlink == 1)


def measure(size: str, options: argparse.Namespace) -> bool:
    model, copy, output = (options.folder / f"{size}{ending}" for ending in ("", "-copy", f"-{options.backend}"))
    if options.backend == "executorch":
        output = output.with_name(f"{output.name}.pte")
    subprocess.run([sys.executable, Path(__file__).with_name("make_llama.py"), size, model], check=True)
    ok = True
    for kind in kinds(options.backend, size):
        export = [str(options.argosy), "export", options.backend, "--model", str(model), "-o", str(output)]
        export += ["--check", "off", *kind.arguments]
        export += [f"--memory={options.memory}"] if options.memory else []
        fresh(output)
        usage_of(export)  # makes capture and plan
        for number in range(1, options.times + 1):
            copied = copy_seconds(model, copy)
            fresh(copy, output)
            start = time.perf_counter()
            peak, cpu = usage_of(export)
            exported = time.perf_counter() - start
            limit = kind.seconds(copied)
            good = exported <= limit and peak <= MEMORY_BYTES
            good = good and (kind.new_bytes is None or new_bytes(output) <= kind.new_bytes)
            good = good and (kind.cpu_seconds is None or cpu <= kind.cpu_seconds)
            ok = ok and good
            print(f"| {size} | {kind.name} | {number} | {copied:.2f} | {exported:.2f} | {limit:.2f} | {cpu:.2f} |"
                  f" {peak / 1e6:.0f} | {new_bytes(output) / 1e6:.1f} | {'yes' if good else 'no'} |", flush=True)  # fmt: skip
    fresh(output)
    if not options.keep:
        fresh(model)
    return ok


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sizes", nargs="+", choices=SIZES)
    parser.add_argument("--folder", type=Path, required=True, help="where there is room")
    parser.add_argument("--backend", choices=("pt2", "onnx", "executorch"), default="pt2")
    parser.add_argument("--argosy", type=Path, default=REPOSITORY / "build/release/apps/cli/argosy")
    parser.add_argument("--memory", help="passed on, such as 128MB")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--keep", action="store_true", help="keep checkpoints")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    columns = ("model", "kind", "run", "cp and sync, s", "export, s", "budget, s", "CPU, s", "peak, MB", "new, MB", "kept")
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}")
    return 0 if all([measure(size, options) for size in options.sizes]) else 1


if __name__ == "__main__":
    sys.exit(main())
