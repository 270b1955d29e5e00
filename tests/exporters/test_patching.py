"""Registries of patches and fixes."""

from __future__ import annotations

import contextlib
import logging
import threading

import pytest
import torch

from argosy import DynamoExporter, ExportError
from argosy.patching import (
    _FX_NODE_FIXES,
    _FX_PROGRAM_FIXES,
    _MODEL_PATCHES,
    _PATCHES,
    apply_fx_node_fixes,
    apply_fx_program_fixes,
    apply_patches,
    register_fx_node_fix,
    register_fx_program_fix,
    register_model_patch,
    register_patch,
    registered_patches,
    versions_match,
)


class Target:
    value = 1

    def method(self):
        return "method"

    @staticmethod
    def static():
        return "static"

    @classmethod
    def of_class(cls):
        return cls.__name__


class Child(Target):
    pass


@pytest.fixture
def backend():
    yield "test-backend"
    for registry in (_PATCHES, _FX_NODE_FIXES, _FX_PROGRAM_FIXES):
        registry.pop("test-backend", None)


HERE = f"{__name__}."


def test_patches_are_undone_also_after_an_exception(backend):
    before = {name: vars(Target)[name] for name in ("method", "static", "of_class", "value")}

    @register_patch(backend, HERE + "Target.method", HERE + "Target.static", HERE + "Target.of_class", reason="test")
    def factory(original):
        return lambda *args: f"patched {original(*args)}"

    register_patch(backend, HERE + "Target.value")(lambda original: original + 1)
    register_patch(backend, "torch.nn.functional.relu")(lambda original: lambda x: original(x) + 1)
    relu = torch.nn.functional.relu
    with pytest.raises(KeyError), apply_patches(backend) as applied:
        assert len(applied) == 5 and applied[0].reason == "test"
        assert Target().method() == "patched method" and Target.static() == "patched static"
        assert Target.of_class() == "patched Target" and Child.of_class() == "patched Child" and Target.value == 2
        assert torch.nn.functional.relu(torch.tensor(-1.0)) == 1
        raise KeyError
    assert {name: vars(Target)[name] for name in before} == before
    assert torch.nn.functional.relu is relu


def test_patch_of_an_inherited_method_leaves_no_trace(backend):
    register_patch(backend, HERE + "Child.method")(lambda original: lambda self: "child")
    with apply_patches(backend):
        assert Child().method() == "child" and Target().method() == "method"
    assert "method" not in vars(Child)


def test_failing_factory_undoes_the_others(backend):
    register_patch(backend, HERE + "Target.method")(lambda original: lambda self: "patched")
    register_patch(backend, HERE + "Target.value")(lambda original: 1 / 0)
    with pytest.raises(ZeroDivisionError), apply_patches(backend):
        pass
    assert Target().method() == "method"


def test_a_model_is_changed_and_put_back(backend):
    @register_model_patch(backend, reason="test")
    @contextlib.contextmanager
    def renamed(model):
        model.name = "changed"
        try:
            yield
        finally:
            del model.name

    model = torch.nn.Identity()
    with apply_patches(backend):
        assert not hasattr(model, "name")
    with pytest.raises(KeyError), apply_patches(backend, model):
        assert model.name == "changed"
        raise KeyError
    assert not hasattr(model, "name")
    _MODEL_PATCHES.pop(backend)


def test_unknown_paths_are_skipped(backend, caplog):
    paths = (
        "transformers.models.no_such.modeling_no_such.Model.forward",
        "no_such_package.thing",
        HERE + "Target.none",
    )
    register_patch(backend, *paths)(lambda original: None)
    with caplog.at_level(logging.DEBUG, "argosy.patching"), apply_patches(backend) as applied:
        assert applied == ()
    for path in paths:
        assert any(path in record.getMessage() for record in caplog.records), path
    with pytest.raises(ExportError, match="no dotted path"):
        register_patch(backend)


def test_versions_of_patches(backend):
    register_patch(backend, HERE + "Target.value", versions="torch<1")(lambda original: 2)
    register_patch(backend, HERE + "Target.method", versions="torch>=2; transformers>=4.50")(
        lambda original: lambda s: "new"
    )
    with apply_patches(backend) as applied:
        assert [patch.path for patch in applied] == [HERE + "Target.method"] and Target.value == 1
    assert len(registered_patches(backend)) == 2
    assert not versions_match("no-such-package>=1") and versions_match("")
    # Within its versions a path that does not exist is a mistake.
    register_patch(backend, HERE + "Target.gone", versions="torch>=2")(lambda original: None)
    with pytest.raises(ExportError, match="has no 'gone'"), apply_patches(backend):
        pass
    assert Target().method() == "method"


def test_fixes(backend):
    class Module(torch.nn.Module):
        def forward(self, x):
            return torch.ops.aten.alias(x + 1) * 2

    program = torch.export.export(Module(), (torch.ones(2),))
    seen = []

    @register_fx_node_fix(backend)
    def drop_alias(module, node):
        if node.target is not torch.ops.aten.alias.default:
            return False
        node.replace_all_uses_with(node.args[0])
        return True

    @register_fx_node_fix(backend)
    def count(module, node):
        seen.append(str(node.target))
        return False

    register_fx_program_fix(backend)(lambda exported: seen.append(type(exported).__name__))
    apply_fx_node_fixes(backend, program.graph_module)
    apply_fx_program_fixes(backend, program)
    assert seen == ["aten.add.Tensor", "aten.mul.Tensor", "ExportedProgram"]
    assert not [node for node in program.graph.nodes if node.target is torch.ops.aten.alias.default]
    assert torch.equal(program.module()(torch.ones(2)), torch.full((2,), 4.0))


def test_dynamo_exporter_applies_patches():
    undo = registered_patches("dynamo")
    register_patch("dynamo", HERE + "Target.method")(lambda original: lambda self: "patched")
    seen = []

    class Module(torch.nn.Module):
        def forward(self, x):
            seen.append(Target().method())
            return x + 1

    try:
        DynamoExporter().export(Module(), {"x": torch.zeros(2)})
    finally:
        _PATCHES["dynamo"] = list(undo)
    assert seen and set(seen) == {"patched"} and Target().method() == "method"


class Interrupted(torch.nn.Module):
    def __init__(self, error: type[BaseException] | None) -> None:
        super().__init__()
        self.error = error

    def forward(self, x):
        assert Target().method() == "patched"
        if self.error is not None:
            raise self.error("in the middle")
        return x + 1


@pytest.fixture
def patched_method():
    known = registered_patches("dynamo")
    register_patch("dynamo", HERE + "Target.method")(lambda original: lambda self: "patched")
    yield
    _PATCHES["dynamo"] = list(known)


@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_patches_are_undone_after_success_failure_and_an_interrupt(patched_method, error):
    before = vars(Target)["method"]
    with pytest.raises(error, match="in the middle") if error else contextlib.nullcontext():
        DynamoExporter().export(Interrupted(error), {"x": torch.zeros(2)})
    assert vars(Target)["method"] is before


def test_threads_do_not_see_each_other_s_patches(backend):
    """A block waits until that of another thread is left; within one thread blocks may nest."""
    register_patch(backend, HERE + "Target.value")(lambda original: original + 1)
    entered, leave = threading.Event(), threading.Event()
    seen = []

    def hold():
        with apply_patches(backend), apply_patches("none"):
            entered.set()
            seen.append(("first", Target.value))
            leave.wait(10)

    def wait():
        with apply_patches(backend):
            seen.append(("second", Target.value))

    first, second = threading.Thread(target=hold), threading.Thread(target=wait)
    first.start()
    assert entered.wait(10)
    second.start()
    second.join(0.2)
    assert second.is_alive() and seen == [("first", 2)]
    leave.set()
    first.join(10)
    second.join(10)
    assert seen == [("first", 2), ("second", 2)] and Target.value == 1


def test_exports_in_two_threads_are_as_those_of_one(patched_method):
    before, programs = vars(Target)["method"], {}

    def export(size):
        programs[size] = DynamoExporter().export(Interrupted(None), {"x": torch.zeros(size)})

    threads = [threading.Thread(target=export, args=(size,)) for size in (2, 3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for size in (2, 3):
        torch.testing.assert_close(programs[size].module()(x=torch.zeros(size)), torch.ones(size))
    assert vars(Target)["method"] is before
