"""The same twin with ``transformers.exporters.DynamoExporter``, the exporter to compare with."""

from __future__ import annotations

from typing import Any

import torch

from ..capture.twin import Sizes, sample_inputs
from ..observer.calls import copy_value, output_tensors
from .worker import Report, first_line

#: As for our own captures: largest difference to eager.
TOLERANCE = 1e-5
#: The second is the shorter one: on the same side of windows and rotary limits, which change what generate() passes.
SHAPES = (Sizes(batch=2, sequence=19, padding=3), Sizes(batch=3, sequence=13, padding=2, media=1))


def run(twin: torch.nn.Module, report: Report) -> None:
    try:
        from transformers.exporters import DynamoConfig, DynamoExporter
    except ImportError as error:
        report.finish("absent", f"this version of transformers has no exporters: {error}")
        return
    exporter = DynamoExporter()
    report.step("find components")
    first, other = ({name: parts for name, parts in components_of(twin, sizes).items()} for sizes in SHAPES)
    components: dict[str, Any] = {}
    wrong = ""
    for name, (module, inputs) in first.items():
        report.step(f"export {name}")
        program = exporter.export(module, copy_value(inputs), DynamoConfig(dynamic=True))
        components[name] = {"nodes": len(program.graph.nodes)}
        report.step(f"check {name}")
        for label, parts in (("at the traced shape", first), ("at another shape", other)):
            if name in parts and not wrong:
                wrong = _check(program, *parts[name], f"{name} {label}")
    report.update(components=components, nodes=sum(part["nodes"] for part in components.values()))
    report.finish("wrong" if wrong else "ok", wrong)


def components_of(twin: torch.nn.Module, sizes: Sizes) -> dict[str, tuple[torch.nn.Module, dict[str, Any]]]:
    """The parts that the peer exports by themselves: those of generation where there is one, else the whole."""
    from transformers.exporters import utils

    inputs = sample_inputs(twin, sizes)
    if getattr(twin, "can_generate", lambda: False)():
        try:
            parts = utils.decompose_for_generation(twin, copy_value(inputs))
            if utils.is_multimodal(twin):
                # generate() runs the encoders before forward, where the peer does not see them.
                parts = {**utils.decompose_multimodal(twin, copy_value(inputs)), **parts}
            return parts
        except (RuntimeError, ValueError, TypeError, AttributeError):
            # What it cannot split it may still export as a whole.
            pass
    return {"model": (twin, inputs)}


def _check(program: Any, module: torch.nn.Module, inputs: dict[str, Any], where: str) -> str:
    """Empty if the program computes what the module does, else what is wrong."""
    from transformers.exporters.utils import prepare_for_export

    # The exporter itself takes flags out of the inputs, so that the program does not know them.
    _, prepared, flags = prepare_for_export(module, copy_value(inputs))
    with torch.no_grad():
        expected = output_tensors(module(**copy_value(prepared), **flags))
        try:
            actual = output_tensors(program.module()(**copy_value(prepared)))
        except Exception as error:  # The peer's programs may refuse a shape in any way.
            return f"{where}: {first_line(error)}"
    if len(expected) != len(actual):
        return f"{where}: {len(actual)} outputs instead of {len(expected)}"
    for (name, want), have in zip(expected.items(), actual.values(), strict=True):
        if want.shape != have.shape:
            return f"{where}: {name} has shape {tuple(have.shape)} instead of {tuple(want.shape)}"
        if want.numel() and not torch.allclose(want.double(), have.double(), rtol=0, atol=TOLERANCE, equal_nan=True):
            difference = (want.double() - have.double()).abs().max().item()
            return f"{where}: {name} is off by {difference:.2g}"
    return ""
