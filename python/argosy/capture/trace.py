"""Tracing one component with ``torch.export``.

The root model is what is exported, with its ``forward`` replaced by one that takes flat, named tensors and runs the
component: so parameters and module paths keep the names that they have in the whole model, whichever part is traced.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import torch
from torch.export import Dim, ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx.experimental.symbolic_shapes import free_unbacked_symbols

from .components import Component, Inputs, Shape
from .dims import Dims
from .conditions import value_of
from .guards import Guard, kept_guards, padded_lengths, restart_guard, within_guards
from .flat import export_flat
from .patches.rotary import restart
from ..patching import apply_fx_node_fixes, apply_fx_program_fixes
from ..structures import flatten, identifier, leaf_name


#: The longest text that a multiple of a chunk is looked for in.
_LONGEST_CHUNK = 1 << 10


@dataclass
class Traced:
    """A component's graph and its interface."""

    component: Component
    program: ExportedProgram
    #: graph input to dotted name: {"past_key_values_0_key": "past_key_values.0.key"}
    input_paths: dict[str, str]
    output_names: list[str]
    #: by graph input, with ranges in which the graph is right
    dims: Dims
    #: what the graph needs of sizes beyond what its callers were to keep to
    guards: list[Guard] = field(default_factory=list)
    #: dims that callers may expect to vary but the trace fixed
    specialized: list[dict] = field(default_factory=list)
    export_cpu_seconds: float = 0.0


def trace(model: torch.nn.Module, component: Component, inputs: Inputs, dims: Dims, fixed: tuple[str, ...] = ()) -> Traced:
    """``model`` may have fake or real weights; ``inputs`` are structured, on the CPU. Nothing of the model is changed. Dims
    of the names in ``fixed`` have the sizes of ``inputs``."""
    leaves, _ = flatten(inputs)
    names = [identifier(leaf_name(path)) for path, _ in leaves if leaf_name(path) not in component.constants]
    by_path = {identifier(name): axes for name, axes in dims.names.items()}
    # The twin has fewer layers; the others' states vary as those that it has.
    by_pattern: dict[str, list[dict[int, str]]] = {}
    for name, axes in by_path.items():
        by_pattern.setdefault(without_numbers(name), []).append(axes)
    for name in names:
        known = by_pattern.get(without_numbers(name), [])
        if name not in by_path and known and all(axes == known[0] for axes in known):
            by_path[name] = known[0]
    shapes = {name: {axis: Dim.AUTO for axis, dim in by_path.get(name, {}).items() if dim not in fixed} for name in names}
    flat = export_flat(model, component.run, inputs, shapes, is_input=lambda path: leaf_name(path) not in component.constants)
    program = flat.program
    apply_fx_node_fixes("dynamo", program.graph_module)
    apply_fx_program_fixes("dynamo", program)
    drop_assertions(program)
    drop_unused_weights(program)
    placed = Dims({name: by_path[name] for name in names if name in by_path}, dims.ranges, dims.sums)
    guards = kept_guards(program, placed)
    component = replace(component, shapes=(*component.shapes, *_multiples(component, padded_lengths(program, placed))))
    placed = within_guards(placed, guards)
    if component.cache is not None and (found := restart(model)) and (guard := restart_guard(found, placed)):
        guards.append(guard)
    traced = Traced(component, program, flat.input_paths, flat.output_names, placed, guards, export_cpu_seconds=flat.cpu_seconds)
    traced.specialized = _specialized(traced) + _single_rows(traced, model) + list(component.fixed)
    return traced


def _multiples(component: Component, lengths: list[str]) -> Iterator[Shape]:
    """For each condition that a length is no multiple, the first shape at which it is one."""
    for condition in lengths:
        shapes = (Shape(1, length, 0, 0) for length in range(2, _LONGEST_CHUNK))
        yield from itertools.islice((each for each in shapes if value_of(condition, component.symbols(each)) is False), 1)


def without_numbers(name: str) -> str:
    """What names of the same tensor of different layers have in common."""
    return re.sub(r"\d+", "#", name)


_ASSERTIONS = (
    "_assert_scalar",
    "_assert_tensor_metadata",
    "_assert_async",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
)


def drop_assertions(program: ExportedProgram) -> None:
    """Removes assertions: they state what torch took for granted at the traced sizes (such as a batch of at least two),
    not what the model needs; true ranges are written beside the graph."""
    for module in program.graph_module.modules():
        if not isinstance(module, torch.fx.GraphModule):
            continue
        for node in reversed(list(module.graph.nodes)):
            if node.op == "call_function" and getattr(node.target, "_opname", "") in _ASSERTIONS:
                module.graph.erase_node(node)
        for node in module.graph.nodes:  # torch 2.13 forgets users of values that feed sizes that nobody knows
            for read in node.all_input_nodes:
                read.users.setdefault(node)
        module.graph.eliminate_dead_code(_is_needed)
        module.recompile()


def _is_needed(node: torch.fx.Node) -> bool:
    if node.op in ("placeholder", "output"):
        return True
    if node.op == "call_function" and isinstance(node.target, torch._ops.OpOverload):
        return node.target._schema.is_mutable
    return False


def drop_unused_weights(program: ExportedProgram) -> None:
    """Removes parameters, buffers and constants that the graph does not read, so that nobody has to provide them."""
    weights = (InputKind.PARAMETER, InputKind.BUFFER, InputKind.CONSTANT_TENSOR)
    nodes = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    mutated = set(program.graph_signature.buffers_to_mutate.values())
    kept = []
    for spec in program.graph_signature.input_specs:
        node = nodes.get(getattr(spec.arg, "name", None))
        if spec.kind in weights and node is not None and not node.users and spec.target not in mutated:
            program.graph.erase_node(node)
            program.state_dict.pop(spec.target, None)
            program.constants.pop(spec.target, None)
        else:
            kept.append(spec)
    program.graph_signature.input_specs[:] = kept
    program.graph_module.recompile()


def _specialized(traced: Traced) -> list[dict]:
    values = {node.name: node.meta.get("val") for node in traced.program.graph.nodes if node.op == "placeholder"}
    found = []
    for name, axes in traced.dims.names.items():
        for axis, dim in axes.items():
            size = fixed_size(values[name].shape[axis]) if isinstance(values.get(name), torch.Tensor) else None
            if size is not None:
                read = " and ".join(traced.component.constants)
                reason = f"the model's code fixes {dim} to {size} while it is traced"
                reason = f"the model's code computes with the values of {read}, which are part of the graph" if read else reason
                found.append({"input": name, "dim": axis, "value": size, "reason": reason})
    return found


def _single_rows(traced: Traced, model: torch.nn.Module) -> list[dict]:
    if not traced.component.one_row:
        return []
    reason = f"the model refuses more rows ({traced.component.one_row})"
    if getattr(getattr(model, "config", None), "pad_token_id", 0) is None:
        reason += '; it may take them with a "pad_token_id" in config.json'
    return [{"input": next(iter(traced.input_paths)), "dim": 0, "value": 1, "reason": reason}]


def has_sizes_by_values(program: ExportedProgram) -> bool:
    """Whether the size of a tensor in the graph depends on the values of another."""
    return any(free_unbacked_symbols(node.meta["val"]) for node in program.graph.nodes if isinstance(node.meta.get("val"), torch.Tensor))


def fixed_size(size: int | torch.SymInt) -> int | None:
    """The size as a number if the trace fixed it. A symbol that a guard made equal to a number still looks symbolic."""
    return size.node.maybe_as_int() if isinstance(size, torch.SymInt) else size
