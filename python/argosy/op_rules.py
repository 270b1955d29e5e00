"""Registry of what becomes of ops of the user's own: ops of PyTorch, or a node of an ONNX file.

Importing this module imports nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .errors import ExportError

#: Namespaces of torch, and others whose ops backends know.
KNOWN_NAMESPACES = ("aten", "prim", "prims", "torch", "higher_order", "transformers", "argosy", "quantized_decomposed", "llama")
#: Domains that are not the user's: ONNX's own. That of ONNX Runtime may be named.
_TAKEN_DOMAINS = ("ai.onnx", "ai.onnx.ml", "ai.onnx.training", "ai.onnx.preview.training")

Function = Callable[..., Any]


@dataclass(frozen=True)
class Decomposition:
    """What an op consists of."""

    op: str
    function: Function
    reason: str = ""


@dataclass(frozen=True)
class OnnxOp:
    """The node that an op becomes in ONNX files."""

    op: str
    domain: str
    name: str
    version: int = 1
    reason: str = ""


_RULES: dict[str, Decomposition | OnnxOp] = {}


def register_decomposition(op: str, *, reason: str = "") -> Callable[[Function], Function]:
    """Registers the decorated function, which takes the arguments of ``op`` and computes its result with other ops.

    ``op`` is ``"namespace::name"``, or ``"namespace::name.overload"`` for one overload alone. Every graph is written with these
    ops in its place, whatever it is exported to.
    """

    def decorate(function: Function) -> Function:
        _add(Decomposition(_checked(op), function, reason))
        return function

    return decorate


def register_onnx_op(op: str, *, domain: str, name: str = "", version: int = 1, reason: str = "") -> None:
    """In ONNX files ``op`` is a node of this domain: tensors are its inputs and outputs, other arguments attributes by their
    names. ``name`` is that of the op if left out, ``version`` that of the domain."""
    namespace, _, own_name = _checked(op).partition("::")
    name = name or own_name.partition(".")[0]
    if namespace in KNOWN_NAMESPACES:
        raise ExportError(
            f"{op} cannot be a node of {domain!r}: it is no op of your own, and becomes other ops before",
            code="invalid-input",
            hint="define an op of your own with torch.library, or register a decomposition",
        )
    if not re.fullmatch(r"[A-Za-z_][\w.-]{0,199}", domain, re.ASCII) or domain in _TAKEN_DOMAINS:
        raise ExportError(
            f"{domain!r} is no domain for an op of your own", code="invalid-input", hint='such as "com.example"'
        )
    if not re.fullmatch(r"[A-Za-z_]\w{0,199}", name, re.ASCII) or not 1 <= version < 2**31:
        raise ExportError(
            f"{name!r} of version {version} is no op of ONNX", code="invalid-input", hint='such as name="MyOp", version=1'
        )
    for other in _RULES.values():
        if isinstance(other, OnnxOp) and other.domain == domain and other.version != version:
            raise ExportError(
                f"{op} wants version {version} of {domain}, {other.op} wants {other.version}",
                code="invalid-input",
                hint="a file has one version of a domain: register both with the same",
            )
    _add(OnnxOp(op, domain, name, version, reason))


def decomposition_of(op: str) -> Decomposition | None:
    """That of ``"namespace::name.overload"``; the default overload has no name."""
    return _found(op, Decomposition)


def onnx_op_of(op: str) -> OnnxOp | None:
    """The same for nodes of ONNX files."""
    return _found(op, OnnxOp)


def registered_rules() -> tuple[Decomposition | OnnxOp, ...]:
    """All rules by op, sorted."""
    return tuple(_RULES[op] for op in sorted(_RULES))


def _found(op: str, kind: type) -> Any:
    rule = _RULES.get(op if "." in op else f"{op}.default") or _RULES.get(op.partition(".")[0])
    return rule if isinstance(rule, kind) else None


def _checked(op: str) -> str:
    if not isinstance(op, str) or not re.fullmatch(r"\w+::\w+(\.\w+)?", op, re.ASCII):
        raise ExportError(f"{op!r} is no op", code="invalid-input", hint='name it as torch.library does: "mylib::gate"')
    return op


def _add(rule: Decomposition | OnnxOp) -> None:
    known = _RULES.get(rule.op)
    if known is not None and _origin(known) != _origin(rule):
        raise ExportError(
            f"{rule.op} has a rule already, of {_origin(known)}",
            code="invalid-input",
            hint="remove one of the two, or name an overload: namespace::name.overload",
        )
    _RULES[rule.op] = rule


def _origin(rule: Decomposition | OnnxOp) -> str:
    """Where a rule comes from. The same may come again: a cell of a notebook, a module that is loaded anew."""
    if isinstance(rule, OnnxOp):
        return f"{rule.domain}::{rule.name}"
    return f"{rule.function.__module__}.{rule.function.__qualname__}"
