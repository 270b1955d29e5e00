"""Live models to ExecuTorch."""

from __future__ import annotations

import logging
import tempfile
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import torch

from ..capture.multimodal_geometry import is_geometry
from ..capture.writer import Manifest, write_capture
from ..errors import ExportError
from ..observer import InputObserver
from .axes import pictures
from .configs import ExecutorchConfig, ExportConfigMixin
from .executorch_program import ExecutorchProgram
from .exporter_dynamo import DynamoExporter
from .live import LiveProgram, evaluated, observed, trace_live
from .lowering import graph_entry, live_tensors
from .sanity import check_program
from .tensors import get_leaf_tensors

logger = logging.getLogger(__name__)

#: What computes, as the configuration names it.
BACKENDS = ("xnnpack", "portable")
#: Backends that ExecuTorch knows besides, and what each of them needs that is not here.
_OTHERS = {
    "cuda": "a CUDA toolkit, and the compiler of torch that makes GPU code of graphs",
    "cuda-windows": "a CUDA toolkit, and the compiler of torch that makes GPU code of graphs",
    "coreml": "Apple's coremltools on macOS",
    "mps": "Metal on macOS",
    "metal": "Metal on macOS",
    "qnn": "Qualcomm's QNN SDK",
    "vulkan": "ExecuTorch's Vulkan partitioner",
    "openvino": "Intel's OpenVINO",
}
#: A dim without a bound of its own may be twice as large as in the sample, a batch four times, and that large: a batch, and any
#: other one but those of pictures. Memory is reserved for it.
_LARGEST_BATCH, _LARGEST_SIZE = 4, 256


class ExecutorchExporter(DynamoExporter):
    """Exports a live model to an `ExecutorchProgram`.

    ::

        program = ExecutorchExporter().export(model, inputs, ExecutorchConfig(backend="xnnpack", dynamic=True))
        program.save("model.pte")

    The method is called ``forward``; its inputs are the tensors of the sample inputs, in their order.
    """

    config_class = ExecutorchConfig

    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: Mapping[str, Any] | InputObserver,
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
    ) -> ExecutorchProgram:
        """The program of ``model(**sample_inputs)``. Neither the model nor the inputs are changed."""
        sample_inputs, config = observed(sample_inputs, ExecutorchConfig.accept(config))
        check_backend(config.backend)
        live = trace_live(model, sample_inputs, config, "executorch")
        with evaluated(model):
            program = lower_program(live, config)
        if config.check:
            check_program(model, sample_inputs, live.program, program.outputs_by_name)
        return program


def check_backend(name: str) -> None:
    if name in BACKENDS:
        return
    usable = "use 'xnnpack' for fast kernels on CPUs, or 'portable' for ExecuTorch's own"
    if name in _OTHERS:
        raise ExportError(
            f"there is no backend {name!r} here: it needs {_OTHERS[name]}",
            code="unsupported-feature",
            hint=f"{usable}; transformers.exporters.ExecutorchExporter and optimum-executorch have other backends",
        )
    raise ExportError(f"ExecuTorch has no backend {name!r} that is known here", code="invalid-input", hint=usable)


def lower_program(live: LiveProgram, config: ExecutorchConfig) -> ExecutorchProgram:
    """Assertions and unused weights are dropped from the program."""
    from .. import _core

    entry, notes = graph_entry(live, config.dynamic_shapes)
    paths, dims = entry.input_paths, entry.dim_names
    samples = {name: get_leaf_tensors(live.inputs)[path] for name, path in paths.items()}
    sides = [name for name, path in paths.items() if path in pictures(live.inputs)]
    bounded = {name: {axis: dim for axis, dim in axes.items() if dim not in entry.sums} for name, axes in dims.items()}
    largest, assumed = largest_sizes(bounded, entry.ranges, samples, config, sides)
    notes += [f"memory is reserved for {dim} of up to {size}; max_sizes asks for more" for dim, size in assumed.items()]
    entry.ranges = {name: (low, largest.get(name, high)) for name, (low, high) in entry.ranges.items()}
    weights, tensors = live_tensors(live.program)
    with tempfile.TemporaryDirectory(prefix="argosy-live-") as folder:
        capture = Path(folder) / "model.capture"
        write_capture(capture, [entry], Manifest(), with_constants=False)
        shape = ",".join(f"{name}=0..{size}" for name, size in largest.items())
        core = _core.lower_executorch(str(capture), tensors, config.backend, shape)
    notes += core.notes
    for note in notes:
        logger.info(note)
    named = {path: [dims.get(name, {}).get(axis, size) for axis, size in enumerate(samples[name].shape)]
             for name, path in paths.items()}  # fmt: skip
    return ExecutorchProgram(core, list(paths.values()), live.output_names, live.program, weights, notes, named)


def largest_sizes(
    dims: Mapping[str, Mapping[int, str]],
    ranges: Mapping[str, tuple[int | None, int | None]],
    tensors: Mapping[str, torch.Tensor],
    config: ExecutorchConfig,
    pictures: Collection[str] = (),
) -> tuple[dict[str, int], dict[str, int]]:
    """The bound of each dim that varies: that of its ``Dim``, of ``config.max_sizes``, or a usual one. The second are those that
    nobody asked for."""
    largest: dict[str, int] = {}
    # Of patches in a row the first axis is no batch; nor are rows of features that go with a batch of texts.
    packed, batch = any(map(is_geometry, tensors)), dims.get(next(iter(tensors), ""), {}).get(0)
    for name in sorted(dims, key=lambda name: name not in pictures):
        for axis, dim in dims[name].items():
            size = tensors[name].shape[axis]
            is_batch = axis == 0 and not packed and (dim == batch or tensors[name].dim() > 2)
            # What is computed of a picture may grow with the fourth power of its sides.
            is_side = name in pictures and axis > 0
            usual = max(_LARGEST_BATCH, 4 * size) if is_batch else max(0 if is_side else _LARGEST_SIZE, 2 * size)
            high = ranges[dim][1]
            largest.setdefault(dim, usual if high is None else high)
    for dim, size in (config.max_sizes or {}).items():
        if dim not in largest:
            raise ExportError(
                f"max_sizes has {dim!r}, which is no dim that varies",
                code="invalid-input",
                hint=f"these vary: {', '.join(largest) or 'none'}",
            )
        largest[dim] = size
    asked = {dim for dim, (_, high) in ranges.items() if high is not None} | set(config.max_sizes or {})
    return largest, {dim: size for dim, size in largest.items() if dim not in asked}
