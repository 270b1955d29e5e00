"""Ops of the user's own, registered with torch.library: composite ones are taken apart, and those that have a rule; others are
named, with what to do."""

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
from argosy.op_rules import _RULES, register_decomposition, register_onnx_op, registered_rules  # noqa: E402
from argosy.patching import _PATCHES, registered_patches  # noqa: E402


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
    own.define("kinds(Tensor[] parts, Tensor? extra, int[] sizes, bool flag, float scale, str mode, ScalarType dtype, float[]? none=None) -> (Tensor, Tensor)")
    own.impl("kinds", lambda parts, *rest: (parts[0] + 1, parts[0] > 0), "CompositeExplicitAutograd")
    own.impl("kinds", lambda parts, *rest: (torch.empty_like(parts[0]), torch.empty_like(parts[0], dtype=torch.bool)), "Meta")
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
    assert "register_decomposition" in error.hint and "register_patch" in error.hint


def test_a_patch_is_such_a_way_out() -> None:
    known = list(registered_patches("dynamo"))
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


@pytest.fixture
def rules() -> Iterator[None]:
    known = dict(_RULES)
    yield
    _RULES.clear()
    _RULES.update(known)


EXPORTS = [
    (DynamoExporter, DynamoConfig(dynamic=True, check=True)),
    (OnnxExporter, OnnxConfig(dynamic=True, check=True)),
    (ExecutorchExporter, ExecutorchConfig(dynamic=True, check=True)),
]


class Branches(torch.nn.Module):
    """Calls an op in a branch too, and has a state that it writes to."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.count.add_(1)
        closed = torch.ops.argosy_tests.closed(x)
        return torch.cond(closed.sum() > 0, lambda y: torch.ops.argosy_tests.closed(y), lambda y: y - 1, (closed,))


@pytest.mark.parametrize(("exporter", "config"), EXPORTS, ids=["pt2", "onnx", "executorch"])
def test_an_op_with_a_decomposition_is_written_with_it(rules: None, exporter: type, config: DynamoConfig) -> None:
    register_decomposition("argosy_tests::closed", reason="test")(lambda x: x * 3)
    program = exporter().export(Closed(), {"x": torch.rand(2, 3)}, config)
    x = torch.rand(5, 3)
    outputs = program.module()(x=x) if exporter is DynamoExporter else torch.as_tensor(program(x=x)[0])
    torch.testing.assert_close(outputs, x * 3 + 1)


def test_ops_in_branches_have_theirs_too(rules: None) -> None:
    register_decomposition("argosy_tests::closed.default")(lambda x: torch.ops.argosy_tests.gate(x, 2.0) * 0 + x * 3)
    program = DynamoExporter().export(Branches(), {"x": torch.rand(2, 3)}, DynamoConfig(dynamic=True))
    calls = [node for module in program.graph_module.modules() for node in getattr(getattr(module, "graph", None), "nodes", ())]
    assert not any("argosy_tests" in str(node.target) for node in calls)
    assert program.graph_signature.buffers_to_mutate
    torch.testing.assert_close(program.module()(x=torch.ones(4, 3)), torch.full((4, 3), 9.0))


def test_a_decomposition_that_fails_is_named(rules: None) -> None:
    register_decomposition("argosy_tests::closed")(lambda x: x.no_such_thing)
    with pytest.raises(ExportError) as raised:
        OnnxExporter().export(Closed(), {"x": torch.rand(2, 3)})
    assert raised.value.message.startswith("the decomposition of argosy_tests::closed fails: AttributeError: ")
    assert raised.value.location == f"{__name__}.test_a_decomposition_that_fails_is_named.<locals>.<lambda>"


def test_a_decomposition_with_other_results_is_found_by_the_check(rules: None) -> None:
    register_decomposition("argosy_tests::closed")(lambda x: x * 2)
    with pytest.raises(ExportError) as raised:
        OnnxExporter().export(Closed(), {"x": torch.rand(2, 3)}, OnnxConfig(check=True))
    assert raised.value.code == "wrong-results"


class Kinds(torch.nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        first, second = torch.ops.argosy_tests.kinds([x, y], None, [1, 2], True, 0.5, "near", torch.int64)
        return first.reshape(-1), second


def test_an_op_can_be_a_node_of_a_domain_of_ones_own(rules: None) -> None:
    onnx = pytest.importorskip("onnx")
    register_onnx_op("argosy_tests::kinds", domain="com.example", name="Kinds", version=3, reason="test")
    inputs = {"x": torch.rand(2, 3), "y": torch.rand(2, 3)}
    model = OnnxExporter().export(Kinds(), inputs, OnnxConfig(dynamic=True)).model_proto
    onnx.checker.check_model(model)
    assert {each.domain: each.version for each in model.opset_import} == {"": 22, "com.example": 3}
    [node] = [node for node in model.graph.node if node.domain]
    assert (node.op_type, list(node.input), len(node.output)) == ("Kinds", ["x", "y"], 2)
    values = {each.name: onnx.helper.get_attribute_value(each) for each in node.attribute}
    assert values == {"sizes": [1, 2], "flag": 1, "scale": 0.5, "mode": b"near", "dtype": onnx.TensorProto.INT64}
    assert [each.type.tensor_type.elem_type for each in model.graph.output] == [onnx.TensorProto.FLOAT, onnx.TensorProto.BOOL]
    with pytest.raises(ExportError, match="is an op of your own"):
        ExecutorchExporter().export(Kinds(), inputs)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"op": "aten::relu", "domain": "com.example"}, "it is no op of your own"),
        ({"op": "mine::op", "domain": "ai.onnx"}, "'ai.onnx' is no domain"),
        ({"op": "mine::op", "domain": ""}, "'' is no domain"),
        ({"op": "mine::op", "domain": "com.example", "name": "My.Op"}, "'My.Op' of version 1 is no op"),
        ({"op": "mine::op", "domain": "com.example", "version": 0}, "version 0 is no op"),
        ({"op": "mine.op", "domain": "com.example"}, "'mine.op' is no op"),
        ({"op": "mine::other", "domain": "com.known", "version": 2}, "mine::known wants 1"),
        ({"op": "mine::known", "domain": "com.elsewhere"}, "mine::known has a rule already, of com.known::known"),
    ],
)
def test_rejects_rules_that_no_file_can_have(rules: None, arguments: dict, message: str) -> None:
    register_onnx_op("mine::known", domain="com.known")
    register_onnx_op("mine::known", domain="com.known")  # the same again
    before = registered_rules()
    with pytest.raises(ExportError, match=message):
        register_onnx_op(**arguments)
    assert registered_rules() == before


def test_rejects_a_second_decomposition_from_elsewhere(rules: None) -> None:
    register_decomposition("mine::op")(rejects_a_rule)
    register_decomposition("mine::op")(rejects_a_rule)  # a module that is loaded anew
    with pytest.raises(ExportError, match=f"mine::op has a rule already, of {__name__}.rejects_a_rule"):
        register_decomposition("mine::op")(triple)
    register_decomposition("mine::op.other")(triple)


def rejects_a_rule(x: torch.Tensor) -> torch.Tensor:
    return x
