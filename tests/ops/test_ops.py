"""Every op that models use, translated and run in ONNX Runtime, with PyTorch as the reference."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnxruntime", reason="it runs the models")
sys.path.append(str(Path(__file__).parent))

from expected_failures import EXPECTED_FAILURES  # noqa: E402
from rows import all_cases  # noqa: E402
from run import Ran, command, run  # noqa: E402

CASES = all_cases()
#: What the rows of this run had after lowering.
COVERED: set[str] = set()
RAN: list[str] = []


def _param(case):
    reason = EXPECTED_FAILURES.get(case.id)
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.parametrize("case", [_param(case) for case in CASES])
def test_op(case) -> None:
    RAN.append(case.id)
    try:
        ran: Ran = run(case)
    except Exception as error:
        error.add_note(f"to run this row alone: {command(case)}")
        raise
    COVERED.update(ran.ops)


def test_expected_failures_are_rows() -> None:
    assert set(EXPECTED_FAILURES) <= {case.id for case in CASES}


def test_every_translation_has_a_row() -> None:
    """Deleting a translation must make a test fail: each one is needed by a row that passed."""
    if len(RAN) < len(CASES):
        pytest.skip("only some rows were run")
    from argosy import _core

    # No model has it: an edit of a graph's border adds it, and the C++ test of the lowering needs it.
    at_borders = {"argosy.after.default"}
    # For engines with ops of their own: tests/bundles/test_fast_graphs.py and test_quantize.py need them.
    of_engines = {
        "aten.rms_norm.default", "argosy.rotary.default", "onnx.group_query_attention.default", "onnx.linear_attention.default",
        "onnx.sum_and_norm.default", "onnx.experts.default", "onnx.multi_head_attention.default", "onnx.matmul_nbits.default",
        "onnx.gather_block_quantized.default", "onnx.quantized_experts.default", "onnx.dynamic_product.default",
        "onnx.gather_rows.default", "onnx.matmul_bnb4.default",
    }  # fmt: skip
    assert sorted(set(_core.onnx_translations()) - COVERED - at_borders - of_engines) == []


def test_a_translation_beside_a_decomposition_says_why() -> None:
    tool = Path(__file__).parents[2] / "tools/lowering_overlap.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_list_of_ops_is_up_to_date() -> None:
    tool = Path(__file__).parents[2] / "tools/op_coverage.py"
    done = subprocess.run([sys.executable, str(tool), "--check"], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
