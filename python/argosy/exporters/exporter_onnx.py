"""Live models to ONNX."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Mapping, MutableMapping
from pathlib import Path
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind

from ..capture.trace import drop_assertions, drop_unused_weights
from ..capture.writer import DTYPES, GraphEntry, Manifest, write_capture
from ..errors import ExportError
from .configs import OnnxConfig
from .exporter_dynamo import DynamoExporter
from .live import LiveProgram, evaluated, observed, trace_live
from .live_dims import dims_and_guards, guard_notes
from .onnx_program import ONNXProgram
from .sanity import check_program
from .tensors import get_leaf_tensors

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
        sample_inputs: MutableMapping[str, Any],
        config: OnnxConfig | Mapping[str, Any] | None = None,
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
    exported, inputs = live.program, live.inputs
    notes = live.notes + dropped_assertions(exported)
    exported._example_inputs = None  # not written, and torch would serialise them
    drop_assertions(exported)
    drop_unused_weights(exported)
    paths = input_paths(exported, inputs)
    input_names = list(paths.values())
    output_names = [name if name not in input_names else f"output.{name}" for name in live.output_names]
    dims, guards = dims_and_guards(exported, inputs, paths, config.dynamic_shapes)
    notes += guard_notes(guards)
    entry = GraphEntry("model", exported, dims.names, dims.ranges, dims.sums, output_names=output_names, input_paths=paths, guards=guards)
    weights, tensors = live_tensors(exported)
    with tempfile.TemporaryDirectory(prefix="argosy-live-") as folder:
        capture = Path(folder) / "model.capture"
        write_capture(capture, [entry], Manifest(), with_constants=False)
        core = _core.lower_onnx(str(capture), tensors, input_names, output_names, opset, config.optimize)
    notes += core.notes
    for note in notes:
        logger.info(note)
    return ONNXProgram(core, config, exported, weights, notes)


def dropped_assertions(exported: torch.export.ExportedProgram) -> list[str]:
    """A note of the assertions on sizes that a program has and no file will."""
    dropped = [
        node
        for module in exported.graph_module.modules()
        if isinstance(module, torch.fx.GraphModule)
        for node in module.graph.nodes
        if getattr(node.target, "_opname", "") == "_assert_scalar"
    ]
    if not dropped:
        return []
    texts = dict.fromkeys(str(node.args[1]) if len(node.args) > 1 else "a condition" for node in dropped)
    shown = "; ".join(list(texts)[:3])
    return [f"{len(dropped)} deferred assertions on sizes are not in the model: {shown}"]


def input_paths(exported: torch.export.ExportedProgram, inputs: Mapping[str, Any]) -> dict[str, str]:
    """Names of the graph's tensor inputs, each with the dotted path that callers know it by."""
    names = [
        spec.arg.name
        for spec in exported.graph_signature.input_specs
        if spec.kind == InputKind.USER_INPUT and not isinstance(spec.arg, ConstantArgument)
    ]
    paths = list(get_leaf_tensors(dict(inputs)))
    if len(names) != len(paths):
        raise ExportError(
            f"the graph has {len(names)} inputs ({', '.join(names)}), the sample inputs have {len(paths)} tensors",
            code="unsupported-feature",
            hint="give numbers that vary as tensors",
        )
    return dict(zip(names, paths, strict=True))


def live_tensors(exported: torch.export.ExportedProgram) -> tuple[list[torch.Tensor], list[tuple]]:
    """The weights of a program, and what the core needs to read them in place. Those that share memory have one identity."""
    identities: dict[tuple, str] = {}
    kept, described = [], []
    for name, value in {**exported.state_dict, **exported.constants}.items():
        if not isinstance(value, torch.Tensor):
            continue
        if value.dtype not in DTYPES:
            raise ExportError(
                f"{name} is {value.dtype}", code="unsupported-feature", hint="convert the model to another dtype"
            )
        tensor = value.detach().cpu().contiguous()
        key = (tensor.data_ptr(), tensor.dtype, tuple(tensor.shape)) if tensor.numel() else (name,)
        identity = identities.setdefault(key, f"live:{len(identities)}")
        kept.append(tensor)
        described.append((name, DTYPES[tensor.dtype][0], list(tensor.shape), tensor.data_ptr(), tensor.nbytes, identity))
    return kept, described
