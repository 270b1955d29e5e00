"""`DynamoExporter` on live models: programs that are right and plain, and a model that is as it was, whatever happens."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from tiny_llama import TEXT, llama
from transformers import LlamaConfig, LlamaForCausalLM

import argosy
from argosy import ExportError
from sweeps.model_state import ModelState
from thorough import thorough
from argosy.exporters import (
    DynamoConfig,
    DynamoExporter,
    decompose_for_generation,
    get_leaf_tensors,
    prepare_for_export,
    register_additional_serialization_functions,
    register_patch,
    torch_export_patches,
)
from argosy.observer.calls import copy_value
from argosy.patching import _PATCHES, registered_patches

pytestmark = pytest.mark.skipif(
    transformers.__version__.startswith("4."), reason="the tested series is 5; `python tests/sweeps other-versions` tries older ones"
)


def mixtral(dtype: torch.dtype = torch.float32, intermediate_size: int = 32, experts: str | None = None) -> Any:
    torch.manual_seed(0)
    sizes = {**TEXT, "intermediate_size": intermediate_size, "num_key_value_heads": 1, "num_local_experts": 4}
    model = transformers.MixtralForCausalLM(transformers.MixtralConfig(**sizes)).eval().to(dtype)
    if experts is not None:
        model.set_experts_implementation(experts)
    return model


def prompt(batch: int = 2, length: int = 4) -> dict[str, torch.Tensor]:
    ids = torch.arange(1, batch * length + 1).reshape(batch, length)
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


def assert_same(program: torch.export.ExportedProgram, model: torch.nn.Module, inputs: dict, tolerance=1e-5) -> None:
    with torch.no_grad():
        expected = get_leaf_tensors(model(**copy_value(inputs)))
        actual = get_leaf_tensors(program.module()(**copy_value(inputs)))
    assert list(actual) == list(expected)
    for name, tensor in expected.items():
        assert torch.allclose(actual[name], tensor, atol=tolerance), name


def foreign_ops(program: torch.export.ExportedProgram) -> set[str]:
    """Ops that are not torch's own: neither ATen nor arithmetic on sizes."""
    targets = set()
    for module in program.graph_module.modules():
        for node in module.graph.nodes if isinstance(module, torch.fx.GraphModule) else ():
            if node.op == "call_function":
                targets.add(str(node.target))
    return {name for name in targets if not name.startswith(("aten.", "<built-in function", "<function sym_"))}


# ---- shapes and modes ----


def test_dim_ranges_win_over_dynamic() -> None:
    batch, sequence = torch.export.Dim("batch", min=1, max=4), torch.export.Dim("sequence", min=1, max=64)
    shapes = {"input_ids": {0: batch, 1: sequence}, "attention_mask": {0: batch, 1: sequence}}
    model = llama()
    for prefer in (False, True):
        config = DynamoConfig(dynamic=True, dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=prefer)
        program = DynamoExporter().export(model, prompt(), config)
        assert {(int(range_.lower), int(range_.upper)) for range_ in program.range_constraints.values()} == {
            (1, 4),
            (1, 64),
        }
        assert_same(program, model, prompt(3, 9))
        assert_same(program, model, prompt(1, 1) if prefer else prompt(1, 5))
        with pytest.raises(Exception, match="batch|size|input_ids"):
            program.module()(**prompt(5, 3))


def test_only_named_axes_vary() -> None:
    shapes = {"input_ids": {0: torch.export.Dim("batch")}, "attention_mask": {0: torch.export.Dim("batch")}}
    model = llama()
    program = DynamoExporter().export(model, prompt(), DynamoConfig(dynamic=True, dynamic_shapes=shapes))
    assert_same(program, model, prompt(3, 4))
    with pytest.raises(Exception, match="input_ids"):
        program.module()(**prompt(2, 5))


def test_strict() -> None:
    """The trace of bytecode follows caches that go in and come out, too."""
    model = llama()
    before = ModelState(model)
    programs = DynamoExporter().export_for_generation(model, prompt(), DynamoConfig(strict=True, dynamic=True))
    assert before.differences() == []
    for inputs in (prompt(), prompt(3, 7)):
        components = decompose_for_generation(model, inputs)
        for name, program in programs.items():
            assert_same(program, model, prepare_for_export(*components[name])[1])


def test_conditions_on_sizes_become_checks_if_asked_for() -> None:
    class Module(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x.reshape(-1, 4) if x.shape[0] % 4 == 0 else x.reshape(-1, 1)

    shapes = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
    inputs = {"x": torch.zeros(8)}
    with pytest.raises(Exception, match="n"):
        DynamoExporter().export(Module(), inputs, DynamoConfig(dynamic_shapes=shapes))
    config = DynamoConfig(dynamic_shapes=shapes, prefer_deferred_runtime_asserts_over_guards=True)
    program = DynamoExporter().export(Module(), inputs, config)
    assert program.module()(x=torch.zeros(16)).shape == (4, 4)
    checks = [node.args[1] for node in program.graph.nodes if "_assert_scalar" in str(node.target)]
    assert any("Mod(" in text for text in checks)
    with pytest.raises(RuntimeError):
        program.module()(x=torch.zeros(6))


def test_configs_by_component() -> None:
    model = llama()
    configs = {"prefill": DynamoConfig(dynamic=True), "decode": {"dynamic": False}}
    programs = DynamoExporter().export_for_generation(model, prompt(), configs)
    assert programs["prefill"].range_constraints and not programs["decode"].range_constraints
    with pytest.raises(ExportError, match="no configuration for decode, prefill") as caught:
        DynamoExporter().export_for_generation(model, prompt(), {"model": DynamoConfig()})
    assert "prefill, decode" in caught.value.hint


# ---- experts ----


@pytest.mark.parametrize(
    ("settings", "op"),
    [
        ({}, "aten._grouped_mm.default"),
        ({"experts": "eager", "intermediate_size": 30, "dtype": torch.bfloat16}, "aten._grouped_mm.default"),
        ({"experts": "batched_mm"}, "aten.bmm.default"),
    ],
    ids=["default", "one by one, odd sizes", "batched"],
)
def test_experts_are_plain_aten(settings: dict, op: str, tmp_path: Path) -> None:
    model = mixtral(**settings)
    before = ModelState(model)
    program = DynamoExporter().export(model, prompt(), DynamoConfig(dynamic=True))
    assert before.differences() == []
    assert foreign_ops(program) == set()
    assert op in {str(node.target) for node in program.graph.nodes}
    tolerance = 1e-5 if model.dtype == torch.float32 else 1e-2
    for inputs in (prompt(), prompt(3, 7)):
        assert_same(program, model, inputs, tolerance)
    torch.export.save(program, tmp_path / "experts.pt2")
    assert_same(torch.export.load(tmp_path / "experts.pt2"), model, prompt(3, 7), tolerance)


# ---- the model afterwards ----


class Hooked(LlamaForCausalLM):
    """Keeps things in attributes while it runs, as some models do."""

    calls = 0

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        outputs = super().forward(*args, **kwargs)
        self.last_logits = outputs.logits
        self.model.seen = outputs.logits.shape
        return outputs


def hooked() -> Hooked:
    torch.manual_seed(0)
    model = Hooked(LlamaConfig(**TEXT)).eval()
    model.model.layers[0].register_forward_hook(lambda module, args, output: None)
    model.model.layers[1].mlp.register_forward_pre_hook(lambda module, args: None)
    model.model.layers[1].own = [1, 2]
    model.register_buffer("extra", torch.ones(2))
    model.model.embed_tokens.weight.requires_grad_(False)
    return model


@pytest.mark.parametrize("kind", [llama, hooked, mixtral])
def test_nothing_of_the_model_changes(kind: Any) -> None:
    model = kind()
    decompose_for_generation(model, prompt())  # what models keep of a run of their own is theirs
    inputs = {**prompt(), "use_cache": True, "output_hidden_states": True}
    before, given = ModelState(model), copy_value(inputs)
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True))
    assert before.differences() == []
    assert list(inputs) == list(given) and all(torch.equal(inputs[name], given[name]) for name in prompt())
    places = {tensor.data_ptr() for tensor in model.parameters()}
    assert all(tensor.data_ptr() in places for tensor in program.parameters()), "weights are read in place"
    for name, tensor in get_leaf_tensors(model(**prompt())).items():
        assert type(tensor) is torch.Tensor, name


def failing(kind: str) -> Hooked:
    """A model of which a layer in the middle raises, or asks for a value that a trace has not."""

    class Failing(torch.nn.Module):
        def __init__(self, inner: torch.nn.Module) -> None:
            super().__init__()
            self.inner = inner

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.kept = x
            if kind == "raises":
                raise ZeroDivisionError("in the middle")
            return self.inner(x) if x.sum() > 0 else x

    model = hooked()
    model.model.layers[1].mlp = Failing(model.model.layers[1].mlp)
    return model


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("kind", ["raises", "depends on a value"])
def test_nothing_changes_when_an_export_fails(kind: str, strict: bool) -> None:
    model = failing(kind)
    undo = list(registered_patches("dynamo"))
    register_patch("dynamo", "torch.nn.functional.silu")(
        lambda original: lambda *args, **kwargs: original(*args, **kwargs)
    )
    before = ModelState(model)
    try:
        with pytest.raises(Exception) as caught:  # noqa: B017 - torch has a class for each of them
            DynamoExporter().export(model, {**prompt(), "use_cache": True}, DynamoConfig(dynamic=True, strict=strict))
    finally:
        _PATCHES["dynamo"] = undo
    assert "in the middle" in str(caught.value) or kind != "raises"
    assert before.differences() == []
    if kind == "raises":
        with pytest.raises(ExportError, match="generate failed: in the middle"):
            DynamoExporter().export_for_generation(model, prompt())
        assert before.differences() == []
    else:
        model(**prompt())  # it still runs, with its own patch-free code


def test_memory() -> None:
    """The command that measures, on a small model; its figures for 1.1 B parameters are a run by hand."""
    script = Path(__file__).parents[1] / "bench/live_memory.py"
    environment = {**os.environ, "PYTHONPATH": str(Path(argosy.__file__).parents[1])}
    command = [sys.executable, str(script), "--layers", "1", "--hidden", "1024", "--vocabulary", "20000"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads(done.stdout)
    assert figures["weights_shared"] and figures["weight_bytes"] > 150 << 20
    assert figures["peak_growth"] < 120 << 20, "a copy of the weights would be more"


def test_inputs_of_components_can_be_used_again() -> None:
    """A model writes into the cache that it is given; the sample stays as it was."""
    model = llama()
    _, inputs = decompose_for_generation(model, prompt())["decode"]
    first, second = model(**inputs), model(**inputs)
    assert torch.equal(first.logits, second.logits)
    for view in (dict(inputs), {**inputs}, dict(inputs.items())):
        model(**view)
    assert inputs["past_key_values"].get_seq_length() == inputs.get("past_key_values").get_seq_length() == 4
    assert list(inputs.values())[0] is inputs["input_ids"]


@pytest.mark.parametrize(("kind", "model_type"), [("onnx", "qwen2_5_vl"), thorough(("executorch", "qwen2_vl"))])
def test_encoders_of_packed_media(kind: str, model_type: str, tmp_path: Path) -> None:
    """At the sample's sizes, with other pictures and other numbers of them."""
    sys.path.append(str(Path(__file__).parents[1] / "ops"))
    from core import find_core

    find_core()
    from sweeps.live import OURS, run
    from sweeps.outcome import Report, make_twin

    report = Report(tmp_path / "report.json")
    twin, _ = make_twin(model_type, report)
    run(twin, report, OURS, kind)
    assert report.values["status"] == "ok", report.values
    assert report.values["components"]["image_encoder"]["calls"] == {"traced": True, "other": True, "edge": True}
    assert report.values["changed"] == []


def test_an_observer_and_torch_s_own_exporter(tmp_path: Path) -> None:
    """As published for the observer, with a twin in place of the model: one call of generate, then torch.onnx.export."""
    pytest.importorskip("onnxscript", reason="torch.onnx.export needs it")
    model = llama()
    observer = argosy.InputObserver()
    with register_additional_serialization_functions(patch_transformers=True), observer:
        ids = prompt(1, 6)["input_ids"]
        model.generate(input_ids=ids, attention_mask=torch.ones_like(ids), max_length=10, do_sample=True, temperature=1.0, top_k=50, top_p=0.95)
    filename = str(tmp_path / "model.onnx")
    with torch_export_patches(patch_transformers=True):
        torch.onnx.export(
            model,
            (),
            filename,
            kwargs=observer.infer_arguments(),
            dynamic_shapes=observer.infer_dynamic_shapes(set_batch_dimension_for=True),
        )
    rows = observer.check_discrepancies(filename, progress_bar=True)
    assert len(rows) == 3 and all(row["ok"] for row in rows), rows


def test_flags_that_say_nothing_are_no_arguments() -> None:
    class Model(torch.nn.Module):
        def forward(self, x: torch.Tensor, **kwargs: Any) -> torch.Tensor:
            return x + 1

    model, observer = Model(), argosy.InputObserver()
    with observer(model):
        model(torch.ones(2), return_dict=True, output_attentions=False, output_hidden_states=True)
    assert list(observer.infer_arguments()) == ["x", "output_hidden_states"]


# ---- what programs check when they are called ----


class Last(torch.nn.Module):
    """The last four; whole rows of them where it is ``packed``, whatever there is otherwise."""

    def __init__(self, packed: bool) -> None:
        super().__init__()
        self.packed = packed

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        last = x[:, -4:]
        return last.reshape(x.shape[0], 2, 2) if self.packed else last * 2


def test_a_program_takes_what_its_graph_is_right_for():
    program = DynamoExporter().export(Last(packed=False), {"x": torch.rand(2, 9)}, DynamoConfig(dynamic=True)).module()
    for size in (9, 6, 4, 3):
        x = torch.rand(3, size)
        torch.testing.assert_close(program(x=x), x[:, -4:] * 2)


def test_a_program_refuses_what_its_graph_is_wrong_for():
    program = DynamoExporter().export(Last(packed=True), {"x": torch.rand(2, 9)}, DynamoConfig(dynamic=True)).module()
    x = torch.rand(3, 4)
    torch.testing.assert_close(program(x=x), x.reshape(3, 2, 2))
    with pytest.raises((AssertionError, RuntimeError)):
        program(x=torch.rand(4, 3))  # as many numbers as three rows of four


class Padded(torch.nn.Module):
    """As many as there are, four at least."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        missing = torch.sym_max(x.shape[1] - 4, 0)
        weight = torch.ones(4)
        if missing > 0:
            weight = torch.nn.functional.pad(weight, (0, missing))
        return x * weight[: x.shape[1]]


def test_a_graph_that_pads_is_right_where_nothing_is_missing():
    program = DynamoExporter().export(Padded(), {"x": torch.rand(2, 9)}, DynamoConfig(dynamic=True)).module()
    for size in (9, 5, 4):
        x = torch.rand(3, size)
        torch.testing.assert_close(program(x=x), Padded()(x))


def test_a_window_is_no_smallest_length(tmp_path: Path):
    config = transformers.MistralConfig(**TEXT, num_key_value_heads=1, head_dim=8, sliding_window=6)
    model = transformers.MistralForCausalLM(config).eval()
    program = DynamoExporter().export(model, {"input_ids": torch.randint(1, 49, (2, 11))}, DynamoConfig(dynamic=True))
    torch.export.save(program, tmp_path / "model.pt2")
    for each in (program, torch.export.load(tmp_path / "model.pt2")):
        for size in (11, 7, 3):
            ids = torch.randint(1, 49, (1, size))
            with torch.no_grad():
                expected = get_leaf_tensors(model(input_ids=ids))
            actual = get_leaf_tensors(each.module()(input_ids=ids))
            assert {name: tensor.shape for name, tensor in actual.items()} == {name: tensor.shape for name, tensor in expected.items()}
            torch.testing.assert_close(actual["logits"], expected["logits"], atol=1e-4, rtol=1e-4)
