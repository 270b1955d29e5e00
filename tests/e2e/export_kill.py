"""Kills exports at random moments: the name must show the old output or the new one, whole, and the next run must clear away
what was left.

    python tests/e2e/export_kill.py --folder SCRATCH [--times 50]        # ARGOSY_BIN names the program
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
    """A hash of a file, or of a folder's files and their names."""
    digest = hashlib.sha256()
    for file in sorted(path.iterdir()) if path.is_dir() else [path]:
        digest.update(file.name.encode() + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()


def export(program: Path, model: Path, output: Path, environment: dict[str, str]) -> subprocess.Popen:
    command = [program, "export", "pt2", "--model", model, "-o", output, "--check", "off"]
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen) -> None:
    said = process.communicate(timeout=300)[1]
    assert process.returncode == 0, said


def kill_exports(program: Path, folder: Path, output_name: str, times: int, environment: dict[str, str]) -> dict[str, int]:
    """Exports two checkpoints of one configuration to one name, in turn, and kills each at a random moment. How often the
    name showed the old output and the new one."""
    models = [folder / "first", folder / "second"]
    for seed, model in enumerate(models):
        if not model.exists():
            subprocess.run([sys.executable, MAKE_LLAMA, "17m", model, "--seed", str(seed)], check=True)
    place = folder / f"kills-{output_name}"
    place.mkdir()
    output = place / output_name
    whole = []
    for model in models:  # the first makes capture and plan
        finish(export(program, model, output, environment))
        whole.append(contents(output))
    assert whole[0] != whole[1]
    start = time.perf_counter()
    finish(export(program, models[0], output, environment))
    duration = time.perf_counter() - start
    shown, seen = 0, {"old": 0, "new": 0}
    moments = random.Random(5)
    for number in range(times):
        wanted = 1 - shown
        process = export(program, models[wanted], output, environment)
        # one moment in each of as many parts of the run, the first at its very start
        time.sleep(duration * 1.1 * (number + moments.random() * (number > 0)) / times)
        process.kill()
        process.communicate()
        found = contents(output)
        assert found in whole, f"kill {number}: neither the old output nor the new"
        seen["old" if found == whole[shown] else "new"] += 1
        shown = whole.index(found)
    finish(export(program, models[1], output, environment))
    assert contents(output) == whole[1]
    assert [path.name for path in place.iterdir()] == [output_name], "something is left behind"
    return seen


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--times", type=int, default=50)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    program = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
    for name in ("model.pt2", "folder"):
        seen = kill_exports(program, options.folder, name, options.times, dict(os.environ))
        print(f"{name}: {options.times} kills, {seen['old']} showed the old output, {seen['new']} the new one")
    return 0


if __name__ == "__main__":
    sys.exit(main())
