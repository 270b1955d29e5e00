"""Ops of the user's own: registered with ``torch.library`` under a namespace that is neither torch's nor ours."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch.export import ExportedProgram

from ..errors import ExportError
from .companion import last_model_frame

#: Namespaces of torch, and others whose ops backends know.
_KNOWN = ("aten", "prim", "prims", "torch", "higher_order", "transformers", "argosy", "quantized_decomposed", "llama")

_HINT = (
    'implement it of torch\'s ops, Library.impl(…, "CompositeImplicitAutograd"), and it is taken apart; or replace the function that'
    " calls it by plain PyTorch for the time of an export, with argosy.register_patch; see docs/errors/unsupported-op.md"
)


def taken_apart(program: ExportedProgram) -> ExportedProgram:
    """``program`` without composite ops of the user's own: what they consist of is in their place, also where that has such ops."""
    done: set[torch._ops.OpOverload] = set()
    while ops := {node.target for node in _own_nodes(program) if _is_composite(node.target)} - done:
        table = torch.export.default_decompositions()
        program = program.run_decompositions({op: table[op] for op in ops})
        done |= ops
    return program


def refuse_own_ops(program: ExportedProgram, engine: str) -> None:
    """Raises if the program has ops of the user's own, which nothing here can translate for ``engine``."""
    nodes = list(_own_nodes(program))
    if not nodes:
        return
    names = list(dict.fromkeys(str(node.target) for node in nodes))
    first = nodes[0]
    file, line = last_model_frame(first.meta.get("stack_trace") or "")
    path, kind = next(reversed((first.meta.get("nn_module_stack") or {"": ("", "")}).values()))
    where = [path or "the model", f"({str(kind).rsplit('.', 1)[-1]})" if kind else "", f"{file}:{line}" if file else ""]
    text = " is an op of your own" if len(names) == 1 else " are ops of your own"
    raise ExportError(
        f"{', '.join(names)}{text}, not PyTorch's: what is inside is unknown, so that it cannot be written for {engine}",
        code="unsupported-op",
        node=first.format_node(),
        location=" ".join(part for part in where if part),
        hint=_HINT,
    )


def _own_nodes(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if isinstance(node.target, torch._ops.OpOverload) and node.target.namespace not in _KNOWN:
                yield node


def _is_composite(op: torch._ops.OpOverload) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
