"""Ops that engines lack stay as they are in a .pt2 file: rows through the writer, loaded and run by torch."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

sys.path.append(str(Path(__file__).parent))

from core import REPOSITORY  # noqa: E402
from rows import all_cases  # noqa: E402
from run import compare, export, leaves, module_of, op_names  # noqa: E402

#: Ops that backends have by formulas alone.
OPS = (
    "aten._scaled_dot_product_flash_attention_for_cpu.default", "aten._unique2.default", "aten.as_strided.default",
    "aten.block_diag.default", "aten.cartesian_prod.default", "aten.col2im.default", "aten.cross_entropy_loss.default",
    "aten.logspace.default", "aten.nanmean.default", "aten.tril_indices.default",
)  # fmt: skip


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> str:
    if given := os.environ.get("ARGOSY_SCHEMAS"):
        return given
    path = tmp_path_factory.mktemp("schemas") / "op_schemas.txt"
    subprocess.run([sys.executable, str(REPOSITORY / "tools/write_op_schemas.py"), "-o", str(path)], check=True)
    return str(path)


@pytest.mark.parametrize("case", [pytest.param(case, id=case.id) for case in all_cases() if case.op in OPS])
def test_an_op_stays_as_it_is(case, schemas: str, tmp_path: Path) -> None:
    binary = os.environ.get("ARGOSY_BIN", str(REPOSITORY / "build/release/apps/cli/argosy"))
    module, archive, written = module_of(case), tmp_path / "row.pt2", tmp_path / "written.pt2"
    torch.export.save(export(case, module), archive)
    passes = "--passes=decompose-structures,fix-dims"
    subprocess.run([binary, "opt", archive, passes, "--schemas", schemas, "-o", written], check=True)
    program = torch.export.load(written)
    assert case.op in op_names(program)
    loaded = program.module()

    def run(inputs: list[torch.Tensor]) -> list[Any]:
        return leaves(loaded(inputs=inputs))

    for shape in case.shapes:
        compare(case, module, run, shape)


def test_every_op_has_a_row() -> None:
    assert set(OPS) <= {case.op for case in all_cases()}
