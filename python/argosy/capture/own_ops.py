"""Ops of the user's own: registered with ``torch.library`` under a namespace that is neither torch's nor ours."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.export import ExportedProgram

from ..errors import ExportError
from ..op_rules import KNOWN_NAMESPACES, Decomposition, decomposition_of, onnx_op_of
from .companion import last_model_frame

_HINT = (
    "say what it consists of with argosy.register_decomposition; or replace the function that calls it by plain PyTorch for the"
    " time of an export, with argosy.register_patch; see docs/how-to/extend.md"
)


def taken_apart(program: ExportedProgram) -> ExportedProgram:
    """``program`` without ops that have a decomposition, and without composite ops of the user's own: what they consist of is in
    their place, also where that has such ops."""
    done: set[torch._ops.OpOverload] = set()
    while rules := {op: rule for op in {node.target for node in _calls(program)} - done if (rule := _consists_of(op))}:
        program = program.run_decompositions(rules)
        done |= rules.keys()
    return program


def refuse_own_ops(program: ExportedProgram, engine: str) -> None:
    """Raises if the program has ops of the user's own that nothing here can write for ``engine``."""
    nodes = [node for node in _calls(program) if _is_own(node.target) and not (engine == "ONNX" and onnx_op_of(node.target.name()))]
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


def onnx_ops(programs: list[ExportedProgram]) -> list[dict]:
    """What captures say of ops of the user's own that are nodes of ONNX files, by the names that graphs call them."""
    rules = {str(node.target): rule for program in programs for node in _calls(program) if (rule := onnx_op_of(node.target.name()))}
    return [{"op": op, "domain": rule.domain, "name": rule.name, "version": rule.version} for op, rule in sorted(rules.items())]


def _calls(program: ExportedProgram) -> Iterator[torch.fx.Node]:
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if isinstance(node.target, torch._ops.OpOverload):
                yield node


def _is_own(op: torch._ops.OpOverload) -> bool:
    return op.namespace not in KNOWN_NAMESPACES


def _consists_of(op: torch._ops.OpOverload) -> Callable[..., Any] | None:
    if rule := decomposition_of(op.name()):
        return _guarded(rule)
    return torch.export.default_decompositions()[op] if _is_own(op) and _is_composite(op) else None


def _guarded(rule: Decomposition) -> Callable[..., Any]:
    def function(*args: Any, **kwargs: Any) -> Any:
        try:
            return rule.function(*args, **kwargs)
        except ExportError:
            raise
        except Exception as error:
            raise ExportError(
                f"the decomposition of {rule.op} fails: {type(error).__name__}: {error}",
                code="invalid-input",
                location=f"{rule.function.__module__}.{rule.function.__qualname__}",
                hint="it takes the op's arguments, and computes its result with ops of PyTorch",
            ) from error

    return function


def _is_composite(op: torch._ops.OpOverload) -> bool:
    return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CompositeImplicitAutograd")
