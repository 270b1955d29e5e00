"""What the core needs to lower a live program: its graph with dims and guards, and its weights where they are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch.export.graph_signature import ConstantArgument, InputKind

from ..capture.trace import drop_assertions, drop_unused_weights
from ..capture.writer import DTYPES, GraphEntry
from ..errors import ExportError
from .live import LiveProgram
from .live_dims import dims_and_guards, guard_notes
from .tensors import get_leaf_tensors


def graph_entry(live: LiveProgram, dynamic_shapes: Any) -> tuple[GraphEntry, list[str]]:
    """The graph as captures have it, and notes on what is left out or fixed. Assertions and unused weights are dropped from the
    program."""
    exported = live.program
    notes = live.notes + dropped_assertions(exported)
    exported._example_inputs = None  # not written, and torch would serialise them
    drop_assertions(exported)
    drop_unused_weights(exported)
    paths = input_paths(exported, live.inputs)
    dims, guards = dims_and_guards(exported, live.inputs, paths, dynamic_shapes)
    entry = GraphEntry("model", exported, dims.names, dims.ranges, dims.sums, live.output_names, paths, guards=guards)
    return entry, notes + guard_notes(guards)


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
