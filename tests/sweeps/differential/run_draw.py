"""One draw: its checkpoint, eager's answers, and the three backends' exports beside them.

    python run_draw.py REQUEST.json

The request has ``seed``, ``index``, ``program`` (argosy), ``python`` (what ARGOSY_PYTHON is to be), ``folder`` (scratch), ``output``,
a file that the row is written to, and ``schemes``: whether exports with weights in few bits are compared instead."""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any

from sweeps.differential.calls import expected_runs
from sweeps.differential.checkpoint import load, make_checkpoint
from sweeps.differential.draw import draw
from sweeps.differential.engines import EXTRAS, play_texts
from sweeps.differential.play import TOLERANCES, Opened, Played, allowed_by_rounding, apart, play, set_rounding
from sweeps.differential.schemes import RANGES, ROUNDED, ROUNDED_WHOLE, drawn_schemes
from warm import CPU_FILE, cpu_seconds, renew_threads

BACKENDS = {"pt2": "out.pt2", "onnx": "out-onnx", "executorch": "out-pte"}
#: Seconds; more than any export takes, on a machine that does other things too.
_TIMEOUT = 1800
#: How often eager is compared with itself.
_SHAKES = 6


def run(request: dict[str, Any]) -> dict[str, Any]:
    drawn = draw(request["seed"], request["index"])
    row: dict[str, Any] = {"draw": drawn.describe(), "backends": {}}
    folder = Path(request["folder"])
    model = folder / "model"
    try:
        make_checkpoint(drawn, model)
    except Exception as error:  # noqa: BLE001 - code of the model's own
        return row | {"invalid": f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"}
    eager = Eager(model, drawn)
    reasons = [run.reason for run in eager.runs(drawn.dtype)]
    if all(reasons):
        return row | {"invalid": reasons[0]}
    if request["schemes"]:
        for scheme in drawn_schemes(drawn):
            arguments = tuple(eager.ranges(folder) if each == RANGES else each for each in scheme.arguments)
            found = _backend(request, arguments, model, folder / "out", eager, _comparing(scheme.extra))
            row["backends"][scheme.name] = found | {"scheme": " ".join(scheme.arguments)}
        return row
    for backend, name in BACKENDS.items():
        row["backends"][backend] = _backend(request, (backend,), model, folder / name, eager, _compare)
    for extra in drawn.extras:
        row["backends"][extra] = _backend(request, EXTRAS[extra][0], model, folder / f"out-{extra}", eager, _comparing(extra))
    return row


class Eager:
    """What the model answers, in the dtype of an export and with the weights that it stores."""

    def __init__(self, model: Path, drawn: Any) -> None:
        self._model, self._drawn = model, drawn
        self._expected: dict[str, list[Any]] = {}

    def runs(self, dtype: str) -> list[Any]:
        if dtype not in self._expected:
            self._expected[dtype] = expected_runs(load(self._model, self._drawn.head, dtype), self._drawn)
            if dtype != "float32":
                set_rounding(self._expected[dtype], expected_runs(load(self._model, self._drawn.head, dtype).float(), self._drawn))
        return self._expected[dtype]

    def ranges(self, folder: Path) -> str:
        """A file with those of activations, in its runs."""
        from argosy.check.ranges import RangeRecorder, write_ranges

        model = load(self._model, self._drawn.head, "float32")
        with (recorder := RangeRecorder(model)):
            expected_runs(model, self._drawn)
        write_ranges(recorder.layers, folder / "ranges.json")
        return str(folder / "ranges.json")

    def of(self, export: Any, dtype: str, shaken: int | None = None) -> tuple[list[Any], float]:
        """And how far off an export may be. ``shaken``: a seed, with which rounding falls otherwise."""
        from argosy.check.schemes import QuantizedModel

        quantized = export.manifest.get("quantized")
        if not quantized:
            return self.runs(dtype), TOLERANCES[dtype]
        model = load(self._model, self._drawn.head, dtype)
        with (stored := QuantizedModel(model, quantized, shaken=shaken)):
            runs = expected_runs(model, self._drawn)
        if shaken is None and dtype != "float32":
            wide = load(self._model, self._drawn.head, dtype).float()
            with QuantizedModel(wide, quantized):
                set_rounding(runs, expected_runs(wide, self._drawn))
        rounded = ROUNDED_WHOLE if stored.rounds_tensors else ROUNDED if stored.rounds_rows else 0
        return runs, max(TOLERANCES[dtype], rounded)


def _comparing(extra: str) -> Any:
    return functools.partial(_compare_texts, EXTRAS[extra][1]) if extra else _compare


def _backend(request: dict[str, Any], arguments: tuple[str, ...], model: Path, output: Path, eager: Eager, compare: Any) -> dict[str, Any]:
    from argosy.check.engines import find_export

    code, said = _export(request, arguments, model, output, "--check", "off")
    if code != 0:
        return {"verdict": "refused", "code": code, "note": _reason(said).replace(request["python"], "python")}
    try:
        export = find_export(output)
        runs, tolerance = eager.of(export, export.dtype)
        found = _isolated(lambda: _verdict(compare(output, runs, tolerance), export.dtype), output.parent / "played.json")
        if found["verdict"] == "wrong" and export.manifest.get("quantized"):
            found |= _unsteady(found, runs, [eager.of(export, export.dtype, seed)[0] for seed in range(_SHAKES)], tolerance)
    except Exception as error:  # noqa: BLE001 - what the export says of itself, or transformers of the checkpoint
        found = {"verdict": "not opened", "note": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
    if found["verdict"] in ("wrong", "not opened", "crashed"):
        # Whether it is silent: the same with default flags, which check.
        _remove(output)
        code, said = _export(request, arguments, model, output)
        if code != 0:
            found |= {"verdict": "caught", "code": code, "caught": _reason(said)}
    if not request["keep"]:
        _remove(output)
    return found


def _export(request: dict[str, Any], arguments: tuple[str, ...], model: Path, output: Path, *more: str) -> tuple[int, str]:
    command = [request["program"], "export", *arguments, "--model", str(model), "-o", str(output), *more]
    environment = {**os.environ, "ARGOSY_PYTHON": request["python"], "ARGOSY_CACHE": str(output.parent / "cache")}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=_TIMEOUT)
    return done.returncode, done.stderr


def _reason(said: str) -> str:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("error")] or [line for line in lines if " is wrong in " in line]
    return " ".join((errors or lines[-1:] or ["?"])[0].split())[:400]


def _unsteady(found: dict[str, Any], runs: list[Any], shaken: list[list[Any]], tolerance: float) -> dict[str, Any]:
    """What there is to say of wrong runs if in all of them eager is about as far from itself when rounding falls otherwise: a model
    that chooses (experts, say) goes another way at a near tie."""
    jumps = {}
    for i, run in enumerate(runs):
        if found["runs"].get(run.name) != "wrong":
            continue
        jumps[run.name] = max(apart(run, others[i]) for others in shaken)
        if jumps[run.name] <= max(tolerance, allowed_by_rounding(run), found["differences"][run.name] / 3):
            return {}
    own = "; ".join(f"{name}: {jump:.1e}" for name, jump in jumps.items())
    return {"verdict": "unsteady", "note": f"{found['note']}; eager from itself: {own}"}


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _compare(output: Path, runs: list[Any], tolerance: float) -> list[Played]:
    opened = Opened(output)
    return [play(opened, run, tolerance) for run in runs]


def _compare_texts(kind: Any, output: Path, runs: list[Any], tolerance: float) -> list[Played]:
    return play_texts(kind(output), runs, tolerance)


def _verdict(played: list[Played], dtype: str) -> dict[str, Any]:
    states = [each.state for each in played]
    verdict = next((state for state in ("wrong", "refused", "right") if state in states), "skipped")
    return {
        "verdict": {"refused": "call refused"}.get(verdict, verdict),
        "dtype": dtype,
        "largest": max((each.difference for each in played if each.state == "right" and each.run != "greedy"), default=0.0),
        "note": "; ".join(f"{each.run}: {each.note}" + (f" ({each.difference:.1e})" if each.state == "wrong" else "")
                          for each in played if each.note),  # fmt: skip
        "runs": {each.run: each.state for each in played},
        "differences": {each.run: each.difference for each in played if each.state == "wrong"},
    }


def _isolated(work: Any, answer: Path) -> dict[str, Any]:
    """In a fork: engines may end their process."""
    answer.unlink(missing_ok=True)
    child = os.fork()
    if child == 0:
        try:
            renew_threads()
            found = work()
        except BaseException as error:  # noqa: BLE001
            found = {"verdict": "not opened", "note": f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"}
        answer.write_text(json.dumps(found), encoding="utf-8")
        os.kill(os.getpid(), 9)  # nothing at exit
    _, status = os.waitpid(child, 0)
    if not answer.exists():
        return {"verdict": "crashed", "note": f"the engine ended the process with status {status}"}
    return json.loads(answer.read_text(encoding="utf-8"))


def main() -> int:
    warnings.filterwarnings("ignore")
    request = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    started = time.perf_counter()
    row = run(request)
    row["seconds"] = round(time.perf_counter() - started, 1)
    captures = Path(os.environ[CPU_FILE])
    others = captures.read_text(encoding="utf-8").split() if captures.exists() else []
    row["cpu_seconds"] = round(cpu_seconds() + sum(map(float, others)), 1)
    Path(request["output"]).write_text(json.dumps(row), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
