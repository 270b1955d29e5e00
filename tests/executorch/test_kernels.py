"""What ops become in ExecuTorch: rows of tests/ops, run in its own kernels, with PyTorch as the reference.

A part of the rows, since others share what computes them; ``python tests/executorch/kernel_run.py --all`` runs all.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="it runs the programs")
sys.path.append(str(Path(__file__).parent))

from kernel_failures import EXPECTED_FAILURES  # noqa: E402
from kernel_run import all_cases, run  # noqa: E402

CASES = {case.id: case for case in all_cases()}
#: Every so many rows one is run here, and all of those in which something is rewritten that kernels get wrong.
STEP = 9
ALWAYS = (
    "aten.remainder.", "aten.sort.", "aten.scaled_dot_product_attention.", "aten.einsum.", "aten.conv3d.", "aten.histc.",
    "aten.sign.", "aten.matmul.", "transformers.grouped_mm_fallback.", "higher_order.scan", "aten.upsample_bicubic2d.",
)  # fmt: skip


def _chosen() -> list:
    rows = [
        case
        for index, case in enumerate(CASES.values())
        if (index % STEP == 0 or case.op.startswith(ALWAYS)) and case.id not in EXPECTED_FAILURES
    ]
    return [pytest.param(case, id=case.id) for case in rows]


@pytest.mark.parametrize("case", _chosen())
def test_kernels(case) -> None:
    run(case)


#: What no kernel computes is said, and not written: one row of each sort.
REFUSED = (
    "reduction-cummax.default(f32[bx5],1)",
    "vision-stft.default(power)",
    "control_flow-higher_order.while_loop(a fixed count)",
)


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_kernel_is_refused(name: str) -> None:
    from argosy.errors import ExportError

    assert name in EXPECTED_FAILURES
    with pytest.raises(ExportError) as raised:
        run(CASES[name])
    assert raised.value.code == "unsupported-op"


def test_expected_failures_are_rows() -> None:
    assert set(EXPECTED_FAILURES) <= set(CASES)
