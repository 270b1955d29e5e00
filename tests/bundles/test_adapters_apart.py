"""LoRA adapters that are kept apart: files that ONNX Runtime's own reader reads bit for bit, and that switch in GenAI.

What each adapter should generate is computed here from merged weights, as PEFT merges; the export's own check, which adds to the
output of layers instead, is run as well.
"""

from __future__ import annotations

import copy
import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import onnxruntime_genai
import pytest
import torch
import transformers
from safetensors.torch import load_file, save_file
from test_fast_graphs import ARGOSY, argosy, ops_of, save_model
from thorough import thorough

PROMPT = [5, 9, 17, 40, 33]
TOKENS = 24
SETTINGS = {"peft_type": "LORA", "lora_alpha": 8, "bias": "none"}
#: Of different ranks and for different layers.
ADAPTERS: dict[str, tuple[int, tuple[str, ...], dict[str, Any]]] = {
    "few": (4, ("q_proj", "v_proj"), {"alpha_pattern": {"v_proj": 3}}),
    "many": (9, ("q_proj", "o_proj", "up_proj", "down_proj", "lm_head"), {"use_rslora": True}),
}


def write_adapter(folder: Path, model: torch.nn.Module, name: str) -> None:
    rank, targets, settings = ADAPTERS[name]
    torch.manual_seed(rank)
    tensors = {}
    for path, module in model.named_modules():
        if path.rpartition(".")[2] in targets:
            tensors[f"base_model.model.{path}.lora_A.weight"] = torch.randn(rank, module.in_features) * 0.2
            tensors[f"base_model.model.{path}.lora_B.weight"] = torch.randn(module.out_features, rank) * 0.2
    folder.mkdir(parents=True)
    save_file(tensors, folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps({**SETTINGS, "r": rank, **settings}))


def scale_of(name: str, path: str) -> float:
    rank, _, settings = ADAPTERS[name]
    alpha = settings.get("alpha_pattern", {}).get(path.rpartition(".")[2], SETTINGS["lora_alpha"])
    return alpha / (rank**0.5 if settings.get("use_rslora") else rank)


def pairs_of(folder: Path) -> dict[str, tuple[torch.Tensor, torch.Tensor]]:
    tensors = load_file(folder / "adapter_model.safetensors")
    paths = [name.removeprefix("base_model.model.").removesuffix(".lora_A.weight") for name in tensors if ".lora_A." in name]
    return {path: tuple(tensors[f"base_model.model.{path}.lora_{each}.weight"] for each in "AB") for path in paths}


def merged(model: torch.nn.Module, folder: Path) -> torch.nn.Module:
    model = copy.deepcopy(model)
    for path, (down, up) in pairs_of(folder).items():
        model.get_submodule(path).weight.data += scale_of(folder.name, path) * (up @ down)
    return model


def eager_tokens(model: torch.nn.Module) -> list[int]:
    made = model.generate(torch.tensor([PROMPT]), max_new_tokens=TOKENS, do_sample=False, eos_token_id=None, pad_token_id=0)
    return made[0, len(PROMPT) :].tolist()


def genai_tokens(bundle: Path) -> Callable[[str], list[int]]:
    """By adapter, all in one model of the engine; "": by none."""
    model = onnxruntime_genai.Model(str(bundle))
    adapters = onnxruntime_genai.Adapters(model)
    for each in json.loads((bundle / "bundle.json").read_text())["adapters"]:
        adapters.load(str(bundle / each["file"]), each["name"])

    def run(adapter: str) -> list[int]:
        parameters = onnxruntime_genai.GeneratorParams(model)
        parameters.set_search_options(do_sample=False, max_length=len(PROMPT) + TOKENS)
        generator = onnxruntime_genai.Generator(model, parameters)
        if adapter:
            generator.set_active_adapter(adapters, adapter)
        generator.append_tokens(np.array([PROMPT], np.int32))
        tokens: list[int] = []
        while not generator.is_done() and len(tokens) < TOKENS:
            generator.generate_next_token()
            tokens.append(int(generator.get_next_tokens()[0]))
        return tokens

    return run


@pytest.fixture(scope="module", params=["llama", thorough("qwen2")])
def model(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Qwen 2 has biases. Weights are large, so that tokens are no ties."""
    folder = tmp_path_factory.mktemp("apart") / request.param
    save_model(request.param, folder, {"initializer_range": 0.3, "tie_word_embeddings": False})
    eager = transformers.AutoModelForCausalLM.from_pretrained(folder)
    for name in ADAPTERS:
        write_adapter(folder.parent / name, eager, name)
    return folder


def flags(model: Path) -> list[str]:
    return [word for name in ADAPTERS for word in ("--adapter-apart", f"{name}={model.parent / name}")]


@pytest.fixture(scope="module")
def bundle(model: Path) -> Path:
    argosy("export", "onnx", "--model", model, "--for", "genai", "--check", "off", *flags(model), model.parent / "bundle")
    return model.parent / "bundle"


def test_adapters_switch_in_one_process(model: Path, bundle: Path) -> None:
    eager = transformers.AutoModelForCausalLM.from_pretrained(model, dtype=torch.float32)
    expected = {"": eager_tokens(eager), **{name: eager_tokens(merged(eager, model.parent / name)) for name in ADAPTERS}}
    assert len({tuple(each) for each in expected.values()}) == 3
    run = genai_tokens(bundle)
    for name in ("", "few", "many", "", "many", "few", ""):
        made = run(name)
        assert made == expected[name][: len(made)] and made, name
    assert ops_of(bundle / "model.onnx")["GroupQueryAttention"] == 2


def test_files_are_read_back_bit_for_bit(model: Path, bundle: Path) -> None:
    inputs = {each.name for each in onnxruntime.InferenceSession(bundle / "model.onnx").get_overridable_initializers()}
    for name in ADAPTERS:
        found = onnxruntime.AdapterFormat.read_adapter(str(bundle / f"{name}.onnx_adapter")).get_parameters()
        pairs = pairs_of(model.parent / name)
        assert len(found) == 2 * len(pairs) and set(found) <= inputs
        for path, (down, up) in pairs.items():
            scaled = up * torch.tensor(scale_of(name, path), dtype=torch.float32)
            assert np.array_equal(found[f"{path}.lora_A.weight"].numpy(), down.T.numpy())
            assert np.array_equal(found[f"{path}.lora_B.weight"].numpy(), scaled.T.numpy())


def test_lint_and_the_runner_know_them(model: Path, bundle: Path) -> None:
    argosy("lint", bundle)
    texts = set()
    for adapter in ([], ["--adapter", "few"], ["--adapter", "many"]):
        command = [ARGOSY, "run", bundle, "--prompt", "The", "--raw", "--max-new-tokens", "12", *adapter]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        texts.add(done.stdout)
    assert len(texts) == 3
    done = subprocess.run([ARGOSY, "run", bundle, "--prompt", "a", "--adapter", "none"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "has no adapter 'none'" in done.stderr and "it has few, many" in done.stderr


@pytest.mark.parametrize("options", [["--quantize", "int4"], ["--dtype", "fp16"]])
def test_the_export_checks_them(model: Path, options: list[str], tmp_path: Path) -> None:
    """On a twin, then with the model's own weights: each adapter in the engine, over weights in few bits and in float16."""
    said = argosy("export", "onnx", "--model", model, "--for", "genai", *options, *flags(model), tmp_path / "twin")
    assert "such runs with adapters switched on and off" in said and "agrees with PyTorch" in said, said
    if model.name == "llama":
        said = argosy("export", "onnx", "--model", model, "--for", "genai", *options, *flags(model), "--check", "full", tmp_path / "full")
        assert "9 such runs with adapters switched on and off" in said, said


def test_a_wrong_adapter_is_found(model: Path, bundle: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt"
    shutil.copytree(bundle, spoilt)
    data = bytearray((spoilt / "few.onnx_adapter").read_bytes())
    data[-2048:] = bytes(2048)
    (spoilt / "few.onnx_adapter").write_bytes(data)
    command = [ARGOSY, "check", spoilt, "--against", model, "--adapter-apart", f"few={model.parent / 'few'}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 3 and "adapter" in done.stdout, done.stdout + done.stderr
    assert "--adapter-apart many=DIR is not given" in done.stdout


def refused(*arguments: object) -> str:
    done = subprocess.run([ARGOSY, *map(str, arguments)], capture_output=True, text=True, check=False)
    assert done.returncode != 0, done.stderr
    return done.stderr


@pytest.mark.parametrize(
    ("changes", "name", "message"),
    [
        ({"use_dora": True}, "q_proj", "the adapter 'bad' is not kept apart: it has use_dora"),
        ({}, "no_such_proj", "the model has no weight 'model.layers.0.self_attn.no_such_proj.weight'"),
    ],
)
def test_others_are_refused_by_name(model: Path, changes: dict[str, Any], name: str, message: str, tmp_path: Path) -> None:
    if model.name != "llama":
        pytest.skip("one model is enough: adapters are read before it is looked at")
    bad = tmp_path / "bad"
    bad.mkdir()
    prefix = f"base_model.model.model.layers.0.self_attn.{name}"
    save_file({f"{prefix}.lora_A.weight": torch.zeros(2, 64), f"{prefix}.lora_B.weight": torch.zeros(64, 2)}, bad / "adapter_model.safetensors")
    (bad / "adapter_config.json").write_text(json.dumps({**SETTINGS, "r": 2, **changes}))
    said = refused("export", "onnx", "--model", model, "--for", "genai", "--check", "off", "--adapter-apart", f"bad={bad}", tmp_path / "out")
    assert message in said


def test_where_they_do_not_fit_is_said(model: Path, tmp_path: Path) -> None:
    few = f"few={model.parent / 'few'}"
    assert "add --for genai" in refused("export", "onnx", "--model", model, "--adapter-apart", few, tmp_path / "out")
    for wrong in ("few", "=x", "../few=x", "few="):
        assert "is not NAME=DIR" in refused("export", "onnx", "--model", model, "--for", "genai", "--adapter-apart", wrong, tmp_path / "out")
    said = refused("export", "onnx", "--model", model, "--for", "genai", "--adapter-apart", few, "--adapter-apart", few, tmp_path / "out")
    assert "two adapters are called" in said
