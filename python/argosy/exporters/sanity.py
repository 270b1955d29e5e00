"""What an exporter returns, run beside the model before it is handed out."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch.export.graph_signature import InputKind

from ..capture.keeping import unchanged
from ..structures import flatten
from ..compare import difference
from ..errors import ExportError
from ..observer.calls import copy_value
from .prepare import prepare_for_export
from .tensors import get_leaf_tensors, module_dtype_and_device

logger = logging.getLogger(__name__)

#: The largest difference to the model, of an output's scale; for models in other dtypes than float32 that of theirs.
_TOLERANCE = 1e-4
_TOLERANCES = {torch.bfloat16: 3e-2, torch.float16: 4e-3}


def check_program(
    model: torch.nn.Module,
    sample_inputs: Mapping[str, Any],
    traced: torch.export.ExportedProgram,
    run: Callable[[dict[str, Any]], Mapping[str, torch.Tensor]],
) -> None:
    """Raises if ``run``, which gives outputs by name, does not give what the model gives, for the sample inputs and with a row
    more of these where ``traced`` lets the batch vary."""
    dtype, _ = module_dtype_and_device(model)
    for what, inputs in _calls(sample_inputs, traced):
        with unchanged(model), torch.no_grad():
            _, prepared, flags = prepare_for_export(model, copy_value(dict(inputs)))
            try:
                expected = get_leaf_tensors(model(**copy_value(prepared), **flags))
            except Exception as error:  # noqa: BLE001 - inputs that do not go together with one more row
                if inputs is sample_inputs:
                    raise
                logger.debug("not checked with another row: %s", error)
                return
        found = difference(expected, run(copy_value(prepared)))
        if found.error or found.scaled > _TOLERANCES.get(dtype, _TOLERANCE):
            text = found.error or f"{found.worst} is off by {found.abs:.2g}"
            raise ExportError(f"the program does not give what the model gives, {what}: {text}", code="wrong-results",
                              hint="please report it with the model's configuration and the inputs' shapes")  # fmt: skip


def _calls(inputs: Mapping[str, Any], traced: torch.export.ExportedProgram) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield "on the sample inputs", inputs
    leaves, structure = flatten(dict(inputs))
    batch = leaves[0][1].shape[0] if leaves and leaves[0][1].dim() else 0
    if batch and isinstance(_first_size(traced), torch.SymInt):
        rows = [torch.cat([tensor, tensor[-1:]]) if tensor.dim() and tensor.shape[0] == batch else tensor for _, tensor in leaves]
        yield "with one more row", structure.rebuild(iter(rows))


def _first_size(traced: torch.export.ExportedProgram) -> Any:
    """That of the batch: the first axis of the first input."""
    names = [spec.arg.name for spec in traced.graph_signature.input_specs if spec.kind == InputKind.USER_INPUT]
    values = {node.name: node.meta.get("val") for node in traced.graph.nodes if node.op == "placeholder"}
    tensors = [values[name] for name in names if isinstance(values.get(name), torch.Tensor)]
    return tensors[0].shape[0] if tensors and tensors[0].dim() else None
