"""Configurations, registries and utilities of the public exporters, on real tiny models."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
import warnings
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from tiny_llama import TEXT, llama
from transformers import (
    AutoModelForCausalLM,
    BambaConfig,
    BertConfig,
    BertModel,
    CLIPVisionConfig,
    Gemma2Config,
    Gemma2ForCausalLM,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    T5Config,
    T5ForConditionalGeneration,
)

import argosy
from argosy import ExportError
from argosy.exporters import (
    AutoExportConfig,
    AutoHfExporter,
    DynamoConfig,
    DynamoExporter,
    ExecutorchConfig,
    ExportFormat,
    HfExporter,
    OnnxConfig,
    VersionDriftWarning,
    decompose_for_generation,
    decompose_multimodal,
    decompose_prefill_decode,
    get_leaf_tensors,
    is_multimodal,
    prepare_for_export,
    register_export_config,
    register_export_input_preparer,
    register_exporter,
)
from argosy.exporters import auto, prepare, pytrees, versions
from argosy.exporters.configs import ExportConfigMixin
from argosy.observer.calls import copy_value

def llava() -> LlavaForConditionalGeneration:
    torch.manual_seed(0)
    vision = CLIPVisionConfig(
        hidden_size=16, intermediate_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=8, patch_size=4
    )
    config = LlavaConfig(vision_config=vision, text_config=LlamaConfig(**TEXT), image_token_index=49)
    return LlavaForConditionalGeneration(config).eval()


def llava_inputs() -> dict[str, torch.Tensor]:
    ids = torch.tensor([[1, 2, 49, 49, 49, 49, 5]])
    return {
        "input_ids": ids,
        "attention_mask": torch.ones_like(ids),
        "pixel_values": torch.linspace(-1, 1, 192).reshape(1, 3, 8, 8),
    }


def prompt() -> dict[str, torch.Tensor]:
    ids = torch.tensor([[0, 2, 3, 4], [5, 6, 7, 8]])
    return {"input_ids": ids, "attention_mask": torch.tensor([[0, 1, 1, 1], [1, 1, 1, 1]])}


# ---- configurations ----


def test_names_are_public():
    for name in argosy.exporters.__all__:
        assert getattr(argosy, name) is getattr(argosy.exporters, name), name
    from argosy.exporters.utils import decompose_multimodal as under_the_known_name

    assert under_the_known_name is decompose_multimodal
    assert argosy.InputObserver is argosy.observer.InputObserver


def test_importing_names_of_configurations_imports_no_torch():
    code = "import sys, argosy, argosy.patching, argosy.observer; argosy.OnnxConfig(); print('torch' in sys.modules)"
    path = Path(argosy.__file__).parents[1]
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=path, check=True)
    assert done.stdout.strip() == "False"


@pytest.mark.parametrize("kind", [DynamoConfig, OnnxConfig, ExecutorchConfig])
def test_dicts_and_back(kind):
    config = kind(dynamic=True, dynamic_shapes={"input_ids": {0: torch.export.Dim.AUTO}})
    values = config.to_dict()
    assert kind.from_dict(values) == config and dict(config) == values
    assert AutoExportConfig.from_dict(values) == config
    plain = json.loads(json.dumps(kind().to_dict()))
    assert AutoExportConfig.from_dict(plain) == kind()
    values["dynamic_shapes"]["input_ids"][0] = None
    assert config.dynamic_shapes["input_ids"][0] is torch.export.Dim.AUTO


def test_unknown_keys_list_the_known_ones():
    with pytest.raises(ExportError, match="OnnxConfig has no 'opset'") as caught:
        OnnxConfig.from_dict({"opset": 21})
    assert "opset_version" in caught.value.hint and caught.value.code == "invalid-input"
    with pytest.raises(ExportError, match="has no export_format"):
        AutoExportConfig.from_dict({"dynamic": True})
    with pytest.raises(ExportError, match="no configuration for 'tensorrt'"):
        AutoExportConfig.from_dict({"export_format": "tensorrt"})


@pytest.mark.parametrize(
    "values",
    [
        {"dynamic": "yes"},
        {"opset_version": "21"},
        {"opset_version": True},
        {"output_path": 3},
        {"export_format": "dynamo"},
    ],
)
def test_wrong_values_are_refused(values):
    with pytest.raises(ExportError) as caught:
        OnnxConfig(**values)
    assert caught.value.hint


def test_formats_are_their_names():
    assert OnnxConfig().export_format is ExportFormat.ONNX == "onnx"
    assert OnnxConfig(export_format="onnx").export_format is ExportFormat.ONNX


# ---- exporters ----


@pytest.fixture
def own_format():
    """A format of a user: its exporter keeps what it was called with."""

    @register_export_config("own")
    @dataclass
    class OwnConfig(ExportConfigMixin):
        export_format: str = "own"
        level: int = 1

    @register_exporter("own")
    class OwnExporter(HfExporter):
        config_class = OwnConfig

        def export(self, model, sample_inputs, config=None):
            return type(model).__name__, list(sample_inputs), OwnConfig.accept(config).level

    yield OwnConfig
    del auto.AUTO_EXPORTER_MAPPING["own"], auto.AUTO_EXPORT_CONFIG_MAPPING["own"]


def test_registered_exporter(own_format):
    exporter = AutoHfExporter.from_config({"export_format": "own", "level": 3})
    assert exporter.export(torch.nn.Identity(), {"x": 1}, {"level": 3}) == ("Identity", ["x"], 3)
    with pytest.raises(ExportError, match="is a OnnxConfig"):
        exporter.export(torch.nn.Identity(), {}, OnnxConfig())
    with pytest.raises(ExportError, match="no subclass of HfExporter"):
        register_exporter("other")(int)


def test_export_for_generation(own_format):
    exporter = AutoHfExporter.from_config(own_format())
    exported = exporter.export_for_generation(llama(), prompt(), {"level": 2})
    assert exported["prefill"][0] == "LlamaForCausalLM" and exported["decode"][2] == 2
    assert "past_key_values" in exported["decode"][1]
    exported = exporter.export_for_generation(llama(), prompt(), {"prefill": own_format(), "decode": {"level": 5}})
    assert (exported["prefill"][2], exported["decode"][2]) == (1, 5)
    with pytest.raises(ExportError, match="no configuration for decode"):
        exporter.export_for_generation(llama(), prompt(), {"prefill": own_format()})


def test_formats_without_an_exporter_say_so():
    with pytest.raises(ExportError, match="no (exporter|configuration) for 'tflite'"):
        AutoHfExporter.from_config({"export_format": "tflite"})


def test_missing_package(own_format):
    class Needy(HfExporter):
        required_packages = ("torch", "no_such_package")

        def export(self, model, sample_inputs, config=None): ...

    with pytest.raises(ExportError, match="Needy needs no_such_package"):
        Needy()


def installed_series(package: str) -> str:
    return ".".join(importlib.metadata.version(package).split(".")[:2])


def test_one_warning_about_versions(monkeypatch):
    monkeypatch.setattr(versions, "_warned", set())
    tested = {"torch": ("1.0",), "transformers": (installed_series("transformers"),)}
    monkeypatch.setattr(versions, "TESTED_VERSIONS", tested)
    with pytest.warns(VersionDriftWarning, match=r"torch 2.* \(tested: 1.0.\*\)") as caught:
        versions.warn_on_drift()
        versions.warn_on_drift()
    assert len(caught) == 1 and "transformers" not in str(caught[0].message)


def test_tested_versions_are_quiet(monkeypatch):
    monkeypatch.setattr(versions, "_warned", set())
    monkeypatch.setattr(versions, "TESTED_VERSIONS", {"torch": (installed_series("torch"),)})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        versions.warn_on_drift()


# ---- inputs ----


def test_leaf_tensors():
    model = llama()
    outputs = model(**prompt())
    leaves = get_leaf_tensors(outputs)
    assert list(leaves)[:2] == ["logits", "past_key_values.layers.0.keys"] and len(leaves) == 5
    assert list(get_leaf_tensors([torch.zeros(1), {"a": (torch.ones(1), 3)}])) == ["0", "1.a.0"]
    assert list(get_leaf_tensors(torch.zeros(1))) == ["output"]


def test_prepare_for_export():
    model = llama().to(torch.bfloat16)
    cache = llama()(**prompt()).past_key_values
    inputs = {
        **prompt(),
        "past_key_values": cache,
        "labels": torch.zeros(2, 4),
        "use_cache": True,
        "return_dict": None,
        "output_attentions": False,
        "inputs_embeds": None,
    }
    same_model, same_inputs, flags = prepare_for_export(model, inputs)
    assert same_model is model and same_inputs is inputs
    assert list(inputs) == ["input_ids", "attention_mask", "past_key_values"]
    assert flags == {"use_cache": True, "output_attentions": False}
    assert inputs["past_key_values"].layers[1].keys.dtype == torch.bfloat16
    assert inputs["input_ids"].dtype == torch.int64


def test_input_preparers(monkeypatch):
    monkeypatch.setattr(prepare, "_PREPARERS", [])

    @register_export_input_preparer("input_ids", "special")
    def add(model, inputs):
        inputs["length"] = torch.tensor(inputs["input_ids"].shape[1])

    inputs = prompt()
    prepare_for_export(llama(), inputs)
    assert "length" not in inputs
    inputs["special"] = 1
    prepare_for_export(llama(), inputs)
    assert inputs["length"] == 4


def test_packed_images_get_what_the_encoder_computes():
    """Helper results are found by running the encoder, and with them it computes the same without the helpers."""
    qwen = pytest.importorskip("transformers.models.qwen2_5_vl.modeling_qwen2_5_vl")
    pytest.importorskip("transformers.vision_utils", reason="older versions have no helpers that take results")
    config = qwen.Qwen2_5_VLVisionConfig(
        depth=2,
        hidden_size=16,
        num_heads=2,
        intermediate_size=32,
        out_hidden_size=16,
        patch_size=4,
        fullatt_block_indexes=[1],
        window_size=16,
    )
    torch.manual_seed(0)
    encoder = qwen.Qwen2_5_VisionTransformerPretrainedModel(config).eval()
    inputs = {"hidden_states": torch.randn(24, 96), "grid_thw": torch.tensor([[1, 4, 6]])}
    expected = encoder(**inputs)
    original = qwen.get_vision_window_index
    prepare_for_export(encoder, inputs)
    assert qwen.get_vision_window_index is original
    assert {"cu_seqlens", "position_ids", "window_index", "cu_window_seqlens"} <= set(inputs)
    grid = inputs["grid_thw"]
    inputs["grid_thw"] = torch.zeros_like(grid)
    outputs = encoder(**inputs)
    for name, tensor in get_leaf_tensors(expected).items():
        assert torch.equal(tensor, get_leaf_tensors(outputs)[name]), name


@pytest.mark.parametrize("name", ["flash_attention_2", "flex_attention"])
def test_attention_that_cannot_be_traced(name):
    model = llama()
    model.config._attn_implementation = name
    with pytest.raises(ExportError, match=name) as caught:
        prepare_for_export(model, prompt())
    assert 'set_attn_implementation("sdpa")' in caught.value.hint
    bert = BertModel(BertConfig(**TEXT)).eval()
    prepare_for_export(bert, prompt())


# ---- components ----


def test_prefill_and_decode():
    model = llama()
    components = decompose_prefill_decode(model, prompt())
    assert list(components) == ["prefill", "decode"]
    for module, inputs in components.values():
        assert module is model and "attention_mask" in inputs and "logits_to_keep" not in inputs
    _, prefill = components["prefill"]
    _, decode = components["decode"]
    assert prefill["input_ids"].shape == (2, 4) and decode["input_ids"].shape == (2, 1)
    assert decode["past_key_values"].get_seq_length() == 4 and decode["attention_mask"].shape == (2, 5)
    # One step with the cache gives what a whole prompt gives.
    whole = torch.cat([prefill["input_ids"], decode["input_ids"]], 1)
    expected = model(input_ids=whole, attention_mask=decode["attention_mask"]).logits[:, -1]
    positions = decode["attention_mask"].cumsum(1)[:, -1:] - 1
    actual = model(**{**decode, "position_ids": positions}).logits[:, -1]
    assert torch.allclose(actual[1], expected[1], atol=1e-5)


def test_encoder_decoder():
    config = T5Config(d_model=16, d_ff=32, num_layers=2, num_heads=2, d_kv=8, vocab_size=50, decoder_start_token_id=0)
    components = decompose_for_generation(T5ForConditionalGeneration(config).eval(), prompt())
    _, decode = components["decode"]
    assert list(components) == ["prefill", "decode"]
    assert decode["encoder_outputs"].last_hidden_state.shape == (2, 4, 16)
    assert decode["past_key_values"].cross_attention_cache.get_seq_length() == 4


def test_multimodal_components():
    model = llava()
    assert is_multimodal(model) and not is_multimodal(llama()) and not is_multimodal(torch.nn.Linear(1, 1))
    components = decompose_for_generation(model, llava_inputs())
    assert list(components) == ["image_encoder", "multi_modal_projector", "language_model", "lm_head", "decode"]
    image_encoder, inputs = components["image_encoder"]
    assert image_encoder is model.model.vision_tower and inputs["pixel_values"].shape == (1, 3, 8, 8)
    assert components["language_model"][1]["inputs_embeds"].shape == (1, 7, 16)
    for name, (module, inputs) in components.items():
        assert get_leaf_tensors(module(**inputs)), name
    assert "input_ids" in components["decode"][1] and "pixel_values" not in components["decode"][1]
    _, prefill = decompose_prefill_decode(model, llava_inputs())["prefill"]
    assert prefill["pixel_values"].shape == (1, 3, 8, 8)
    by_forward = decompose_multimodal(model, prefill)
    assert list(by_forward) == list(components)[:-1]
    want, have = (parts["language_model"][1]["inputs_embeds"] for parts in (components, by_forward))
    assert torch.allclose(want, have, atol=1e-6)


def test_multimodal_needs_an_encoder():
    with pytest.raises(ValueError, match="LlamaForCausalLM has no image or audio encoder"):
        decompose_multimodal(llama(), prompt())


def test_generate_that_fails():
    with pytest.raises(ExportError, match="generate failed") as caught:
        decompose_prefill_decode(llama(), {"input_ids": torch.zeros(1, 2), "no_such_input": torch.zeros(1)})
    assert "no_such_input" in caught.value.hint


# ---- DynamoExporter ----


def same_outputs(program: torch.export.ExportedProgram, model: torch.nn.Module, inputs: dict) -> None:
    with torch.no_grad():
        expected = get_leaf_tensors(model(**copy_value(inputs)))
        actual = get_leaf_tensors(program.module()(**copy_value(inputs)))
    assert list(actual) == list(expected)
    for name, tensor in expected.items():
        assert torch.allclose(actual[name], tensor, atol=1e-5), name


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_dynamo_exporter_with_caches(kind):
    """Programs of both stages, at other sizes too; Gemma 2 has sliding-window layers that count tokens in Python."""
    model = llama()
    if kind == "gemma2":
        config = Gemma2Config(**TEXT, num_key_value_heads=1, head_dim=8, sliding_window=32, query_pre_attn_scalar=8)
        model = Gemma2ForCausalLM(config).eval()
    before = [dict(vars(module)) for module in model.modules()]
    components = decompose_for_generation(model, prompt())
    programs = AutoHfExporter.from_config(DynamoConfig()).export_for_generation(model, prompt(), {"dynamic": True})
    assert isinstance(programs["decode"], torch.export.ExportedProgram)
    assert [dict(vars(module)) for module in model.modules()] == before
    longer = {"input_ids": torch.randint(1, 49, (3, 7)), "attention_mask": torch.ones(3, 7, dtype=torch.int64)}
    longer["attention_mask"][1, :3] = 0
    for name, program in programs.items():
        for parts in (components, decompose_for_generation(model, longer)):
            _, inputs, _ = prepare_for_export(model, parts[name][1])
            same_outputs(program, model, inputs)
    if installed_series("transformers").startswith("4."):
        return  # Its masks are made by torch.vmap, which torch.export keeps as calls.
    targets = {str(node.target) for node in programs["decode"].graph.nodes if node.op == "call_function"}
    assert all(name.startswith(("aten.", "<built-in function", "<function sym_")) for name in targets), targets


def test_dynamo_exporter_keeps_sizes_and_flags(tmp_path):
    model = BertModel(BertConfig(**TEXT)).eval()
    inputs = {**prompt(), "output_hidden_states": True}
    program = DynamoExporter().export(model, inputs)
    assert list(inputs) == ["input_ids", "attention_mask", "output_hidden_states"]
    assert not model.config.output_hidden_states and "forward" not in vars(model)
    assert len(program.module()(**prompt())["hidden_states"]) == 3
    with pytest.raises(Exception, match="input_ids"):
        program.module()(**{name: tensor[:1] for name, tensor in prompt().items()})
    torch.export.save(program, tmp_path / "bert.pt2")
    assert torch.export.load(tmp_path / "bert.pt2").module()(**prompt())["last_hidden_state"].shape == (2, 4, 16)


def test_forms_of_caches():
    """A cache is made again from its tensors and a description that JSON holds; lengths follow the tensors."""
    model = T5ForConditionalGeneration(
        T5Config(d_model=16, d_ff=32, num_layers=2, num_heads=2, d_kv=8, vocab_size=50, decoder_start_token_id=0)
    ).eval()
    _, decode = decompose_for_generation(model, prompt())["decode"]
    cache = decode["past_key_values"]
    leaves, form = pytrees._flatten(cache)
    again = pytrees._unflatten(leaves, pytrees.Form(json.loads(json.dumps(form.node))))
    assert type(again) is type(cache) and len(leaves) == 8
    assert list(get_leaf_tensors(again)) == list(get_leaf_tensors(cache))
    assert again.get_seq_length() == cache.get_seq_length() and again.is_updated == cache.is_updated
    same, other = pytrees._flatten(copy_value(cache))[1], pytrees._flatten(llama()(**prompt()).past_key_values)[1]
    assert form == same and hash(form) == hash(same) and form != other


def test_what_a_kernel_needs_at_least_is_no_limit() -> None:
    """Chunks of a scan: torch notes that there is more than one, which the graph does not need."""
    from argosy.capture.twin import shrink

    model = AutoModelForCausalLM.from_config(shrink(BambaConfig())).eval()
    ids = torch.randint(1, 50, (2, 13))
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "use_cache": False}
    program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True)).module()
    for length in (13, 5):
        call = {name: value[:, :length] for name, value in inputs.items() if name != "use_cache"}
        with torch.no_grad():
            expected = model(**call, use_cache=False).logits
        assert torch.allclose(program(**call).logits, expected, atol=1e-5)
