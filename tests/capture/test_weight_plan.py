"""Weight plans: what C++ makes of a checkpoint by its plan is what from_pretrained loads, bit for bit.

A few architectures here, one for each kind of conversion; `python tests/sweeps weight-plans` does all of them.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
transformers = pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from safetensors import safe_open  # noqa: E402
from safetensors.torch import save_file  # noqa: E402
from sweeps import PROGRAM  # noqa: E402
from sweeps.weight_plans import LAYOUTS, check_type, differences, make_twin, stream  # noqa: E402

from argosy.capture.weight_plan import main, make_weight_plan, plan_text  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

# what the plans of their saved checkpoints must have for the comparison to mean something
KINDS = {
    "mixtral": {"stack", "concat"},
    "deepseek_v3": {"stack", "concat"},
    "nomic_bert": {"slice"},
    "step3p7": {"slice", "reshape", "transpose", "concat"},
    "gpt_oss": set(),
    "vit": set(),
    "llava": set(),
    "t5": set(),
}


@pytest.mark.parametrize("model_type", KINDS)
def test_streamed_weights_are_those_that_transformers_loads(model_type: str, tmp_path: Path) -> None:
    outcomes = check_type(model_type, tmp_path, PROGRAM)
    assert [(o.layout, o.status, o.detail) for o in outcomes] == [(layout, "equal", "") for layout in LAYOUTS]
    saved, _, halved = outcomes
    assert {step.split(":")[0] for step in saved.ops.split()} == KINDS[model_type]
    assert "cast" in halved.ops


def tiny(architecture: str, **changes: Any) -> Any:
    """A small model whose weights are all different."""
    cls = getattr(transformers, architecture)
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 32}
    torch.manual_seed(0)
    return cls(cls.config_class(**{**sizes, "intermediate_size": 24, **changes})).eval()


def tensors_of(folder: Path) -> dict[str, torch.Tensor]:
    with safe_open(folder / "model.safetensors", "pt") as file:
        return {name: file.get_tensor(name) for name in file.keys()}


def assert_loads_alike(folder: Path, plan: dict[str, Any]) -> None:
    model = getattr(transformers, plan["model_class"]).from_pretrained(folder, dtype="auto")
    found, message = stream(plan, folder, PROGRAM)
    assert not message
    assert differences(model.state_dict(), found) == []


def test_tied_weights_name_the_one_that_they_share(tmp_path: Path) -> None:
    tiny("LlamaForCausalLM", tie_word_embeddings=True).save_pretrained(tmp_path / "m")
    plan = make_weight_plan(tmp_path / "m")
    ties = {weight["name"]: weight["tied_to"] for weight in plan["weights"] if "tied_to" in weight}
    assert ties == {"lm_head.weight": "model.embed_tokens.weight"}
    assert_loads_alike(tmp_path / "m", plan)


def test_a_checkpoint_may_hold_the_other_name_of_tied_weights(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM", tie_word_embeddings=True).save_pretrained(folder)
    tensors = tensors_of(folder)
    tensors["lm_head.weight"] = tensors.pop("model.embed_tokens.weight")
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert_loads_alike(folder, make_weight_plan(folder))


def test_a_checkpoint_may_hold_both_of_tied_weights_with_different_values(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM", tie_word_embeddings=True).save_pretrained(folder)
    tensors = tensors_of(folder)
    tensors["lm_head.weight"] = tensors["model.embed_tokens.weight"] + 1
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    assert_loads_alike(folder, make_weight_plan(folder))


def test_shards_are_read_by_their_index(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("MixtralForCausalLM", num_local_experts=4).save_pretrained(folder, max_shard_size="8KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    assert_loads_alike(folder, make_weight_plan(folder))


def test_old_names_and_a_missing_prefix_are_found(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("BertForMaskedLM").save_pretrained(folder)
    tensors = {
        name.removeprefix("bert.").replace("LayerNorm.weight", "LayerNorm.gamma"): tensor
        for name, tensor in tensors_of(folder).items()
        if not name.startswith("cls.")
    }
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["BertForTokenClassification"]}))
    plan = make_weight_plan(folder)
    assert plan["missing"] == ["classifier.bias", "classifier.weight"]
    sources = {weight["name"]: weight.get("sources") for weight in plan["weights"]}
    assert sources["bert.embeddings.LayerNorm.weight"] == ["embeddings.LayerNorm.gamma"]


def test_a_task_model_s_checkpoint_serves_the_base_model(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "architectures": ["LlamaModel"]}))
    plan = make_weight_plan(folder)
    assert plan["unexpected"] == ["lm_head.weight"]
    assert_loads_alike(folder, plan)


def test_missing_weights_are_listed_and_refused_by_name(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM").save_pretrained(folder)
    tensors = tensors_of(folder)
    del tensors["model.norm.weight"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    plan = make_weight_plan(folder)
    assert plan["missing"] == ["model.norm.weight"]
    _, message = stream(plan, folder, PROGRAM)
    assert message == (
        "error[not-found]: the checkpoint has no tensor for \"model.norm.weight\"\n"
        "  hint: give the checkpoint of a LlamaForCausalLM"
    )


def test_buffers_that_transformers_sets_itself_are_not_missing(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    sizes = {"d_model": 16, "encoder_layers": 1, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
    heads = {"encoder_attention_heads": 2, "decoder_attention_heads": 2, "vocab_size": 40}
    torch.manual_seed(0)
    transformers.BartForConditionalGeneration(transformers.BartConfig(**sizes, **heads)).save_pretrained(folder)
    tensors = tensors_of(folder)
    del tensors["final_logits_bias"]
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    plan = make_weight_plan(folder)
    assert plan["missing"] == []
    (bias,) = [weight for weight in plan["weights"] if weight["name"] == "final_logits_bias"]
    assert bias == {"name": "final_logits_bias", "dtype": "f32", "shape": [1, 40], "fill": "00000000"}
    assert_loads_alike(folder, plan)


def test_same_checkpoint_same_bytes(tmp_path: Path) -> None:
    tiny("MixtralForCausalLM", num_local_experts=4).save_pretrained(tmp_path / "m")
    texts = []
    for name in ("a.json", "b.json"):
        assert main(["--model", str(tmp_path / "m"), "-o", str(tmp_path / name)]) == 0
        texts.append((tmp_path / name).read_bytes())
    assert texts[0] == texts[1] == plan_text(make_weight_plan(tmp_path / "m")).encode()


def test_a_plan_is_for_one_layout_only(tmp_path: Path) -> None:
    tiny("LlamaForCausalLM").save_pretrained(tmp_path / "a")
    tiny("LlamaForCausalLM", num_hidden_layers=1).save_pretrained(tmp_path / "b")
    _, message = stream(make_weight_plan(tmp_path / "a"), tmp_path / "b", PROGRAM)
    assert "made for a checkpoint of other names, dtypes or shapes" in message


def test_shapes_that_differ_are_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, "vocab_size": 33}))
    with pytest.raises(ExportError, match=r"shape \[32, 16\] in the checkpoint and \[33, 16\] in the model"):
        make_weight_plan(folder)


def test_unknown_quantisations_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "m"
    tiny("LlamaForCausalLM").save_pretrained(folder)
    config = json.loads((folder / "config.json").read_text())
    quantised = {**config, "quantization_config": {"quant_method": "aqlm"}}
    (folder / "config.json").write_text(json.dumps(quantised))
    capsys.readouterr()
    assert main(["--model", str(folder), "-o", str(tmp_path / "p.json")]) == 1
    assert capsys.readouterr().err.startswith("error[unsupported-feature]: the checkpoint is quantised")
    assert not (tmp_path / "p.json").exists()


def test_a_folder_without_a_checkpoint_is_an_error(tmp_path: Path) -> None:
    tiny("LlamaForCausalLM").config.save_pretrained(tmp_path)
    with pytest.raises(ExportError, match="there is no checkpoint in"):
        make_weight_plan(tmp_path)


def test_the_comparison_sees_a_wrong_weight(tmp_path: Path) -> None:
    folder = tmp_path / "m"
    model = make_twin("mixtral")
    model.save_pretrained(folder)
    plan = make_weight_plan(folder)
    (stacked,) = [w for w in plan["weights"] if w["name"] == "model.layers.0.mlp.experts.down_proj"]
    stacked["sources"][0], stacked["sources"][1] = stacked["sources"][1], stacked["sources"][0]
    found, message = stream(plan, folder, PROGRAM)
    assert not message
    assert differences(model.state_dict(), found) == ["model.layers.0.mlp.experts.down_proj has other values"]
