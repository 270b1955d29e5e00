"""All rows, family by family."""

from __future__ import annotations

import importlib

from op_case import Case

FAMILIES = (
    "elementwise", "comparison", "reduction", "shape", "indexing", "nn", "vision", "creation", "symbolic",
    "control_flow", "complex_numbers", "inplace", "attention", "experts",
)  # fmt: skip


def all_cases() -> list[Case]:
    return [case for family in FAMILIES for case in importlib.import_module(f"rows_{family}").ROWS.cases]
