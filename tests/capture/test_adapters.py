"""LoRA adapters: what C++ streams of a model with one is what PEFT's formula gives, written out here.

Weights, and the factors of adapters, are multiples of a power of two: their products and sums are exact in float32, so that the result,
rounded once, is known bit for bit.
"""

from __future__ import annotations

import json
import math
import subprocess
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
transformers = pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from safetensors.torch import load_file, save_file  # noqa: E402
from sweeps import PROGRAM  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan, write_weight_plan  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

Tensors = dict[str, Any]
Q = "model.layers.0.self_attn.q_proj"
UP = "model.layers.1.mlp.up_proj"
SETTINGS = {"peft_type": "LORA", "r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "up_proj"], "bias": "none"}


def exact(*shape: int) -> Any:
    return torch.randint(-32, 33, shape).float() / 256


def base(folder: Path, dtype: Any = torch.bfloat16, **changes: Any) -> Tensors:
    torch.manual_seed(0)
    sizes = {"hidden_size": 48, "intermediate_size": 80, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}
    model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**{**sizes, **changes}))
    for parameter in model.parameters():
        parameter.data = exact(*parameter.shape)
    model.to(dtype).save_pretrained(folder)
    return load_file(folder / "model.safetensors")


def write_adapter(folder: Path, tensors: Tensors, settings: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    named = {f"base_model.model.{name}": tensor for name, tensor in tensors.items()}
    save_file(named, folder / "adapter_model.safetensors", {"format": "pt"})
    (folder / "adapter_config.json").write_text(json.dumps(settings))


def pair(module: str, rows: int, columns: int, rank: int = 4) -> Tensors:
    return {f"{module}.lora_A.weight": exact(rank, columns), f"{module}.lora_B.weight": exact(rows, rank)}


def delta(tensors: Tensors, module: str, scale: float) -> Any:
    return scale * (tensors[f"{module}.lora_B.weight"] @ tensors[f"{module}.lora_A.weight"])


def merged(model: Path, adapter: Path) -> tuple[dict[str, Any], Tensors]:
    plan = make_weight_plan(model, adapter=adapter)
    plan_path, out = model.with_suffix(".plan.json"), model.with_suffix(".safetensors")
    write_weight_plan(plan, plan_path)
    command = [PROGRAM, "weights", "--plan", plan_path, "--model", model, "--adapter", adapter, "-o", out]
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return plan, load_file(out)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float32])
def test_an_adapter_is_merged_and_rounded_once(dtype: Any, tmp_path: Path) -> None:
    weights = base(tmp_path / "m", dtype)
    tensors = {**pair(Q, 48, 48), **pair(UP, 80, 48)}
    write_adapter(tmp_path / "a", tensors, SETTINGS)
    plan, found = merged(tmp_path / "m", tmp_path / "a")
    assert plan["notes"] == ["an adapter is merged into 2 weights"]
    for name, weight in weights.items():
        expected = weight
        if name in (f"{Q}.weight", f"{UP}.weight"):
            change = delta(tensors, name.removesuffix(".weight"), 2.0)
            expected = (weight.float() + change).to(dtype)
            assert not torch.equal(expected, weight)
        assert torch.equal(found[name], expected), name


def test_settings_by_module_and_rank_count(tmp_path: Path) -> None:
    weights = base(tmp_path / "m", torch.float32)
    tensors = {**pair(Q, 48, 48, 16), **pair(UP, 80, 48, 4)}
    settings = {**SETTINGS, "use_rslora": True, "alpha_pattern": {"q_proj": 2}, "rank_pattern": {"q_proj": 16}}
    write_adapter(tmp_path / "a", tensors, settings)
    _, found = merged(tmp_path / "m", tmp_path / "a")
    for module, scale in ((Q, 2 / math.sqrt(16)), (UP, 8 / math.sqrt(4))):
        assert torch.equal(found[f"{module}.weight"], weights[f"{module}.weight"] + delta(tensors, module, scale))


def test_embeddings_and_whole_modules(tmp_path: Path) -> None:
    weights = base(tmp_path / "m", torch.float32)
    name = "model.embed_tokens"
    tensors = {f"{name}.lora_embedding_A": exact(4, 64), f"{name}.lora_embedding_B": exact(48, 4), "lm_head.weight": exact(64, 48)}
    write_adapter(tmp_path / "a", tensors, {**SETTINGS, "modules_to_save": ["lm_head"]})
    _, found = merged(tmp_path / "m", tmp_path / "a")
    change = 2.0 * (tensors[f"{name}.lora_embedding_B"] @ tensors[f"{name}.lora_embedding_A"]).t()
    assert torch.equal(found[f"{name}.weight"], weights[f"{name}.weight"] + change)
    assert torch.equal(found["lm_head.weight"], tensors["lm_head.weight"])


def test_an_adapter_is_merged_into_a_quantised_weight(tmp_path: Path) -> None:
    weights = base(tmp_path / "m")
    values = (torch.randn(48, 48) * 30).to(torch.float8_e4m3fn)
    weights[f"{Q}.weight"], weights[f"{Q}.weight_scale_inv"] = values, torch.full((1, 1), 2.0**-10)
    save_file(weights, tmp_path / "m/model.safetensors", {"format": "pt"})
    config = json.loads((tmp_path / "m/config.json").read_text())
    settings = {"quant_method": "fp8", "weight_block_size": [128, 128]}
    (tmp_path / "m/config.json").write_text(json.dumps({**config, "quantization_config": settings}))
    tensors = pair(Q, 48, 48)
    write_adapter(tmp_path / "a", tensors, SETTINGS)
    plan, found = merged(tmp_path / "m", tmp_path / "a")
    assert len(plan["notes"]) == 2
    dense = (values.float() * 2.0**-10).bfloat16().float()
    assert torch.equal(found[f"{Q}.weight"], (dense + delta(tensors, Q, 2.0)).bfloat16())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"peft_type": "IA3"}, "its peft_type is 'IA3'"),
        ({"use_dora": True}, "it has use_dora"),
        ({"bias": "lora_only"}, "its bias is 'lora_only'"),
        ({"init_lora_weights": "pissa_niter_4"}, "its init_lora_weights is 'pissa_niter_4'"),
        ({"lora_alpha": None}, "its lora_alpha for model.layers.0.self_attn.q_proj is None"),
    ],
)
def test_other_adapters_are_refused(settings: dict[str, Any], message: str, tmp_path: Path) -> None:
    base(tmp_path / "m")
    write_adapter(tmp_path / "a", pair(Q, 48, 48), {**SETTINGS, **settings})
    with pytest.raises(ExportError, match=message):
        make_weight_plan(tmp_path / "m", adapter=tmp_path / "a")


@pytest.mark.parametrize(
    ("tensors", "message"),
    [
        (pair(Q, 47, 48), "have shapes .4, 48. and .47, 4., for a weight of shape .48, 48."),
        (pair("model.layers.7.self_attn.q_proj", 48, 48), "no weight 'model.layers.7.self_attn.q_proj.weight'"),
        ({f"{Q}.lora_A.weight": exact(4, 48)}, "without 'base_model.model.model.layers.0.self_attn.q_proj.lora_B.weight'"),
        ({f"{Q}.lora_magnitude_vector": exact(48)}, "nothing is known of its tensor"),
        ({f"{Q}.lora_A.weight": torch.zeros(4, 48, dtype=torch.int8)}, "is i8"),
    ],
)
def test_an_adapter_that_does_not_fit_is_refused_by_name(tensors: Tensors, message: str, tmp_path: Path) -> None:
    base(tmp_path / "m")
    write_adapter(tmp_path / "a", tensors, SETTINGS)
    with pytest.raises(ExportError, match=message):
        make_weight_plan(tmp_path / "m", adapter=tmp_path / "a")


def test_a_tied_weight_is_not_merged(tmp_path: Path) -> None:
    base(tmp_path / "m", tie_word_embeddings=True)
    write_adapter(tmp_path / "a", pair("lm_head", 64, 48), SETTINGS)
    with pytest.raises(ExportError, match="which is tied to another weight"):
        make_weight_plan(tmp_path / "m", adapter=tmp_path / "a")
