"""Attention as captures hold it in one op, beside its own kernel."""

from __future__ import annotations

from op_case import Rows, b8, exactly, f16, f32

import argosy.capture.attention  # noqa: F401 - registers the op

ROWS = Rows("attention")
op = ROWS.op

NAME = "argosy.attention.default"
Q, K, V = f32("b", 4, "s", 8), f32("b", 2, "t", 8), f32("b", 2, "t", 6)
#: Every query sees something: one that sees nothing is the mean of all values where scores are hidden one by one.
MASK = b8("b", 1, "s", "t", v=exactly(True, True, False))
op(NAME, Q, f32("b", 4, "t", 8), f32("b", 4, "t", 8), None, None, 0.3, 0.0, 0, label="plain")
op(NAME, Q, K, V, MASK, None, 0.3, 0.0, 0, label="grouped queries")
op(NAME, Q, K, V, f32("b", 1, "s", "t"), None, 0.3, 0.0, 0, label="a mask that is added")
op(NAME, Q, K, V, MASK, None, 0.3, 5.0, 0, label="soft cap")
op(NAME, Q, K, V, f32("b", 1, "s", "t"), None, 0.3, 5.0, 4, label="soft cap, a mask that is added")
op(NAME, Q, K, V, MASK, f32(4), 0.3, 0.0, 0, label="sinks")
op(NAME, Q, K, V, None, f32(4), 0.3, 5.0, 0, label="sinks and soft cap")
op(NAME, f16("b", 4, "s", 8), f16("b", 2, "t", 8), f16("b", 2, "t", 8), MASK, None, 0.3, 5.0, 0, label="f16")
