"""Ops that plain PyTorch does not have are taken apart: what is left runs without the packages that define them."""

from __future__ import annotations

import json
import re
import zipfile
from pathlib import Path

import pytest
from cli_tool import Argosy, find_argosy
from thorough import thorough

torch = pytest.importorskip("torch", reason="archives are run with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")


@pytest.fixture(scope="module")
def argosy(tmp_path_factory: pytest.TempPathFactory) -> Argosy:
    return find_argosy(tmp_path_factory.mktemp("argosy"))


def ops(archive: Path) -> set[str]:
    """Namespaces of the ops that the graphs of an archive call."""
    with zipfile.ZipFile(archive) as file:
        graphs = [file.read(name).decode() for name in file.namelist() if "/models/" in name]
    return {found for graph in graphs for found in re.findall(r'"target":"torch\.ops\.(\w+)\.', graph)}


@pytest.mark.parametrize(
    ("family", "foreign"),
    [
        thorough(("llama", {"argosy"})),  # grouped queries
        thorough(("gemma2", {"argosy"})),  # soft cap and windows
        ("gpt_oss", {"argosy", "transformers"}),  # sinks, and experts
    ],
)
def test_export_equals_eager(argosy: Argosy, family: str, foreign: set[str], tmp_path: Path) -> None:
    from argosy.capture.session import open_session, trace_session, write_session
    from argosy.capture.twin import shrink
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan
    from argosy.check.full import check_export

    model, capture, plan, output = (tmp_path / name for name in ("model", "m.capture", "plan.json", "m.pt2"))
    session = open_session(shrink(transformers.CONFIG_MAPPING[family]()))
    trace_session(session, attention="whole")
    write_session(session, capture, {})
    session.twin.save_pretrained(model)
    write_weight_plan(make_weight_plan(model), plan)
    with zipfile.ZipFile(capture) as file:
        schemas = json.loads(file.read("capture.json"))["schemas"]
    assert {schema.split("::")[0] for schema in schemas} - {"aten"} == foreign

    argosy.run("export", "pt2", "--check", "off", "--model", model, "--capture", capture, "--plan", plan, "-o", output)
    assert ops(output) == {"aten"}
    checked = check_export(output, model, calls=("edge",))
    assert checked.ok, [row for row in checked.rows if not row.ok]


EXPERTS = """
schema transformers::grouped_mm_fallback(Tensor input, Tensor weight, Tensor offs) -> Tensor
graph (%x: f32[7, 22], %w: f32[3, 22, 15], %ends: i64[3]) {
  %y: f32[7, 15] = transformers.grouped_mm_fallback.default(input=%x, weight=%w, offs=%ends)
  return %y
}
"""


def test_experts_of_odd_sizes_and_rows_that_no_expert_has(argosy: Argosy, tmp_path: Path) -> None:
    (tmp_path / "x.ir").write_text(EXPERTS)
    archive = tmp_path / "x.pt2"
    argosy.run("opt", tmp_path / "x.ir", "--passes=decompose-structures", "-o", archive)
    torch.manual_seed(0)
    x, w, ends = torch.randn(7, 22), torch.randn(3, 22, 15), torch.tensor([2, 2, 5])
    expected = torch.cat([x[:2] @ w[0], x[2:5] @ w[2], torch.zeros(2, 15)])
    actual = torch.export.load(archive).module()(x, w, ends)
    torch.testing.assert_close(actual[0] if isinstance(actual, (tuple, list)) else actual, expected)
