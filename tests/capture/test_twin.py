"""Twins: the same architecture, small; outputs that tell tokens apart; inputs that fit at every size."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="twins are PyTorch models")
transformers = pytest.importorskip("transformers", reason="twins are models of transformers")

from argosy.capture.twin import Sizes, build, model_class, sample_inputs, shrink  # noqa: E402

FAMILIES = (
    "llama",
    "gemma2",
    "qwen2_moe",
    "jamba",
    "bert",
    "t5",
    "vit",
    "clip",
    "whisper",
    "wav2vec2",
    "llava",
    "qwen3_vl",
)
SIZES = (Sizes(padding=3), Sizes(batch=1), Sizes(batch=3, sequence=1), Sizes(sequence=20, media=1))


def config_of(model_type: str):
    return transformers.CONFIG_MAPPING[model_type]()


@pytest.fixture(scope="module", params=FAMILIES)
def twin(request):
    return build(config_of(request.param))


def first_output(model, inputs):
    with torch.no_grad():
        output = model(**inputs)
    return output.logits if "logits" in output else output[0]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
def test_runs_at_every_size(twin, sizes):
    inputs = sample_inputs(twin, sizes)
    result = first_output(twin, inputs)
    assert result.isfinite().all()
    if "input_ids" in inputs and "attention_mask" in inputs:
        padded = min(sizes.padding, sizes.sequence - 1)
        assert int((inputs["attention_mask"] == 0).sum()) == padded
        ahead = inputs["attention_mask"][0, :padded]
        assert not ahead.any() or "pixel_values" in inputs and not twin.can_generate()


def test_generates(twin):
    if not twin.can_generate():
        pytest.skip("has no generate")
    inputs = sample_inputs(twin, Sizes(padding=3))
    tokens = twin.generate(**inputs, max_new_tokens=3, do_sample=False)
    assert tokens.shape[0] == 2
    prompt = inputs.get("decoder_input_ids", inputs.get("input_ids"))
    if "input_features" in inputs:  # Whisper returns new tokens only
        prompt = prompt[:, :0]
    assert prompt.shape[1] < tokens.shape[1] <= prompt.shape[1] + 3


def test_outputs_tell_inputs_apart(twin):
    one = first_output(twin, sample_inputs(twin, seed=1))
    two = first_output(twin, sample_inputs(twin, seed=2))
    assert (one - two).abs().max() > 0.05
    if one.dim() == 3:
        assert (one[:, 1:] - one[:, :-1]).abs().amax(dim=(0, 2)).min() > 0.05


def test_weights_follow_from_the_seed():
    first, same, other = (build(config_of("llama"), seed=seed).state_dict() for seed in (3, 3, 4))
    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


@pytest.mark.parametrize("model_type", FAMILIES)
def test_a_small_configuration_stays_equal(model_type):
    small = shrink(config_of(model_type))
    assert shrink(small).to_dict() == small.to_dict()


def test_the_original_is_left_alone():
    config = config_of("qwen3_vl")
    before = config.to_dict()
    build(config)
    assert config.to_dict() == before


def test_layer_kinds_are_kept():
    gemma = shrink(transformers.Gemma3TextConfig(num_hidden_layers=48))
    assert gemma.layer_types == ["sliding_attention", "full_attention"]
    assert gemma.sliding_window == 8
    jamba = shrink(transformers.JambaConfig())
    kinds = set(zip(jamba.layers_block_type, jamba.layers_num_experts, strict=True))
    assert len({kind for kind, _ in kinds}) == 2 and len({experts for _, experts in kinds}) == 2
    deepseek = shrink(transformers.DeepseekV3Config())
    assert 0 < deepseek.first_k_dense_replace < deepseek.num_hidden_layers


@pytest.mark.parametrize(
    ("heads", "shared", "expected"), [(32, 32, (4, 4)), (32, 8, (8, 2)), (32, 16, (4, 2)), (32, 1, (4, 1))]
)
def test_head_ratios_are_kept(heads, shared, expected):
    small = shrink(transformers.LlamaConfig(num_attention_heads=heads, num_key_value_heads=shared))
    assert (small.num_attention_heads, small.num_key_value_heads) == expected


def test_classes_as_users_choose_them():
    assert model_class(config_of("bert")) is transformers.BertForMaskedLM
    assert model_class(config_of("llama"), "text-generation") is transformers.LlamaForCausalLM
    named = config_of("bert")
    named.architectures = ["BertForSequenceClassification"]
    assert model_class(named) is transformers.BertForSequenceClassification
    with pytest.raises(Exception, match="no model class for task") as caught:
        model_class(config_of("vit"), "text-generation")
    assert caught.value.code == "not-found"


def test_placeholders_match_features():
    model = build(config_of("llava"))
    inputs = sample_inputs(model, Sizes(batch=2))
    images = model.get_image_features(pixel_values=inputs["pixel_values"]).pooler_output
    count = int((inputs["input_ids"] == model.config.image_token_id).sum())
    assert count == sum(image.shape[-2] for image in images) > 0
