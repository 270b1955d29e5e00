"""Twins: the same architecture, small; outputs that tell tokens apart; inputs that fit at every size."""

from __future__ import annotations

import subprocess
import sys

import pytest

torch = pytest.importorskip("torch", reason="twins are PyTorch models")
transformers = pytest.importorskip("transformers", reason="twins are models of transformers")

from argosy.capture.components import Shape  # noqa: E402
from argosy.capture.multimodal import sample_at  # noqa: E402
from argosy.capture.twin import Sizes, build, model_class, sample_inputs, save, shrink  # noqa: E402
from sweeps import ROOT, all_types  # noqa: E402
from sweeps.configurations import configuration  # noqa: E402
from sweeps.journal import Journal  # noqa: E402
from sweeps.pages import installed  # noqa: E402

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
    return configuration(model_type)


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


def test_a_twin_feels_its_caps():
    model = build(config_of("gemma2"))
    inputs = sample_inputs(model, Sizes())
    capped = first_output(model, inputs)
    model.config.final_logit_softcapping = None
    free = first_output(model, inputs)
    assert (capped - free).abs().max() > 1e-3 * free.abs().max()


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


@pytest.mark.parametrize("model_type", ["llama", "gemma2", "qwen2_moe", "jamba", "gpt2", "llava"])
def test_greedy_tokens_vary(model_type):
    model = build(config_of(model_type))
    inputs = sample_inputs(model)
    tokens = model.generate(**inputs, max_new_tokens=8, min_new_tokens=8, do_sample=False)[:, -8:]
    assert len(set(tokens.flatten().tolist())) >= 5


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
    ("heads", "shared", "expected"), [(32, 32, (4, 4)), (32, 8, (4, 2)), (32, 16, (4, 2)), (32, 1, (4, 1))]
)
def test_kinds_of_heads_are_kept(heads, shared, expected):
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


def test_code_that_comes_with_a_checkpoint(tmp_path):
    (tmp_path / "configuration_own.py").write_text(
        "from transformers import LlamaConfig\nclass OwnConfig(LlamaConfig):\n    model_type = 'own_llama'\n"
    )
    (tmp_path / "modeling_own.py").write_text(
        "from transformers import LlamaForCausalLM\nfrom .configuration_own import OwnConfig\n"
        "class OwnForCausalLM(LlamaForCausalLM):\n    config_class = OwnConfig\n"
    )
    (tmp_path / "config.json").write_text(
        '{"model_type": "own_llama", "architectures": ["OwnForCausalLM"], "auto_map": '
        '{"AutoConfig": "configuration_own.OwnConfig", "AutoModelForCausalLM": "modeling_own.OwnForCausalLM"}}'
    )
    config = transformers.AutoConfig.from_pretrained(tmp_path, trust_remote_code=True)
    model = build(config)
    assert type(model).__name__ == "OwnForCausalLM" and model.config.hidden_size == 64


def test_placeholders_match_features():
    model = build(config_of("llava"))
    inputs = sample_inputs(model, Sizes(batch=2))
    images = model.get_image_features(pixel_values=inputs["pixel_values"]).pooler_output
    count = int((inputs["input_ids"] == model.config.image_token_id).sum())
    assert count == sum(image.shape[-2] for image in images) > 0


def test_rotary_limits_fit_and_are_within_reach():
    factors = {"short_factor": [1.0 + i / 100 for i in range(48)], "long_factor": [1.0 + i for i in range(48)]}
    long = transformers.Phi3Config(
        original_max_position_embeddings=4096,
        max_position_embeddings=131072,
        rope_parameters={"rope_type": "longrope", "rope_theta": 10000.0, **factors},
    )
    model = build(long)
    limit = model.config.original_max_position_embeddings
    assert limit <= 64 < model.config.max_position_embeddings
    below, above = (first_output(model, sample_inputs(model, Sizes(sequence=limit + step))) for step in (0, 1))
    # the longer one takes other frequencies, so that even tokens that see nothing new differ
    assert (above[:, :limit] - below).abs().max() > 1e-3
    dynamic = shrink(
        transformers.LlamaConfig(rope_parameters={"rope_type": "dynamic", "rope_theta": 1e4, "factor": 2.0})
    )
    assert dynamic.max_position_embeddings <= 32
    mixed = shrink(transformers.CONFIG_MAPPING["qwen2_vl"]())
    text = mixed.text_config
    assert sum(text.rope_parameters["mrope_section"]) == text.hidden_size // text.num_attention_heads // 2


def test_special_tokens_stay_apart():
    config = transformers.LlamaConfig(
        vocab_size=128256, bos_token_id=128000, eos_token_id=[128001, 128009], pad_token_id=128004
    )
    small = shrink(config)
    ids = [small.bos_token_id, *small.eos_token_id, small.pad_token_id]
    assert len(set(ids)) == 4 and max(ids) < small.vocab_size
    assert not {*ids} & {*sample_inputs(build(config))["input_ids"].flatten().tolist()}


@pytest.mark.parametrize(
    ("model_type", "text"),
    [
        ("llama", 11),
        ("t5", 11),
        ("vit", None),
        ("whisper", None),
        ("llava", 576 + 11),
        ("qwen2_5_vl", 6 + 11),
        ("mamba", 11),
    ],
)
def test_inputs_of_a_full_size_model_without_weights(model_type, text):
    config = config_of(model_type)
    with torch.device("meta"):
        model = model_class(config)._from_config(config)
    inputs = sample_inputs(model)
    assert all(value.device.type == "cpu" for value in inputs.values())
    assert (inputs["input_ids"].shape[1] if "input_ids" in inputs else None) == text


def test_inputs_follow_from_the_seed(twin):
    one, same, other = (sample_inputs(twin, seed=seed) for seed in (5, 5, 6))
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert any(not torch.equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("model_type", ["llama", "whisper", "llava", "vit"])
def test_a_saved_twin_loads(model_type, tmp_path):
    model = build(config_of(model_type))
    save(model, tmp_path)
    again = type(model).from_pretrained(tmp_path)
    state = again.state_dict()
    assert all(torch.equal(value, state[name]) for name, value in model.state_dict().items())
    assert (tmp_path / "preprocessor_config.json").exists() == (model_type != "llama")
    if model_type == "vit":
        return
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path)
    assert len(tokenizer) == model.config.get_text_config().vocab_size
    assert tokenizer.decode(tokenizer("two words, 42")["input_ids"], skip_special_tokens=True) == "two words, 42"
    if model_type == "llava":
        chat = [{"role": "user", "content": [{"type": "image"}, {"type": "text", "text": "what is it"}]}]
        ids = tokenizer.apply_chat_template(chat, add_generation_prompt=True)["input_ids"]
        assert model.config.image_token_id in ids


def test_trials_are_resumed_and_summed_up(tmp_path):
    journal = Journal(tmp_path / "twins.jsonl", installed("torch", "transformers"))
    journal.add(("bert", "twin"), {"status": "forward", "reason": "as recorded"})
    command = [sys.executable, str(ROOT / "tests/sweeps"), "twins", "gpt2", "bert", "--work", str(tmp_path), "--resume"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 1, done.stderr  # one runs, one is on record as failed
    assert "[1/1] gpt2 twin: ok" in done.stdout and "1 of 2" in done.stdout


def test_all_types_with_a_class_are_known_by_their_names():
    known = all_types.types_with_a_class()
    assert {"bert", "vitmatte", "bark"} <= {*known} and not {"clap_text_model", "sam_prompt_encoder"} & {*known}


def test_the_page_of_all_types_says_at_which_step_each_one_failed(tmp_path):
    journal = Journal(tmp_path / "onnx.jsonl", installed("torch"))
    run = {"class": "C", "twin": True}
    for name, outcome in {
        "bert": {"status": "failed", "reason": "an earlier run"},
        "gpt2": {**run, "captured": True, "status": "wrong", "reason": "decode at 3x9 (edge): logits is off by 0.1"},
        "vit": {"status": "failed", "reason": "build the twin: ImportError: "},
        "dpt": {"class": "C", "status": "failed", "reason": "run the twin: ValueError: size 3 of [2, 3]"},
        "llama": {"class": "C", "status": "failed", "reason": "run the twin: ValueError: size 4 of [2, 4]"},
        "clip": {**run, "status": "timeout", "reason": "more than 120 s of CPU in: tracing model"},
        "swin": {**run, "captured": True, "status": "failed", "reason": "exporting the twin: ExportError: no op"},
    }.items():
        journal.add((name, "onnx"), outcome)
    journal.add(("bert", "onnx"), {**run, "captured": True, "status": "ok"})
    journal.add(("t5", "onnx_peer"), {"status": "ok"})
    assert all_types.main(["--work", str(tmp_path), "--no-run", "--output", str(tmp_path / "pages")]) == 0
    lines = (tmp_path / "pages/types.md").read_text().splitlines()
    count = len(all_types.types_with_a_class())
    for said, number in {"tried": 7, "twin runs": 4, "captured": 3, "**right in all components**": 1, "wrong, which the check tells": 1,
                         "failed": 5, "not tried": count - 7}.items():  # fmt: skip
        assert f"- {said}: {number} of {count} ({100 * number / count:.1f} %)" in lines
    assert {"- right of those tried: 1 of 7", "| 1 | wrong | first in calls of kind 'edge' |"} <= {*lines}
    assert "- right of the popular families' 146 types: 1 of 7 tried" in lines
    assert "| 2 | twin does not run | ValueError: size … of … |" in lines, "reasons that differ in numbers alone are one"
    table = {line.split(" | ")[0][2:]: line.split(" | ")[3] for line in lines if line.count(" | ") == 4}
    assert {name: table[name] for name in ("bert", "gpt2", "vit", "dpt", "clip", "swin", "t5")} == {
        "bert": "right", "gpt2": "wrong", "vit": "no twin", "dpt": "twin does not run", "clip": "not captured", "swin": "not exported",
        "t5": "not tried"}  # fmt: skip


def test_configuration_of_a_part_that_no_table_lists(tmp_path):
    """The auto classes of transformers do not know every type; the model class that a configuration names does."""
    from transformers import BarkFineConfig

    from argosy import ExportError
    from argosy.capture.configuration import load_config

    BarkFineConfig(architectures=["BarkFineModel"], hidden_size=24).save_pretrained(tmp_path)
    config = load_config(tmp_path)
    assert isinstance(config, BarkFineConfig) and config.hidden_size == 24
    BarkFineConfig(architectures=["NoSuchModel"]).save_pretrained(tmp_path)
    with pytest.raises(ExportError, match="does not know"):
        load_config(tmp_path)


def test_decoders_that_take_one_token_a_call_get_one():
    class Transducer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.config = transformers.PreTrainedConfig(vocab_size=90, is_encoder_decoder=True)
            self.weight = torch.nn.Parameter(torch.zeros(1))

        def forward(self, decoder_input_ids=None):
            """
            decoder_input_ids (`torch.LongTensor` of shape `(batch_size, 1)`, *optional*):
                One token.
            """

    class Decoder(Transducer):
        def forward(self, decoder_input_ids=None):
            """
            decoder_input_ids (`torch.LongTensor` of shape `(batch_size, sequence_length)`, *optional*):
                Tokens.
            """

    sizes = Sizes(batch=3, decoder_sequence=7)
    assert sample_inputs(Transducer(), sizes)["decoder_input_ids"].shape == (3, 1)
    assert sample_inputs(Decoder(), sizes)["decoder_input_ids"].shape == (3, 7)


def test_pictures_come_last_among_the_media_of_a_row():
    """Decoders are called with the end of a row, and take features of pictures in several layers."""
    twin = build(configuration("qwen3_omni_moe_thinker"))
    ids = sample_inputs(twin, Sizes(batch=1))["input_ids"][0].tolist()
    pictures = [i for i, token in enumerate(ids) if token == twin.config.image_token_id]
    sounds = [i for i, token in enumerate(ids) if token == twin.config.audio_token_id]
    assert sounds and pictures and max(sounds) < min(pictures)
    dtypes = {sample_at(twin, Shape(2, 7, media=media))["position_ids"].dtype for media in (-1, 0)}
    assert dtypes == {torch.float32}, "positions of text alone are as those among media"
