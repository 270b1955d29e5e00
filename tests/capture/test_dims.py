"""Axes inferred from shapes alone."""

from __future__ import annotations

import pytest

from argosy.observer.dims import DimExpr, dim_sizes, infer_dims


def decoder_call(batch: int, sequence: int, past: int) -> dict[str, tuple[int, ...]]:
    shapes = {
        "input_ids": (batch, sequence),
        "attention_mask": (batch, past + sequence),
        "position_ids": (batch, sequence),
    }
    for layer in range(2):
        for part in ("keys", "values"):
            shapes[f"past_key_values.{layer}.{part}"] = (batch, 4, past, 16)
    return shapes


def text(dims: dict[str, dict[int, DimExpr]]) -> dict[str, list[str]]:
    return {name: [str(dim) for dim in axes.values()] for name, axes in dims.items()}


def test_decoder_with_cache():
    dims = infer_dims([decoder_call(2, 11, 0), decoder_call(3, 1, 11), decoder_call(2, 5, 23)])
    cache = ["batch", "4", "past_sequence", "16"]
    assert text(dims) == {
        "input_ids": ["batch", "sequence"],
        "attention_mask": ["batch", "past_sequence + sequence"],
        "position_ids": ["batch", "sequence"],
        "past_key_values.0.keys": cache,
        "past_key_values.0.values": cache,
        "past_key_values.1.keys": cache,
        "past_key_values.1.values": cache,
    }


def test_generate_without_cache_in_the_first_call():
    prefill = {name: shape for name, shape in decoder_call(2, 8, 0).items() if not name.startswith("past")}
    dims = infer_dims([prefill, decoder_call(2, 1, 8), decoder_call(2, 1, 9)])
    assert str(dims["attention_mask"][1]) == "past_sequence + sequence"
    assert str(dims["past_key_values.0.keys"][2]) == "past_sequence"
    assert dims["input_ids"][0] == DimExpr.fixed(2)


def test_unfilled_cache_counts_as_missing():
    first = {**decoder_call(2, 8, 0), "past_key_values.0.keys": (0,), "past_key_values.1.keys": (2, 0)}
    dims = infer_dims([first, decoder_call(3, 1, 8), decoder_call(3, 1, 9)])
    assert str(dims["past_key_values.0.keys"][2]) == str(dims["past_key_values.1.keys"][2]) == "past_sequence"


def test_different_ranks_are_refused():
    with pytest.raises(ValueError, match="'mask' has shapes of different ranks"):
        infer_dims([{"mask": (2, 3)}, {"mask": (2, 1, 3)}])


def test_one_call_fixes_everything():
    assert all(dim.is_fixed for axes in infer_dims([decoder_call(2, 11, 3)]).values() for dim in axes.values())
    assert infer_dims([]) == {}


def test_equal_sizes_in_one_call_do_not_make_axes_equal():
    dims = infer_dims([{"a": (7,), "b": (7,)}, {"a": (5,), "b": (6,)}])
    assert dims["a"][0] != dims["b"][0]


def test_axes_known_in_different_calls_are_not_merged_without_evidence():
    # b agrees with a where both are known, but there a shows a single size.
    dims = infer_dims([{"a": (7,), "b": (7,)}, {"a": (5,)}, {"b": (9,)}])
    assert dims["a"][0] != dims["b"][0]


def test_number_needs_three_calls():
    calls = [{"ids": (2, past), "mask": (2, past + 1)} for past in (5, 9, 14)]
    assert str(infer_dims(calls)["mask"][1]) == "ids_1 + 1"
    assert str(infer_dims(calls[:2])["mask"][1]) == "mask_1"


def test_multiple_needs_three_calls():
    calls = [{"tokens": (2, n), "frames": (2, 4 * n)} for n in (3, 5, 6)]
    assert str(infer_dims(calls)["frames"][1]) == "4*tokens_1"
    assert str(infer_dims(calls[:2])["frames"][1]) == "frames_1"


def test_the_batch_is_no_part_of_a_sum():
    calls = [{"input_ids": (b, s), "other": (b + s,)} for b, s in ((2, 9), (3, 7), (4, 15))]
    assert str(infer_dims(calls)["other"][0]) == "other_0"


def test_sum_of_a_sum_is_written_in_base_dimensions():
    calls = [
        {"input_ids": (2, s), "past_key_values.0": (2, 4, p, 8), "attention_mask": (2, p + s), "bias": (p + s + 1,)}
        for s, p in ((11, 3), (1, 14), (7, 20), (2, 0))
    ]
    assert str(infer_dims(calls)["bias"][0]) == "past_sequence + sequence + 1"


def test_encoder_decoder_cache():
    calls = [
        {
            "decoder_input_ids": (b, d),
            "encoder_outputs.last_hidden_state": (b, e, 32),
            "past_key_values.self.0.keys": (b, 4, p, 8),
            "past_key_values.cross.0.keys": (b, 4, e, 8),
            "decoder_attention_mask": (b, p + d),
        }
        for b, d, e, p in ((1, 1, 13, 4), (2, 3, 17, 9), (3, 5, 29, 0))
    ]
    assert text(infer_dims(calls)) == {
        "decoder_input_ids": ["batch", "decoder_sequence"],
        "encoder_outputs.last_hidden_state": ["batch", "encoder_sequence", "32"],
        "past_key_values.self.0.keys": ["batch", "4", "past_sequence", "8"],
        "past_key_values.cross.0.keys": ["batch", "4", "encoder_sequence", "8"],
        "decoder_attention_mask": ["batch", "decoder_sequence + past_sequence"],
    }


def test_images_and_patches():
    images = infer_dims([{"pixel_values": (1, 3, 30, 20)}, {"pixel_values": (2, 3, 40, 28)}])
    assert text(images) == {"pixel_values": ["batch", "3", "height", "width"]}
    calls = [
        {"pixel_values": (16, 588), "image_grid_thw": (1, 3)},
        {"pixel_values": (50, 588), "image_grid_thw": (2, 3)},
    ]
    assert text(infer_dims(calls)) == {"pixel_values": ["patches", "588"], "image_grid_thw": ["images", "3"]}


def test_every_call_agrees_with_the_result():
    calls = [decoder_call(b, s, p) for b, s, p in ((1, 1, 0), (3, 17, 0), (2, 1, 40), (5, 4, 6))]
    dims = infer_dims(calls)
    for call in calls:
        sizes = dim_sizes(dims, call)
        for name, shape in call.items():
            assert tuple(dim.evaluate(sizes) for dim in dims[name].values()) == shape


def test_order_of_tensors_changes_no_meaning():
    calls = [decoder_call(2, 11, 0), decoder_call(3, 1, 11), decoder_call(2, 5, 23)]
    backwards = [dict(reversed(call.items())) for call in calls]
    assert text(infer_dims(calls)) == text(infer_dims(backwards))


def test_expressions():
    total = DimExpr.symbol("a") + DimExpr.symbol("b").scaled(2) + DimExpr.fixed(3)
    assert str(total) == "a + 2*b + 3" and total.evaluate({"a": 1, "b": 5}) == 14
    assert not total.is_symbol and total.symbols == ("a", "b")
    assert str(DimExpr.fixed(0)) == "0" and DimExpr.symbol("a").is_symbol
