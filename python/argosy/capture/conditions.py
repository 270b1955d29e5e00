"""Conditions on named dims, as captures and manifests hold them: ``total_sequence <= 2048``."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Iterable, Mapping
from typing import Any

_COMPARED = {ast.Eq: operator.eq, ast.NotEq: operator.ne, ast.Lt: operator.lt, ast.LtE: operator.le,
             ast.Gt: operator.gt, ast.GtE: operator.ge}  # fmt: skip
_COMPUTED = {ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.FloorDiv: operator.floordiv,
             ast.Mod: operator.mod}  # fmt: skip
_CALLED = {"min": min, "max": max}


def all_hold(conditions: Iterable[str], sizes: Mapping[str, int]) -> bool:
    """Whether ``sizes`` of named dims meet every condition. One that says more than can be told here counts as met."""
    return all(value_of(condition, sizes) is not False for condition in conditions)


def value_of(condition: str, sizes: Mapping[str, int]) -> Any:
    """True, False, or None where a name or a function is not known. Nothing of the text is executed."""
    # Names of dims may have dots, as "pixel_values.3".
    names = {f"dim_{i}": size for i, size in enumerate(sizes.values())}
    short = dict(zip(sizes, names, strict=True))
    text = re.sub(r"[A-Za-z_][\w.]*", lambda match: short.get(match[0], match[0]), condition)
    try:
        return _evaluated(ast.parse(text, mode="eval").body, names)
    except (SyntaxError, LookupError, ValueError, ZeroDivisionError, RecursionError):
        return None


def _evaluated(node: ast.expr, sizes: Mapping[str, int]) -> Any:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    if isinstance(node, ast.Name):
        return sizes[node.id]
    if isinstance(node, ast.BinOp):
        return _COMPUTED[type(node.op)](_evaluated(node.left, sizes), _evaluated(node.right, sizes))
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -_evaluated(node.operand, sizes)
    if isinstance(node, ast.BoolOp):
        parts = [bool(_evaluated(part, sizes)) for part in node.values]
        return any(parts) if isinstance(node.op, ast.Or) else all(parts)
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        return _COMPARED[type(node.ops[0])](_evaluated(node.left, sizes), _evaluated(node.comparators[0], sizes))
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and not node.keywords:
        return _CALLED[node.func.id](*(_evaluated(part, sizes) for part in node.args))
    raise ValueError("not a condition on sizes")
