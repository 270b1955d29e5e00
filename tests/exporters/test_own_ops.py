"""Ops of the user's own, registered with torch.library: composite ones are taken apart, others are named, with what to do."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

from argosy import ExportError  # noqa: E402
from argosy.exporters import (  # noqa: E402
    DynamoConfig,
    DynamoExporter,
    ExecutorchConfig,
    ExecutorchExporter,
    OnnxConfig,
    OnnxExporter,
    register_patch,
)
from argosy.patching import _PATCHES  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def library() -> Iterator[None]:
    own = torch.library.Library("argosy_tests", "DEF")
    own.define("gate(Tensor x, float scale=2.0) -> Tensor")
    own.impl("gate", lambda x, scale=2.0: torch.nn.functional.silu(x) * scale, "CompositeImplicitAutograd")
    own.define("both(Tensor x) -> Tensor")
    own.impl("both", lambda x: torch.ops.argosy_tests.gate(x.flatten(1)) + 1, "CompositeImplicitAutograd")
    own.define("closed(Tensor x) -> Tensor")
    own.impl("closed", lambda x: x * 3, "CompositeExplicitAutograd")
    own.impl("closed", torch.empty_like, "Meta")
    yield
    own._destroy()


class Composite(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.argosy_tests.both(x) - torch.ops.argosy_tests.gate(x.flatten(1), 0.5)


def triple(x: torch.Tensor) -> torch.Tensor:
    return torch.ops.argosy_tests.closed(x)


class Inner(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return triple(x)


class Closed(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


def test_composite_ops_are_taken_apart_in_programs() -> None:
    program = DynamoExporter().export(Composite(), {"x": torch.rand(2, 3, 4)}, DynamoConfig(dynamic=True, check=True))
    ops = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert "aten.silu.default" in ops and not any("argosy_tests" in op for op in ops)
    x = torch.rand(5, 2, 4)
    torch.testing.assert_close(program.module()(x=x), Composite()(x))


@pytest.mark.parametrize(
    ("exporter", "config"),
    [(OnnxExporter, OnnxConfig(dynamic=True, check=True)), (ExecutorchExporter, ExecutorchConfig(dynamic=True, check=True))],
    ids=["onnx", "executorch"],
)
def test_composite_ops_are_taken_apart_for_engines(exporter: type, config: OnnxConfig) -> None:
    x = torch.rand(2, 3, 4)
    program = exporter().export(Composite(), {"x": x}, config)
    torch.testing.assert_close(torch.as_tensor(program(x=x)[0]), Composite()(x), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize(("exporter", "engine"), [(OnnxExporter, "ONNX"), (ExecutorchExporter, "ExecuTorch")])
def test_an_op_of_ones_own_is_named_with_its_place_and_a_way_out(exporter: type, engine: str) -> None:
    with pytest.raises(ExportError) as raised:
        exporter().export(Closed(), {"x": torch.rand(2, 3)})
    error = raised.value
    assert error.code == "unsupported-op" and "report" not in str(error)
    assert error.message.startswith("argosy_tests.closed.default is an op of your own") and error.message.endswith(f"for {engine}")
    line = Inner.forward.__code__.co_firstlineno + 1
    assert error.location == f"inner (Inner) test_own_ops.py:{line}"
    assert "CompositeImplicitAutograd" in error.hint and "register_patch" in error.hint


def test_a_patch_is_such_a_way_out() -> None:
    known = list(_PATCHES["dynamo"])
    register_patch("dynamo", f"{__name__}.triple")(lambda original: lambda x: x * 3)
    try:
        program = OnnxExporter().export(Closed(), {"x": torch.rand(2, 3)}, OnnxConfig(check=True))
    finally:
        _PATCHES["dynamo"] = known
    assert program.model_proto.graph.node


def test_programs_keep_an_op_of_ones_own() -> None:
    """A program of torch runs where the op is registered."""
    x = torch.rand(2, 3)
    program = DynamoExporter().export(Closed(), {"x": x})
    torch.testing.assert_close(program.module()(x=x), x * 3 + 1)
