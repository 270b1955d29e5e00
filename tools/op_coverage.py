#!/usr/bin/env python3
"""Writes docs/op-coverage.md from the tables of translations and the rows of the op tests.

    tools/op_coverage.py           writes it
    tools/op_coverage.py --check   exit code 1 if it is not up to date

Needs the built extension, as the op tests do (tests/ops/core.py).
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/ops"), str(ROOT / "python")]
OUTPUT = ROOT / "docs/op-coverage.md"


def text() -> str:
    from core import find_core

    find_core()
    from expected_failures import EXPECTED_FAILURES
    from rows import all_cases

    from argosy import _core

    translated, decomposed = set(_core.onnx_translations()), set(_core.decomposed_ops())
    rows, failing = Counter(), {}
    for case in all_cases():
        rows[case.op] += 1
        if case.id in EXPECTED_FAILURES:
            failing.setdefault(case.op, []).append((case.name, EXPECTED_FAILURES[case.id]))
    ops = sorted(translated | set(rows))
    unsupported = [op for op in ops if op not in translated and len(failing.get(op, ())) == rows[op]]
    taken_apart = [op for op in ops if op not in translated and op not in unsupported]
    lines = [
        "# Ops that become ONNX",
        "",
        "Written by `tools/op_coverage.py`; not edited by hand.",
        "",
        f"{len(translated)} ops have a translation. {len(taken_apart)} more were seen to become such ops before: "
        f"{sum(op in decomposed for op in taken_apart)} are decomposed into others by rules that serve every backend "
        "(`src/passes/decompose`, `src/passes/structures`), the rest are rewritten (writes to memory, synonyms, composites). Each has rows in `tests/ops`, "
        "which compare it with PyTorch in ONNX Runtime. Any other op is an error that names it and where in the model it is; all "
        "of them are told in one run.",
        "",
        "| op | how | rows |",
        "| --- | --- | --- |",
    ]
    for op in ops:
        if op not in unsupported:
            how = "translated" if op in translated else "decomposed" if op in decomposed else "rewritten"
            lines.append(f"| `{op}` | {how} | {rows[op] or 'through others'} |")
    lines += ["", "## What is known not to work", ""]
    known = [f"- `{op}`, {name}: {reason}" for op in ops for name, reason in failing.get(op, ())]
    lines += known or ["Nothing that has rows."]
    return "\n".join(lines) + "\n"


def main() -> int:
    made = text()
    if "--check" not in sys.argv[1:]:
        OUTPUT.write_text(made, encoding="utf-8")
        return 0
    if not OUTPUT.exists() or OUTPUT.read_text(encoding="utf-8") != made:
        print(f"{OUTPUT.relative_to(ROOT)} is not up to date: run tools/op_coverage.py", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
