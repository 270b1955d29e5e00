"""What ops become in ExecuTorch: all rows of tests/ops, run in its own kernels, with PyTorch as the reference."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path

import pytest

pytest.importorskip("executorch", reason="it runs the programs")
sys.path.append(str(Path(__file__).parent))

from kernel_failures import EXPECTED_FAILURES  # noqa: E402
from kernel_run import all_cases, run  # noqa: E402

CASES = {case.id: case for case in all_cases()}


def _param(case):
    reason = EXPECTED_FAILURES.get(case.id)
    marks = [pytest.mark.xfail(reason=reason, strict=True)] if reason else []
    return pytest.param(case, id=case.id, marks=marks)


@pytest.mark.parametrize("case", [_param(case) for case in CASES.values()])
def test_kernels(case) -> None:
    try:
        run(case)
    except Exception as error:
        error.add_note(f"to run this row alone: python tests/executorch/kernel_run.py {shlex.quote(case.id)}")
        raise


#: What no kernel computes is said, and not written: one row of each sort.
REFUSED = (
    "shape-view.dtype(i32[bx2],float32)",
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


def test_generated_headers_are_of_the_installed_package() -> None:
    sys.path.append(str(Path(__file__).parents[2] / "tools"))
    import write_executorch_headers as tool

    files = {**tool.schema_headers(), "kernel_list_generated.h": tool.kernel_list()}
    assert sorted(files) == sorted(path.name for path in tool.FOLDER.iterdir())
    stale = [name for name, text in files.items() if (tool.FOLDER / name).read_text() != text]
    assert stale == [], "run tools/write_executorch_headers.py"
