"""The same twin with ``transformers.exporters.OnnxExporter``, run in ONNX Runtime: the exporter to compare with.

Each component is exported once and run at three shapes: the traced one, another one, and a short one with a single row. What
the peer takes apart for generation are its components; what it cannot split it exports as a whole.
"""

from __future__ import annotations

from typing import Any

import torch

from ..capture.twin import Sizes
from ..check.compare import difference
from ..observer.calls import copy_value
from .peer import SHAPES, components_of
from .worker import Report, first_line

#: As for our own exports: largest difference to eager, of the output's scale.
TOLERANCE = 1e-4
#: Padded, since generate() passes on other arguments where nothing is.
EDGE = Sizes(batch=1, sequence=5, padding=1)
WHERE = ("traced", "other", "edge")


def run(twin: torch.nn.Module, report: Report) -> None:
    try:
        from transformers.exporters import OnnxConfig, OnnxExporter
    except ImportError as error:
        report.finish("absent", f"this version of transformers has no exporters: {error}")
        return
    exporter = OnnxExporter()
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
            program = exporter.export(module, copy_value(dict(inputs)), OnnxConfig(dynamic=True))
            program.initialize_inference_session(_session)
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


def _session(model: str | bytes) -> Any:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


def _check(program: Any, module: torch.nn.Module, inputs: dict[str, Any]) -> str:
    """Empty if the model computes what the module does, else what is wrong."""
    from transformers.exporters.utils import get_leaf_tensors, prepare_for_export

    _, prepared, flags = prepare_for_export(module, copy_value(dict(inputs)))
    with torch.no_grad():
        expected = get_leaf_tensors(module(**copy_value(prepared), **flags))
        try:
            outputs = program(**copy_value(prepared))
        except Exception as error:  # noqa: BLE001 - ONNX Runtime refuses shapes in many ways
            return first_line(error)
    # Names that inputs have too begin with "output.".
    names = [each.name.removeprefix("output.") for each in program.model.graph.outputs]
    found = difference(expected, dict(zip(names, outputs, strict=True)))
    if found.error:
        return found.error
    return f"{found.worst} is off by {found.abs:.2g}" if found.scaled > TOLERANCE else ""
