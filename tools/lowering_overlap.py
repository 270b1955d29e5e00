#!/usr/bin/env python3
"""Lists the ops that are written twice: a decomposition for every backend (src/passes/decompose), and a row of ONNX's own.

    tools/lowering_overlap.py           prints them, with the reason that each row gives
    tools/lowering_overlap.py --check   exit code 1 if one gives none

Needs the built extension, as the op tests do (tests/ops/core.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "tests/ops"), str(ROOT / "python")]


def overlap() -> dict[str, str]:
    """Ops with both, and the reason of the row, which may be empty."""
    from core import find_core

    find_core()
    from argosy import _core

    decomposed = set(_core.decomposed_ops())
    return {op: why for op, why in _core.onnx_translations().items() if op in decomposed}


def main() -> int:
    from onnx import defs

    rows = overlap()
    is_op = {op: defs.has(why.split(" ")[0]) if why else False for op, why in rows.items()}
    kinds = {
        "an op of ONNX": {op: why for op, why in rows.items() if why and is_op[op]},
        "a formula": {op: why for op, why in rows.items() if why and not is_op[op]},
        "no reason": {op: why for op, why in rows.items() if not why},
    }
    print(f"{len(rows)} ops have a decomposition and a row of ONNX's own")
    for kind, ops in kinds.items():
        print(f"\n{kind}: {len(ops)}")
        for op, why in ops.items():
            print(f"  {op:54s}{why}".rstrip())
    return 1 if "--check" in sys.argv[1:] and kinds["no reason"] else 0


if __name__ == "__main__":
    sys.exit(main())
