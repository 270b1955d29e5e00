"""Captures of representative families: traced without weights, written, read back, and equal to eager at the edges."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import zipfile
from pathlib import Path

import pytest
import torch
from safetensors.torch import load

from argosy.check.captures import compare, edge_shapes
from argosy.capture.configuration import canonical
from argosy.capture.dims import narrowed, observe_dims, parse_shape
from argosy.capture.reader import read_capture
from argosy.capture.session import Session, open_session, trace_session, write_session
from argosy.errors import ExportError
from captured import run_python
from thorough import thorough

#: One of each kind of structure; the full list is a command (python tests/sweeps capture).
FAMILIES = {
    "llama": "decoder with rotary positions",
    "gpt2": "learned positions, fused projections, layer norm",
    "gemma2": "two kinds of layers, soft cap",
    "gemma3_text": "sliding and full layers with rotary embeddings of their own",
    "qwen3": "norms of queries and keys",
    "phi3": "scaled rotary embedding",
    "falcon": "multi-query attention",
    "bloom": "alibi",
    "opt": "position offsets",
    "mixtral": "mixture of experts",
    "qwen2_moe": "shared experts",
    "deepseek_v3": "latent attention, grouped routing",
    "gpt_oss": "attention sinks",
    "mamba2": "chunked state space",
    "lfm2": "convolutions and attention",
    "bert": "encoder",
    "modernbert": "encoder with local attention",
    "t5": "relative positions, encoder and decoder",
    "bart": "encoder and decoder with learned positions",
    "whisper": "audio encoder and text decoder",
    "wav2vec2": "convolutions on raw audio",
    "vit": "images",
    "convnext": "convolutions only",
    "clip": "two towers",
    "qwen2_5_vl_vision": "pictures packed into a row, whose grids only functions read",
    "glm4v_vision": "the same, and the model reads the grids",
    "parakeet_tdt": "transducer",
}
#: Others of the list, or tests of other files, show the same.
THOROUGH = {"bart", "bloom", "convnext", "falcon", "gemma2", "mamba2", "modernbert", "opt", "phi3", "qwen2_moe", "qwen3"}


def capture(model_type: str, path: Path) -> Session:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import shrink

    session = open_session(shrink(CONFIG_MAPPING[model_type]()))
    trace_session(session)
    write_session(session, path, canonical(session.config.to_dict()))
    return session


@pytest.fixture(autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("model_type", [thorough(name) if name in THOROUGH else name for name in FAMILIES])
def test_a_capture_equals_eager(model_type: str, tmp_path: Path) -> None:
    session = capture(model_type, tmp_path / "x.capture")
    if program := os.environ.get("ARGOSY_BIN"):
        verified = subprocess.run(
            [program, "opt", tmp_path / "x.capture", "--passes=verify"], capture_output=True, text=True
        )
        assert verified.returncode == 0, verified.stderr
    graphs = read_capture(tmp_path / "x.capture", session.twin.state_dict())
    assert set(graphs) == {component.name for component in session.components}
    window = getattr(session.twin.config, "sliding_window", None)
    limits = (window,) if window else ()
    wrong = []
    for component in session.components:
        for shape in edge_shapes(component, limits):
            result = compare(component, graphs[component.name], session.twin, shape)
            if not result.ok:
                wrong.append(
                    f"{component.name} {shape}: {result.error or f'{result.worst} off by {result.max_abs:.1e}'}"
                )
    assert not wrong, "\n".join(wrong)


@pytest.fixture(scope="module")
def llama(tmp_path_factory) -> tuple[Session, Path]:
    path = tmp_path_factory.mktemp("llama") / "x.capture"
    return capture("llama", path), path


def test_inputs_dims_and_cache_are_described(llama) -> None:
    session, path = llama
    with zipfile.ZipFile(path) as archive:
        manifest = json.loads(archive.read("capture.json"))
        graph = json.loads(archive.read("graphs/decode.json"))
    (decode,) = manifest["components"]
    inputs = {item["name"]: item for item in decode["inputs"]}
    assert list(inputs)[:4] == ["input_ids", "attention_mask", "position_ids", "past_key_values_0_key"]
    assert inputs["past_key_values_0_key"]["path"] == "past_key_values.0.key"
    assert inputs["past_key_values_0_key"]["dims"][::2] == ["batch", "past_sequence"]
    assert inputs["attention_mask"]["dims"] == ["batch", "total_sequence"]
    assert decode["sums"] == {"total_sequence": ["past_sequence", "sequence"]}
    assert decode["dims"]["past_sequence"]["min"] == 0 and decode["dims"]["batch"]["min"] == 1
    assert decode["cache"]["states"][0]["output"] == "present.0.key"
    assert graph["guards_code"] == []
    assert sorted(value["min_val"] for value in graph["range_constraints"].values()) == [0, 1, 1]


@pytest.mark.parametrize("model_type", ["llama", "lfm2"])
def test_a_model_of_more_layers_than_its_twin_has_a_sample_call(model_type: str, tmp_path: Path) -> None:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import shrink

    config = shrink(CONFIG_MAPPING[model_type]())
    small = config.num_hidden_layers
    kinds = getattr(config, "layer_types", None)
    config.num_hidden_layers = 3 * small
    if kinds:
        config.layer_types = [kind for kind in kinds for _ in range(3)]
    session = open_session(config)
    assert session.twin.config.num_hidden_layers < 3 * small
    trace_session(session)
    write_session(session, tmp_path / "deep.capture", canonical(config.to_dict()))
    with zipfile.ZipFile(tmp_path / "deep.capture") as archive:
        (decode,) = json.loads(archive.read("capture.json"))["components"]
    states = [each for each in decode["inputs"] if each["name"].startswith("past_key_values")]
    assert len(states) >= 3 * small and all(len(each["sample"]) == len(each["dims"]) for each in decode["inputs"])


def test_nothing_of_the_model_is_in_the_file(llama) -> None:
    session, path = llama
    weights = sum(tensor.numel() * tensor.element_size() for tensor in session.twin.state_dict().values())
    with zipfile.ZipFile(path) as archive:
        names = archive.namelist()
        constants = archive.getinfo("constants.safetensors").file_size
    assert all(name.startswith(("capture.json", "graphs/", "constants.", "samples.")) for name in names)
    assert constants < weights / 20


def test_the_same_configuration_gives_the_same_bytes(tmp_path: Path) -> None:
    from transformers import LlamaConfig

    from argosy.capture.twin import shrink

    shrink(LlamaConfig(architectures=["LlamaForCausalLM"])).save_pretrained(tmp_path)
    for name in ("a.capture", "b.capture"):
        run_python("-m", "argosy.capture", "--model", str(tmp_path), "-o", str(tmp_path / name))
    assert (tmp_path / "a.capture").read_bytes() == (tmp_path / "b.capture").read_bytes()
    assert not list(tmp_path.glob("*.part"))


def test_configurations_are_strict_json() -> None:
    found = canonical(
        {"limit": [0.0, float("inf")], "inner": {"x": float("-inf"), "transformers_version": "1"}, "_name_or_path": "x"}
    )
    assert found == {"inner": {"x": {"__float__": "-Infinity"}}, "limit": [0.0, {"__float__": "Infinity"}]}


def test_weights_that_stay_in_float32() -> None:
    from transformers import T5Config, T5ForConditionalGeneration

    from argosy.capture.twin import shrink
    from argosy.capture.weightless import build_on_meta

    model = build_on_meta(T5ForConditionalGeneration, shrink(T5Config()), torch.float16)
    dtypes = {name: parameter.dtype for name, parameter in model.named_parameters()}
    assert all(dtype is torch.float32 for name, dtype in dtypes.items() if ".wo." in name)
    assert dtypes["shared.weight"] is torch.float16


def test_weights_that_a_checkpoint_may_lack_come_along(tmp_path: Path) -> None:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import shrink

    session = open_session(shrink(CONFIG_MAPPING["marian"]()))
    trace_session(session)
    write_session(session, tmp_path / "x.capture", {})
    with zipfile.ZipFile(tmp_path / "x.capture") as archive:
        stored = load(archive.read("constants.safetensors"))
    # a table of sines; what training gives a marian is not there
    table = stored["model.encoder.embed_positions.weight"]
    assert torch.equal(table, session.twin.state_dict()["model.encoder.embed_positions.weight"])
    assert table.abs().max() > 0.9
    assert "model.shared.weight" not in stored


def test_prefill_on_request(tmp_path: Path) -> None:
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import shrink

    session = open_session(shrink(CONFIG_MAPPING["llama"]()), prefill=True)
    assert [component.name for component in session.components] == ["prefill", "decode"]
    trace_session(session)
    write_session(session, tmp_path / "x.capture", {})
    graphs = read_capture(tmp_path / "x.capture", session.twin.state_dict())
    prefill = session.components[0]
    assert all(compare(prefill, graphs["prefill"], session.twin, shape).ok for shape in edge_shapes(prefill))


def test_shapes_can_be_narrowed() -> None:
    from transformers import CONFIG_MAPPING

    from argosy.capture.finding import find_components
    from argosy.capture.twin import build

    twin = build(CONFIG_MAPPING["bert"]())
    dims = narrowed(observe_dims(find_components(twin)[0], twin), parse_shape("batch=1,sequence=1..512"))
    assert dims.ranges == {"batch": (1, 1), "sequence": (1, 512)}


@pytest.mark.parametrize("text", ["batch", "batch=x", "batch=4..2", "=3", "batch=-1"])
def test_rejects_shapes(text: str) -> None:
    with pytest.raises(ExportError) as error:
        parse_shape(text)
    assert error.value.hint


@pytest.mark.parametrize(("text", "said"), [("batsh=1", "no dim 'batsh'"), ("batch=0", "'batch' no size")])
def test_rejects_shapes_that_the_model_does_not_have(text: str, said: str) -> None:
    from transformers import CONFIG_MAPPING

    with pytest.raises(ExportError, match=said) as error:
        open_session(CONFIG_MAPPING["bert"](), shape=text)
    assert error.value.hint


def test_a_model_is_unchanged_by_a_trace_that_fails() -> None:
    from transformers import CONFIG_MAPPING

    from argosy.capture.components import Component, Shape
    from argosy.capture.dims import Dims
    from argosy.capture.trace import trace
    from argosy.capture.twin import build

    model = build(CONFIG_MAPPING["llama"]())
    before = {name: dict(vars(module)) for name, module in model.named_modules()}

    def run(model, forward, inputs):
        model.model.leftover = inputs["input_ids"] + 1
        raise RuntimeError("on purpose")

    component = Component("broken", lambda model, shape: {"input_ids": torch.ones(2, 3, dtype=torch.long)}, run)
    with contextlib.suppress(RuntimeError):
        trace(model, component, component.inputs(model, Shape()), Dims())
    for name, module in model.named_modules():
        assert vars(module).keys() == before[name].keys(), name
    assert "forward" not in vars(model)
