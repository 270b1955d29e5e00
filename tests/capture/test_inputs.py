"""Inputs as models' own extractors lay them out, and small configurations that their own classes accept."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="twins are PyTorch models")
transformers = pytest.importorskip("transformers", reason="twins are models of transformers")

from argosy.capture.seq2seq import _output_class  # noqa: E402
from argosy.capture.twin import Sizes, build, sample_inputs, shrink  # noqa: E402
from argosy.capture.twin.extractors import spectrogram_of, waveform_of  # noqa: E402
from argosy.capture.twin.shrink import _validated, shrink_tree  # noqa: E402
from argosy.structures import named_leaves  # noqa: E402
from sweeps.configurations import configuration  # noqa: E402


def config_of(model_type: str):
    return configuration(model_type)


#: One type for each rule: a mask of frames, frames first with an extractor and without one, channels of a waveform, sizes
#: of pictures, series, sections of rotary embeddings, pictures whose processor needs a package, what a class refuses, a question
#: to a picture, parts without an embedding; series with a future, patches with their places, patches that the processor shapes,
#: patches joined by twos, patches side by side, several pictures a row, widths within stages, heads with a rotary part;
#: joined patches, tapped layers, masks of features, frames side by side in two ways, whole windows, what a part looks at, tubes of pictures, regions,
#: pictures in two sizes, tasks, questions, places told by a mask, codes of one step;
#: boxes by derived widths, rows of patches in two ways, a part that hears alone and one of two, layers gone through several times,
#: two parts side by side, heads that differ from layer to layer, grids of plain backbones and of stages, whole windows, widths after a backbone;
#: what only the documentation says, waveforms and latents that only the first layer says, tokens between the rows of a picture, a sound in two ways, blocks written out.
@pytest.mark.parametrize(
    "model_type",
    ["audioflamingo3", "lasr_ctc", "parakeet_ctc", "dac", "mistral3", "patchtst", "timesfm",
     "decision_transformer", "glm4v_moe_text", "pp_lcnet", "ultravbert", "lw_detr_vit",
     "instructblip", "nemotron3_5_transcribe_word_timestamp", "time_series_transformer", "siglip2", "gemma4", "kimi_k25",
     "muse_glimmer_vision", "minicpm_ocr_vision", "idefics", "colmodernvbert", "hgnet_v2", "mistral4", "vitpose",
     "muse_glimmer", "gemma4_unified", "vipllava", "granite_speech", "granite_speech5_encoder", "fun_asr_nano_encoder", "qwen3_asr_encoder",
     "blip_2_qformer", "vivit", "lxmert", "deepseek_vl_hybrid", "oneformer", "splinter", "kosmos-2", "dia",
     "bros", "fuyu", "neomme", "gemma3n_audio", "speech-encoder-decoder", "hrm_text", "xcodec", "sapiens2", "sam3_tracker", "sam2_video",
     "lw_detr", "unlimited_ocr", "hunyuan_vl", "xcodec2", "pp_lcnet_v4", "mimi_decoder", "vibevoice_acoustic_tokenizer_encoder", "vibevoice_acoustic_tokenizer_decoder"],
)  # fmt: skip
@pytest.mark.parametrize("sizes", [Sizes(), Sizes(batch=3, sequence=7, media=1)], ids=str)
def test_twins_run_on_their_inputs(model_type, sizes):
    model = build(config_of(model_type))
    with torch.no_grad():
        output = model(**sample_inputs(model, sizes))
    leaves = [value for value in named_leaves(output).values() if value.is_floating_point()]
    assert leaves and all(leaf.isfinite().all() for leaf in leaves)


@pytest.mark.parametrize("media", [0, 1])
def test_rows_of_several_texts_of_which_one_is_chosen(media):
    model = build(config_of("bert"), task="multiple-choice")
    inputs = sample_inputs(model, Sizes(batch=2, sequence=11, padding=3, media=media))
    assert {tuple(tensor.shape) for tensor in inputs.values()} == {(2, (2, 3)[media], 11)}
    with torch.no_grad():
        scores = model(**inputs).logits
    assert scores.shape == (2, (2, 3)[media]) and scores.std(dim=1).min() > 0


def test_heads_that_read_the_text_again_get_it_from_forward():
    model = build(config_of("bart"), task="text-classification")
    inputs = sample_inputs(model, Sizes(padding=3, sequence=11, decoder_sequence=7))
    assert "decoder_input_ids" not in inputs and (inputs["input_ids"][:, -1] == model.config.eos_token_id).all()
    with torch.no_grad():
        assert model(**inputs).logits.shape[0] == 2


def test_sounds_are_as_long_as_heads_for_speakers_want():
    model = build(config_of("wav2vec2"), task="audio-xvector")
    with torch.no_grad():
        assert model(**sample_inputs(model, Sizes())).logits.isfinite().all()


@pytest.mark.parametrize(
    ("model_type", "bins", "frames_first"),
    [("whisper", 80, False), ("lasr_ctc", 128, True), ("audioflamingo3_encoder", 80, False)],
)
def test_spectrograms_as_extractors_make_them(model_type, bins, frames_first):
    made = spectrogram_of(model_type)
    assert (made.bins, made.frames_first) == (bins, frames_first)


def test_masks_have_the_dtype_of_the_extractor():
    assert spectrogram_of("gemma3n").masks == {"input_features_mask": torch.bool}


def test_waveforms_are_filled_up_as_extractors_do():
    assert waveform_of("wav2vec2", 4000) == (4000,)
    assert waveform_of("dac", 4000) == (1, 4096)  # whole frames of 512
    assert waveform_of("bert", 4000) is None and spectrogram_of("bert") is None


def test_what_a_class_refuses_keeps_its_value():
    whole = config_of("lw_detr_vit")
    small = shrink(whole)  # pictures have whole windows
    assert small.image_size % (small.num_windows_side * small.patch_size) == 0 and small.hidden_size < whole.hidden_size


def test_layers_whose_keys_others_take_stay():
    whole = {"num_hidden_layers": 12, "kv_source_layers": [0, 1, 2, 3, 4, 5, 6, 7, 8, 5, 8, 11], "layer_types": ["a"] * 6 + ["b"] * 6}
    small = shrink_tree(whole)
    assert small["layer_types"] == ["a", "a", "b", "b"] and small["kv_source_layers"] == [0, 1, 2, 1], "0, 5, 6 and 9"


@pytest.mark.parametrize(("model_type", "name"), [("t5", "BaseModelOutput"), ("nllb-moe", "MoEModelOutput")])
def test_decoders_read_an_output_of_the_class_that_their_encoder_has(model_type, name):
    assert _output_class(build(config_of(model_type))).__name__ == name


def test_a_twin_draws_nothing_at_random():
    assert shrink(config_of("vibevoice_acoustic_tokenizer")).vae_std == 0.0


def test_what_cannot_be_mended_is_said():
    class Refusing:
        @classmethod
        def from_dict(cls, tree):
            raise ValueError("width is odd" if tree["width"] == 3 else "nothing fits")

    with pytest.raises(ValueError, match="nothing fits"):
        _validated(Refusing, {"width": 3}, {"width": 8})


def test_sections_that_only_the_code_knows():
    text = config_of("glm4v_moe_text")
    assert "mrope_section" not in (text.rope_parameters or {})
    small = shrink(text)
    heads = small.hidden_size // small.num_attention_heads
    rotated = int(heads * small.rope_parameters.get("partial_rotary_factor", 1.0)) // 2
    assert sum(small.rope_parameters["mrope_section"]) == rotated
    plain = shrink(config_of("llama"))
    assert "mrope_section" not in plain.rope_parameters
