"""Twins with all that does not depend on how they are exported: weights, capture, weight plan, and what eager answers at the edge
shapes. They are kept in a folder, so that another recipe or another build of the program is measured without torch's traces."""

from __future__ import annotations

import json
import math
import os
import pickle
import re
import tempfile
from pathlib import Path
from typing import Any

from argosy.check.calls import ExpectedCall, expected_call
from argosy.check.engines import ENGINES, EngineError, EngineProcess, Export, find_export
from argosy.check.interface import fits
from argosy.check.rows import Row, run_call
from .configurations import configuration
from .exporting import export
from .outcome import Report

_CALLS = "calls.pickle"


def prepare(model_type: str, folder: Path, report: Report) -> list[ExpectedCall]:
    """The calls of a twin that is in ``folder``, or is made there."""
    if not (folder / _CALLS).is_file():
        _make(model_type, folder, report)
    return pickle.loads((folder / _CALLS).read_bytes())  # our own file


def _make(model_type: str, folder: Path, report: Report) -> None:
    from argosy.check.captures import edge_shapes
    from argosy.capture.configuration import canonical, set_dtype
    from argosy.capture.session import open_session, shape_limits, trace_session, write_session
    from argosy.capture.twin import shrink
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan

    config = shrink(configuration(model_type))
    set_dtype(config, "float32")
    session = open_session(config)
    report.update(expected=[component.name for component in session.components])
    (folder / "twin").mkdir(parents=True, exist_ok=True)
    session.twin.save_pretrained(folder / "twin")
    trace_session(session, report.step)
    write_session(session, folder / "twin.capture", canonical(session.config.to_dict()))
    write_weight_plan(make_weight_plan(folder / "twin", dtype="float32"), folder / "plan.json")
    report.step("run the eager model")
    limits = shape_limits(session)
    calls = [expected_call(component, session.twin, shape)
             for component in session.components for shape in edge_shapes(component, limits)]  # fmt: skip
    temporary = folder / f"{_CALLS}.{os.getpid()}"
    temporary.write_bytes(pickle.dumps(calls))
    temporary.rename(folder / _CALLS)


def run(model_type: str, engine: str, program: str, report: Report, options: tuple[str, ...], folder: Path) -> None:
    """Exports a prepared twin and makes all calls in the engine that the export has memory for."""
    calls = prepare(model_type, folder, report)
    names = list(dict.fromkeys(call.component for call in calls))
    manifest = json.loads(_captured(folder))
    report.update(**{"class": manifest["model_class"], "twin": True, "captured": True, "expected": names})
    report.step("export the twin")
    row = ENGINES[engine]
    with tempfile.TemporaryDirectory() as scratch:
        output = Path(scratch) / f"model{row.suffix}"
        refusal, said = export(program, engine, "--check", "off", "--model", folder / "twin", "--dtype", "float32",
                               "--capture", folder / "twin.capture", "--plan", folder / "plan.json", "-o", output, *options)  # fmt: skip
        if refusal:
            report.finish("failed", f"export: {refusal}")
            return
        report.update(delegated=delegated_shares(said))
        report.step("compare")
        _compare(find_export(output), calls, row.twin_tolerance, report)


def _captured(folder: Path) -> bytes:
    import zipfile

    with zipfile.ZipFile(folder / "twin.capture") as archive:
        return archive.read("capture.json")


def _compare(export: Export, calls: list[ExpectedCall], tolerance: float, report: Report) -> None:
    rows: list[Row] = []
    beyond = 0
    for name in dict.fromkeys(call.component for call in calls):  # each in a process of its own: one may crash
        interface = export.interfaces[name]
        wanted = [call for call in calls if call.component == name and fits(call.inputs, interface)]
        within = [call for call in wanted if _is_within(call, interface)]
        beyond += len(wanted) - len(within)
        try:
            with EngineProcess(export) as engine:
                for call in within:
                    rows.append(run_call(engine, call, tolerance))
                    if "process ended" in rows[-1].note:
                        break
        except EngineError as error:
            report.finish("wrong", f"the engine does not open it: {error}"[:600])
            return
    components: dict[str, dict[str, Any]] = {}
    for call in calls:
        part = components.setdefault(call.component, {"calls": 0, "right": 0, "edges": 0, "edges_right": 0, "max_abs": 0.0})
    for row in rows:
        part = components[row.component]
        part["calls"] += 1
        part["right"] += row.ok is True
        if row.difference is not None and not row.difference.error and math.isfinite(row.difference.abs):
            part["max_abs"] = max(part["max_abs"], row.difference.abs)
    for part in components.values():
        part["edges"], part["edges_right"] = part["calls"], part["right"]
    report.update(components=components, beyond=beyond)
    wrong = [f"{row.component} at {row.shape}: {row.note}" for row in rows if not row.ok]
    wrong += [f"{name}: no call is within what memory is reserved for" for name, part in components.items() if not part["calls"]]
    report.finish("wrong" if wrong else "ok", "; ".join(wrong)[:600])


def _is_within(call: ExpectedCall, interface: dict[str, Any]) -> bool:
    """Whether no dim is longer than what memory is reserved for."""
    for item in interface["inputs"]:
        for dim, size in zip(item["dims"], call.inputs[item["name"]].shape, strict=True):
            limits = (interface.get("dims") or {}).get(dim) or {} if isinstance(dim, str) else {}
            if limits.get("max") is not None and size > limits["max"]:
                return False
    return True


def delegated_shares(said: str) -> dict[str, float | None]:
    """From what an export says of its methods: the share of the multiplications of each that a delegate does; None of those
    that have none."""
    found: dict[str, float | None] = {}
    for line in said.splitlines():
        if match := re.search(r"(\w+): \S+ \S+ of memory for one call", line):
            share = re.search(r"with ([0-9.]+) % of the multiply-adds", line)
            found[match[1]] = float(share[1]) / 100 if share else None
    return found
