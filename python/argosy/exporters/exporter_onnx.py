"""Live models to ONNX."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from ..capture.writer import Manifest, write_capture
from ..errors import ExportError
from ..observer import InputObserver
from .configs import ExportConfigMixin, OnnxConfig
from .exporter_dynamo import DynamoExporter
from .live import LiveProgram, evaluated, observed, trace_live
from .lowering import graph_entry, live_tensors
from .onnx_program import ONNXProgram
from .sanity import check_program

logger = logging.getLogger(__name__)


class OnnxExporter(DynamoExporter):
    """Exports a live model to an `ONNXProgram`.

    ::

        program = OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True))
        program.save("model.onnx")

    Inputs have the names and the order of the sample inputs, also those that the model does not use. A tensor inside a cache
    has a dotted name (``past_key_values.layers.0.keys``); an output of the same name as an input begins with ``output.``.
    """

    config_class = OnnxConfig

    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: Mapping[str, Any] | InputObserver,
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
    ) -> ONNXProgram:
        """The model of ``model(**sample_inputs)``; written to ``config.output_path`` if that is given. Neither the model nor
        the inputs are changed."""
        sample_inputs, config = observed(sample_inputs, OnnxConfig.accept(config))
        check_opset(config.opset_version)
        live = trace_live(model, sample_inputs, config, "onnx")
        with evaluated(model):
            program = lower_program(live, config)
        check_model(program)
        if config.check:
            check_program(model, sample_inputs, live.program, program.outputs_by_name)
        if config.output_path is not None:
            program.save(config.output_path)
        return program


def check_opset(wanted: int | None) -> int:
    """The opset to write for: a known one, or the default for None."""
    from .._core import ONNX_DEFAULT_OPSET, ONNX_OPSETS

    if wanted is None:
        return ONNX_DEFAULT_OPSET
    low, high = ONNX_OPSETS
    if not low <= wanted <= high:
        raise ExportError(
            f"opset_version is {wanted}", code="invalid-input", hint=f"models are written for opsets {low} to {high}"
        )
    return wanted


def check_model(program: ONNXProgram) -> None:
    """Raises if the graph is no valid ONNX, where the ``onnx`` package is there to tell. Weights are not looked at."""
    try:
        import onnx
    except ImportError:
        return
    try:
        onnx.checker.check_model(program.without_weights())
    except onnx.checker.ValidationError as error:
        raise ExportError(f"the model is no valid ONNX: {error}", code="internal", hint="please report it with the model's configuration") from error


def lower_program(live: LiveProgram, config: OnnxConfig) -> ONNXProgram:
    """Assertions and unused weights are dropped from the program."""
    from .. import _core

    opset = check_opset(config.opset_version)
    entry, notes = graph_entry(live, config.dynamic_shapes)
    input_names = list(entry.input_paths.values())
    entry.output_names = [name if name not in input_names else f"output.{name}" for name in live.output_names]
    weights, tensors = live_tensors(live.program)
    with tempfile.TemporaryDirectory(prefix="argosy-live-") as folder:
        capture = Path(folder) / "model.capture"
        write_capture(capture, [entry], Manifest(), with_constants=False)
        core = _core.lower_onnx(str(capture), tensors, input_names, entry.output_names, opset, config.optimize)
    notes += core.notes
    for note in notes:
        logger.info(note)
    return ONNXProgram(core, config, live.program, weights, notes)
