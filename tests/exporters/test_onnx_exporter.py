"""`OnnxExporter` on live modules: names, shapes that vary, and the effect of each field of `OnnxConfig`."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

onnx = pytest.importorskip("onnx", reason="models are checked with it")
onnxruntime = pytest.importorskip("onnxruntime", reason="models are run with it")

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core  # noqa: E402

find_core()

from tiny_llama import llama  # noqa: E402
from transformers import ViTConfig, ViTForImageClassification  # noqa: E402

from argosy import AutoHfExporter, ExportError, OnnxConfig, OnnxExporter  # noqa: E402
from sweeps.model_state import ModelState  # noqa: E402
from argosy.exporters import decompose_for_generation, get_leaf_tensors  # noqa: E402
from argosy.observer.calls import copy_value  # noqa: E402

WIDTH = 32


class Small(torch.nn.Module):
    """Two layers over one weight, an input that is not used, and containers on both sides."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.first = torch.nn.Linear(WIDTH, WIDTH)
        self.second = torch.nn.Linear(WIDTH, WIDTH, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor, unused: torch.Tensor, pair: tuple[torch.Tensor, torch.Tensor]) -> dict[str, Any]:
        y = self.second(self.first(x))
        return {"y": y + pair[0], "parts": [pair[1] + 1.0, y * 2.0]}


def small_inputs(batch: int = 3) -> dict[str, Any]:
    generator = torch.Generator().manual_seed(batch)
    make = lambda *sizes: torch.randn(*sizes, generator=generator)  # noqa: E731
    return {"x": make(batch, WIDTH), "unused": make(2), "pair": (make(batch, WIDTH), make(5))}


def export(config: OnnxConfig | dict | None = None, model: torch.nn.Module | None = None) -> Any:
    return OnnxExporter().export(model or Small().eval(), small_inputs(), config)


def sizes(proto: Any) -> dict[str, list[int | str]]:
    return {each.name: [dim.dim_param or dim.dim_value for dim in each.type.tensor_type.shape.dim] for each in proto.graph.input}


def assert_right(program: Any, model: torch.nn.Module, inputs: dict[str, Any], tolerance: float = 1e-5) -> None:
    with torch.no_grad():
        expected = list(get_leaf_tensors(model(**copy_value(inputs))).values())
    actual = program(**copy_value(inputs))
    assert len(actual) == len(expected)
    for have, want in zip(actual, expected, strict=True):
        assert have.dtype == want.dtype and torch.allclose(have, want, atol=tolerance)


def test_names_and_order_are_those_of_the_sample_inputs() -> None:
    program = export({"dynamic": True})
    assert program.input_names == ["x", "unused", "pair.0", "pair.1"]
    assert program.output_names == ["y", "parts.0", "parts.1"]
    proto = program.model_proto
    assert [each.name for each in proto.graph.input] == program.input_names
    assert [each.name for each in proto.graph.output] == program.output_names
    onnx.checker.check_model(proto, full_check=True)


def test_a_call_takes_what_the_module_takes() -> None:
    model = Small().eval()
    program = export({"dynamic": True}, model)
    assert_right(program, model, small_inputs())
    assert_right(program, model, small_inputs(7))
    by_position = program(*small_inputs().values())
    assert torch.equal(by_position[0], program(**small_inputs())[0])
    with pytest.raises(ExportError, match="also takes unused"):
        program(x=small_inputs()["x"], pair=small_inputs()["pair"])
    with pytest.raises(ExportError, match="no input z"):
        program(**small_inputs(), z=torch.ones(1))


def test_names_of_inputs_and_outputs_differ() -> None:
    class Through(torch.nn.Module):
        def forward(self, state: torch.Tensor) -> dict[str, torch.Tensor]:
            return {"state": state + 1.0, "same": state}

    program = OnnxExporter().export(Through(), {"state": torch.ones(2, 3)})
    assert (program.input_names, program.output_names) == (["state"], ["output.state", "same"])
    changed, same = program(state=torch.ones(2, 3))
    assert changed.max() == 2.0 and same.max() == 1.0


def test_the_model_is_as_it_was() -> None:
    model = Small().eval()
    before = ModelState(model)
    inputs = small_inputs()
    program = OnnxExporter().export(model, inputs)
    program(**inputs)
    assert before.differences() == []


def test_weights_are_read_in_place() -> None:
    """What the weights are when a model is saved is what it has: nothing was copied before."""
    model = Small().eval()
    program = export(None, model)
    with torch.no_grad():
        model.first.weight.zero_()
        model.first.bias.fill_(1.0)
    y = program(**small_inputs())[2]
    assert torch.equal(y, torch.zeros_like(y))


# ---- fields of OnnxConfig ----


def test_dynamic() -> None:
    assert sizes(export({"dynamic": False}).model_proto)["x"] == [3, WIDTH]
    shapes = sizes(export({"dynamic": True}).model_proto)
    assert isinstance(shapes["x"][0], str) and shapes["x"][0] == shapes["pair.0"][0]
    assert shapes["x"][1] == WIDTH  # the weights fix it
    assert isinstance(shapes["unused"][0], str)


def test_dynamic_shapes_go_before_dynamic() -> None:
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = {"x": {0: batch}, "unused": None, "pair": ({0: batch}, None)}
    for dynamic in (False, True):
        found = sizes(export({"dynamic_shapes": shapes, "dynamic": dynamic}).model_proto)
        assert found == {"x": ["batch", WIDTH], "unused": [2], "pair.0": ["batch", WIDTH], "pair.1": [5]}


def test_output_path(tmp_path: Path) -> None:
    export({"output_path": tmp_path / "model.onnx"})
    onnx.checker.check_model(str(tmp_path / "model.onnx"), full_check=True)
    assert not list(Path.cwd().glob("*.onnx"))


@pytest.mark.parametrize("opset", [18, 20, 22, 23, 24])
def test_opset_version(opset: int) -> None:
    model = Small().eval()
    program = export({"opset_version": opset}, model)
    assert [each.version for each in program.model_proto.opset_import if each.domain == ""] == [opset]
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert_right(program, model, small_inputs())


def test_opset_versions_that_are_not_written() -> None:
    for opset in (17, 99):
        with pytest.raises(ExportError, match=f"opset_version is {opset}"):
            export({"opset_version": opset})


def test_external_data(tmp_path: Path) -> None:
    for external in (True, False):
        path = tmp_path / f"{external}.onnx"
        export({"external_data": external, "output_path": path})
        beside = path.with_name(path.name + ".data")
        assert beside.exists() == external
        # Two layers, one weight: it is there once.
        size = path.stat().st_size + (beside.stat().st_size if external else 0)
        assert WIDTH * WIDTH * 4 <= size < 2 * WIDTH * WIDTH * 4
        session = onnxruntime.InferenceSession(str(path))
        feed = {name: tensor.numpy() for name, tensor in get_leaf_tensors(small_inputs()).items()}
        assert session.run(None, feed)[0].shape == (3, WIDTH)


def test_optimize() -> None:
    class Repeats(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return (x + 1.0) * (x + 1.0)

    counts = {}
    for optimize in (False, True):
        program = OnnxExporter().export(Repeats(), {"x": torch.ones(2, 3)}, {"optimize": optimize})
        counts[optimize] = len(program.model_proto.graph.node)
        assert program(x=torch.ones(2, 3))[0].unique().tolist() == [4.0]
    assert counts[True] < counts[False]


def test_export_params(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    model = Small().eval()
    program = export({"export_params": False, "output_path": path}, model)
    names = [each.name for each in program.model_proto.graph.input]
    assert names[:4] == program.input_names and [name.split(".")[1] for name in names[4:]] == ["weight", "bias"]
    onnx.checker.check_model(str(path), full_check=True)
    assert path.stat().st_size < WIDTH * WIDTH * 4 and not path.with_name("model.onnx.data").exists()
    session = onnxruntime.InferenceSession(str(path))
    feed = {name: tensor.numpy() for name, tensor in get_leaf_tensors(small_inputs()).items()}
    feed |= {name: model.state_dict()[name].numpy() for name in names[4:]}
    assert torch.allclose(torch.from_numpy(session.run(None, feed)[0]), model(**small_inputs())["y"], atol=1e-5)
    assert_right(program, model, small_inputs())  # a call has the live weights


def test_keep_initializers_as_inputs() -> None:
    model = Small().eval()
    proto = export({"keep_initializers_as_inputs": True}, model).model_proto
    names = [each.name for each in proto.graph.input]
    assert [name.split(".")[1] for name in names[4:]] == ["weight", "bias"]
    assert {each.name for each in proto.graph.initializer} >= set(names[4:])
    session = onnxruntime.InferenceSession(proto.SerializeToString())
    feed = {name: tensor.numpy() for name, tensor in get_leaf_tensors(small_inputs()).items()}
    assert abs(session.run(["parts.1"], feed)[0]).max() > 0
    zeros = {name: model.state_dict()[name].numpy() * 0 for name in names[4:]}
    assert abs(session.run(["parts.1"], feed | zeros)[0]).max() == 0


def test_strict() -> None:
    """Strict traces follow the bytecode, which a generator's state does not survive."""

    class Counting(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + float(len(os.environ) > 0) if not torch.compiler.is_dynamo_compiling() else x + 2.0

    for strict, expected in ((False, 2.0), (True, 3.0)):
        program = OnnxExporter().export(Counting(), {"x": torch.ones(2)}, {"strict": strict})
        assert program(x=torch.ones(2))[0].unique().tolist() == [expected]


class Pairs(torch.nn.Module):
    """Its code fits even sizes only, which a trace finds out."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 2) + 1.0


def test_deferred_assertions_are_dropped_with_a_note() -> None:
    dims = {"x": {0: torch.export.Dim("n", min=2, max=64)}}
    with pytest.raises(Exception, match="[Cc]onstraint"):
        OnnxExporter().export(Pairs(), {"x": torch.ones(8)}, {"dynamic_shapes": dims})
    config = {"dynamic_shapes": dims, "prefer_deferred_runtime_asserts_over_guards": True}
    program = OnnxExporter().export(Pairs(), {"x": torch.ones(8)}, config)
    assert any("assertion" in note for note in program.notes), program.notes
    assert program(x=torch.ones(10))[0].shape == (5, 2)


def test_save_goes_before_the_configuration(tmp_path: Path) -> None:
    program = export({"external_data": True})
    program.save(tmp_path / "one.onnx", external_data=False)
    program.save(tmp_path / "bare.onnx", include_initializers=False)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["bare.onnx", "one.onnx"]
    program.save(tmp_path / "one.onnx")
    assert (tmp_path / "one.onnx.data").exists()
    onnx.checker.check_model(str(tmp_path / "one.onnx"), full_check=True)


def test_auto_exporter() -> None:
    assert isinstance(AutoHfExporter.from_config({"export_format": "onnx"}), OnnxExporter)


def test_an_op_without_translation_is_named() -> None:
    class Odd(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.linalg.eigvalsh(x) + torch.linalg.slogdet(x)[1]

    with pytest.raises(ExportError) as raised:
        OnnxExporter().export(Odd(), {"x": torch.eye(3)})
    assert raised.value.code == "unsupported-op" and "linalg" in str(raised.value)
    assert "test_onnx_exporter.py" in str(raised.value.location)
    assert "slogdet" in raised.value.details and "eigvalsh" in raised.value.details  # all of them in one run


# ---- models ----


def prompt(batch: int = 2, length: int = 4) -> dict[str, torch.Tensor]:
    ids = torch.arange(1, batch * length + 1).reshape(batch, length)
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


def test_llama(tmp_path: Path) -> None:
    model = llama()
    program = OnnxExporter().export(model, prompt(), OnnxConfig(dynamic=True))
    assert_right(program, model, prompt())
    assert_right(program, model, prompt(3, 7))
    program.save(tmp_path / "model.onnx")
    session = onnxruntime.InferenceSession(str(tmp_path / "model.onnx"))
    logits = session.run(["logits"], {name: tensor.numpy() for name, tensor in prompt(1, 5).items()})[0]
    assert torch.allclose(torch.from_numpy(logits), model(**prompt(1, 5)).logits, atol=1e-5)


def test_export_for_generation() -> None:
    model = llama()
    programs = OnnxExporter().export_for_generation(model, prompt(), OnnxConfig(dynamic=True))
    assert list(programs) == ["prefill", "decode"]
    for name, (module, inputs) in decompose_for_generation(model, prompt()).items():
        assert_right(programs[name], module, dict(inputs))
    assert "past_key_values.layers.0.keys" in programs["decode"].input_names
    assert "output.past_key_values.layers.0.keys" in programs["decode"].output_names


def test_picture_model() -> None:
    torch.manual_seed(0)
    sizes = {"image_size": 16, "patch_size": 8, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}  # fmt: skip
    model = ViTForImageClassification(ViTConfig(**sizes)).eval()
    program = OnnxExporter().export(model, {"pixel_values": torch.randn(2, 3, 16, 16)}, OnnxConfig(dynamic=True))
    assert_right(program, model, {"pixel_values": torch.randn(5, 3, 16, 16)})


def twin(model_type: str, **changes: Any) -> torch.nn.Module:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import build, shrink

    config = shrink(CONFIG_MAPPING[model_type]())
    for name, value in changes.items():
        setattr(config, name, value)
    return build(config).eval()


@pytest.mark.parametrize("model_type", ["mistral", "gemma3_text"])
def test_caches_with_windows(model_type: str) -> None:
    model = twin(model_type, sliding_window=32)
    programs = OnnxExporter().export_for_generation(model, prompt(), OnnxConfig(dynamic=True))
    for length in (4, 40):  # the sample's, and one beyond the window
        for name, (module, inputs) in decompose_for_generation(model, prompt(3, length)).items():
            assert_right(programs[name], module, dict(inputs))


def test_a_cache_with_windows_of_the_callers_own() -> None:
    model = twin("mistral", sliding_window=32)
    with torch.no_grad():
        cache = model(**prompt()).past_key_values
    step = {"input_ids": torch.tensor([[3], [5]]), "attention_mask": torch.ones(2, 5, dtype=torch.long), "past_key_values": cache}
    program = OnnxExporter().export(model, step, OnnxConfig(dynamic=True))
    assert_right(program, model, step)
    assert any("past_key_values_layers_0_keys_dim_2" in note and "<=" in note for note in program.notes), program.notes


def test_states_that_are_changed_in_place_and_returned() -> None:
    model = twin("mamba")
    programs = OnnxExporter().export_for_generation(model, prompt(), OnnxConfig(dynamic=True))
    for name, (module, inputs) in decompose_for_generation(model, prompt()).items():
        onnx.checker.check_model(programs[name].model_proto, full_check=True)
        assert_right(programs[name], module, dict(inputs))


def test_a_static_cache() -> None:
    from transformers import StaticCache

    model = llama()
    with torch.no_grad():
        cache = model(**prompt(), past_key_values=StaticCache(model.config, max_cache_len=9)).past_key_values
    step = {"input_ids": torch.tensor([[3], [5]]), "position_ids": torch.tensor([[4], [4]]), "past_key_values": cache}
    before = [layer.keys.clone() for layer in cache.layers]
    program = OnnxExporter().export(model, step)
    assert all(torch.equal(layer.keys, keys) for layer, keys in zip(cache.layers, before, strict=True))
    onnx.checker.check_model(program.model_proto, full_check=True)
    assert_right(program, model, step)


# ---- messages, and settings that go back ----


def test_attentions_are_returned_and_the_configuration_is_as_it_was() -> None:
    model = llama()
    with pytest.raises(ExportError, match="output_attentions=True") as raised:
        OnnxExporter().export(model, {**prompt(), "output_attentions": True})
    assert 'set_attn_implementation("eager")' in str(raised.value)
    assert model.config.output_attentions is False
    model.set_attn_implementation("eager")
    program = OnnxExporter().export(model, {**prompt(), "output_attentions": True})
    assert [name for name in program.output_names if name.startswith("attentions")] == ["attentions.0", "attentions.1"]
    assert model.config.output_attentions is False


def test_an_error_says_its_hint() -> None:
    error = ExportError("what", code="invalid-input", location="model.layer (Layer)", hint="what to do")
    assert str(error) == "what\n  from model.layer (Layer)\n  hint: what to do"
    assert error.message == "what"


def test_a_model_in_training_mode_is_told_so() -> None:
    class Dropping(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.nn.functional.dropout(x, 0.5, self.training)

    with pytest.raises(ExportError, match=r"model\.eval\(\)"):
        OnnxExporter().export(Dropping().train(), {"x": torch.ones(4)})


def test_a_model_that_generates_nothing_is_told_so() -> None:
    with pytest.raises(ExportError, match="Small generates nothing"):
        OnnxExporter().export_for_generation(Small(), small_inputs())


# ---- what a sample says of axes ----


def test_a_sample_of_one_row_lets_the_batch_vary() -> None:
    model = llama()
    programs = OnnxExporter().export_for_generation(model, prompt(1, 5), OnnxConfig(dynamic=True))
    for name, (module, inputs) in decompose_for_generation(model, prompt(3, 7)).items():
        assert_right(programs[name], module, dict(inputs))


def test_lengths_that_go_together_have_one_name() -> None:
    model = llama()
    with torch.no_grad():
        cache = model(**prompt(2, 5)).past_key_values
    step = {"input_ids": torch.ones(2, 3, dtype=torch.long), "attention_mask": torch.ones(2, 8, dtype=torch.long), "past_key_values": cache}
    program = OnnxExporter().export(model, step, OnnxConfig(dynamic=True))
    found = sizes(program.model_proto)
    past = "past_key_values_layers_0_keys_dim_2"
    assert found["input_ids"] == ["input_ids_dim_0", "input_ids_dim_1"]
    assert found["attention_mask"][0] == "input_ids_dim_0"
    assert sorted(found["attention_mask"][1].split(" + ")) == ["input_ids_dim_1", past]
    caches = [dims for name, dims in found.items() if name.startswith("past")]
    assert len(caches) == 4 and all(dims[0] == "input_ids_dim_0" and dims[2] == past for dims in caches)
    assert not program.notes
    longer = dict(step, attention_mask=torch.ones(2, 9, dtype=torch.long))
    found = sizes(OnnxExporter().export(model, longer, OnnxConfig(dynamic=True)).model_proto)
    assert found["attention_mask"][1] == "attention_mask_dim_1", "a mask that is longer than the text has a length of its own"


def test_sides_of_a_square_are_two() -> None:
    class Sides(torch.nn.Module):
        def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
            height, width = pixel_values.shape[-2:]
            return pixel_values.mean(-1) if height <= width else pixel_values.mean(-2)

    program = OnnxExporter().export(Sides(), {"pixel_values": torch.rand(2, 3, 8, 8)}, OnnxConfig(dynamic=True))
    dims = sizes(program.model_proto)["pixel_values"]
    assert len(set(dims[2:])) == 2
    assert any("<=" in note for note in program.notes), program.notes


class Patches(torch.nn.Module):
    """Pictures as patches, with a position for each: of one size, or of any."""

    def __init__(self, any_size: bool) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, 4, 4, stride=4)
        self.positions = torch.nn.Parameter(torch.rand(1, 4, 4, 4))
        self.any_size = any_size

    def forward(self, pixel_values: torch.Tensor) -> torch.Tensor:
        patches, positions = self.patches(pixel_values), self.positions
        self.last = patches
        if self.any_size:
            positions = torch.nn.functional.interpolate(positions, patches.shape[-2:], mode="bilinear")
        return patches.flatten(2) + positions.flatten(2)


@pytest.mark.parametrize("any_size", [True, False])
def test_pictures_vary_where_the_model_takes_others(any_size: bool) -> None:
    model, inputs = Patches(any_size).eval(), {"pixel_values": torch.rand(2, 3, 16, 16)}
    program = OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True))
    dims = sizes(program.model_proto)["pixel_values"]
    assert dims[:2] == ["pixel_values_dim_0", 3]
    assert dims[2:] == (["pixel_values_dim_2", "pixel_values_dim_3"] if any_size else [16, 16])
    assert any("are those of the sample" in note for note in program.notes) != any_size, program.notes
    assert not hasattr(model, "last"), "what a run without values left behind"
    side = 24 if any_size else 16
    assert_right(program, model, {"pixel_values": torch.rand(3, 3, side, side)})


def test_an_observer_stands_for_inputs() -> None:
    from argosy import DynamoConfig, DynamoExporter, InputObserver

    model = llama()
    observer = InputObserver()
    for inputs in (prompt(), prompt(3, 7)):
        with observer(model):
            model.generate(**inputs, max_new_tokens=3, do_sample=False)
    shapes = observer.infer_dynamic_shapes()  # has use_cache, which is no input of a graph
    for config in (DynamoConfig(dynamic=True), DynamoConfig(dynamic_shapes=shapes)):
        given = observer if config.dynamic else observer.infer_arguments()
        assert all(row["ok"] for row in observer.check_discrepancies(DynamoExporter().export(model, given, config)))
    program = OnnxExporter().export(model, observer, OnnxConfig(dynamic=True))
    for call in observer.calls[1:3]:
        assert_right(program, model, {name: value for name, value in call.arguments.items() if name != "logits_to_keep"})


def test_values_inside_a_model() -> None:
    model = llama()
    program = OnnxExporter().export(model, prompt())
    logits = program(**prompt())[0]
    node = next(node for node in program.model_proto.graph.node if program.output_names[0] in node.output)
    inside, again = program.compute_values([node.input[0], program.output_names[0]], kwargs=prompt())
    assert torch.equal(again, logits) and inside.numel() == logits.numel()
    torch.testing.assert_close(program.call_reference(**prompt())[0], logits, rtol=0, atol=1e-4)
    with pytest.raises(ExportError, match="no value nothing"):
        program.compute_values(["nothing"], kwargs=prompt())
