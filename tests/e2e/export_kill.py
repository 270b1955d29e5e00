"""Kills exports at random moments: the name must show the old output or the new one, whole, and the next run must clear away
what was left.

    python tests/e2e/export_kill.py --folder SCRATCH [--times 50] [--backend onnx]        # ARGOSY_BIN names the program
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
MAKE_LLAMA = REPOSITORY / "tests/bench/make_llama.py"


def contents(path: Path) -> str:
    """A hash of a file and those that belong to it (NAME.data), or of a folder's files and their names. A file that is not
    there is "none", whatever lies beside it."""
    digest = hashlib.sha256()
    if not path.exists():
        return "none"
    for file in sorted(path.iterdir() if path.is_dir() else path.parent.glob(f"{path.name}*")):
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def export(program: Path, backend: str, model: Path, output: Path, environment: dict[str, str]) -> subprocess.Popen:
    command = [program, "export", backend, "--model", model, "-o", output, "--check", "off"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> None:
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said


def kill_exports(
    program: Path, backend: str, folder: Path, output_name: str, times: int, environment: dict[str, str]
) -> dict[str, int]:
    """Exports two checkpoints of one configuration to one name, in turn, and kills each at a random moment. How often the
    name showed the old output, the new one and none, which is right only where two files cannot be replaced at once."""
    models = [folder / "first", folder / "second"]
    for seed, model in enumerate(models):
        if not model.exists():
            subprocess.run([sys.executable, MAKE_LLAMA, "17m", model, "--seed", str(seed)], check=True)
    place = folder / f"kills-{output_name}"
    place.mkdir()
    output = place / output_name
    whole = []
    for model in models:  # the first makes capture and plan
        finish(export(program, backend, model, output, environment))
        whole.append(contents(output))
    assert whole[0] != whole[1]
    start = time.perf_counter()
    finish(export(program, backend, models[0], output, environment))
    duration = time.perf_counter() - start
    is_pair = backend == "onnx" and output.suffix == ".onnx"
    shown, seen = 0, {"old": 0, "new": 0, "none": 0}
    moments = random.Random(5)
    for number in range(times):
        wanted = 1 - shown
        process = export(program, backend, models[wanted], output, environment)
        # one moment in each of as many parts of the run, the first at its very start
        time.sleep(duration * 1.1 * (number + moments.random() * (number > 0)) / times)
        process.kill()
        process.communicate()
        found = contents(output)
        assert found in whole or (is_pair and found == "none"), f"kill {number}: neither the old output nor the new"
        seen["none" if found == "none" else "old" if found == whole[shown] else "new"] += 1
        shown = whole.index(found) if found in whole else shown
    finish(export(program, backend, models[1], output, environment))
    assert contents(output) == whole[1]
    left = {path.name for path in place.iterdir()} - {output_name, f"{output_name}.data"}
    assert not left, "something is left behind"
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--times", type=int, default=50)
    parser.add_argument("--backend", choices=("pt2", "onnx"), help="this one only")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    program = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
    for backend, name in (("pt2", "model.pt2"), ("pt2", "archives"), ("onnx", "model.onnx"), ("onnx", "models")):
        if options.backend not in (backend, None):
            continue
        seen = kill_exports(program, backend, options.folder, name, options.times, dict(os.environ))
        print(
            f"{name}: {options.times} kills, {seen['old']} showed the old output, {seen['new']} the new one,"
            f" {seen['none']} none"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
