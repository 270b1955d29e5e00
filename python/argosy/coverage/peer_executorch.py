"""The same twin with ``transformers.exporters.ExecutorchExporter``, run in ExecuTorch's runtime: the exporter to compare with.

As ``peer_onnx``: each component is exported once and run at three shapes.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import torch

from ..capture.twin import Sizes
from ..check.compare import difference
from ..check.executorch_worker import open_method, open_program
from ..observer.calls import copy_value
from .peer import SHAPES, components_of
from .peer_onnx import EDGE, TOLERANCE, WHERE
from .worker import Report, first_line


def run(twin: torch.nn.Module, report: Report) -> None:
    try:
        from transformers.exporters import ExecutorchConfig, ExecutorchExporter
    except ImportError as error:
        report.finish("absent", f"this version of transformers has no exporters: {error}")
        return
    exporter = ExecutorchExporter()
    report.step("find components")
    found = [components_of(twin, sizes) for sizes in SHAPES]
    try:
        found.append(components_of(twin, EDGE))
    except Exception:  # noqa: BLE001 - some twins have no input that small
        found.append(components_of(twin, Sizes(batch=1, sequence=13, padding=1)))
    components: dict[str, Any] = {name: {"status": "failed", "reason": "not reached"} for name in found[0]}
    report.update(components=components)
    for name, (module, inputs) in found[0].items():
        report.step(f"export {name}")
        try:
            program = exporter.export(module, copy_value(dict(inputs)), ExecutorchConfig(backend="xnnpack", dynamic=True))
        except BaseException as error:  # noqa: BLE001 - torch has errors that are no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            components[name] = {"status": "failed", "reason": first_line(error)}
            report.update(components=components)
            continue
        report.step(f"check {name}")
        calls = {
            where: _check(program, *parts[name])
            for where, parts in zip(WHERE, found, strict=True)
            if name in parts and parts[name][1].keys() == inputs.keys()
        }
        wrong = [f"{where}: {text}" for where, text in calls.items() if text]
        components[name] = {
            "status": "wrong" if wrong else "ok",
            "reason": "; ".join(wrong),
            "calls": {where: not text for where, text in calls.items()},
        }
        report.update(components=components)
    problems = [f"{name}: {part['reason']}" for name, part in components.items() if part["status"] != "ok"]
    states = {part["status"] for part in components.values()}
    report.finish("failed" if "failed" in states else "wrong" if "wrong" in states else "ok", "; ".join(problems)[:600])


def _check(program: Any, module: torch.nn.Module, inputs: dict[str, Any]) -> str:
    """Empty if the program computes what the module does, else what is wrong."""
    from transformers.exporters.utils import get_leaf_tensors, prepare_for_export

    _, prepared, flags = prepare_for_export(module, copy_value(dict(inputs)))
    with torch.no_grad():
        expected = get_leaf_tensors(module(**copy_value(prepared), **flags))
    given = list(get_leaf_tensors(copy_value(prepared)).values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pte"
        with path.open("wb") as file:
            program.write_to_file(file)
        try:
            outputs = open_method(open_program(path), "forward")(given)
        except Exception as error:  # noqa: BLE001 - the runtime refuses shapes in many ways
            return first_line(error)
    outputs = [each for each in outputs if isinstance(each, torch.Tensor)]
    if len(outputs) != len(expected):
        return f"{len(outputs)} outputs instead of {len(expected)}"
    found = difference(expected, dict(zip(expected, outputs, strict=True)))
    if found.error:
        return found.error
    return f"{found.worst} is off by {found.abs:.2g}" if found.scaled > TOLERANCE else ""
