"""What exporters return is looked at before it is handed out."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

import argosy.exporters.exporter_onnx as exporter_onnx  # noqa: E402
from argosy import ExportError  # noqa: E402
from argosy.exporters import (  # noqa: E402
    DynamoConfig,
    DynamoExporter,
    ExecutorchConfig,
    ExecutorchExporter,
    OnnxConfig,
    OnnxExporter,
)

EXPORTERS = [(DynamoExporter, DynamoConfig), (OnnxExporter, OnnxConfig), (ExecutorchExporter, ExecutorchConfig)]


class Forgetful(torch.nn.Module):
    """Its answer depends on what no graph can know: how often it was called."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(4, 4)
        self.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        Forgetful.seen = getattr(Forgetful, "seen", 0) + 1
        return self.linear(x) * Forgetful.seen


@pytest.mark.parametrize(("exporter", "config"), EXPORTERS)
def test_a_program_is_run_beside_the_model(exporter: type, config: type) -> None:
    inputs = {"x": torch.ones(2, 4)}
    with pytest.raises(ExportError, match="does not give what the model gives, on the sample inputs") as caught:
        exporter().export(Forgetful(), inputs, config(check=True))
    assert caught.value.code == "wrong-results"
    exporter().export(Forgetful(), inputs, config())


@pytest.mark.parametrize(("exporter", "config"), EXPORTERS)
def test_with_another_row_where_the_batch_varies(exporter: type, config: type) -> None:
    rows = []

    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            rows.append(x.shape[0])
            return x * 2

    exporter().export(Model(), {"x": torch.ones(2, 4)}, config(dynamic=True, check=True))
    assert [each for each in rows if type(each) is int] == [2, 3]


def test_a_model_that_is_no_onnx_is_not_handed_out(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnx", reason="its checker tells")
    monkeypatch.setattr(exporter_onnx.ONNXProgram, "without_weights", lambda self: b"\x08\x0a")
    with pytest.raises(ExportError, match="no valid ONNX"):
        OnnxExporter().export(torch.nn.ReLU(), {"input": torch.ones(2)})
