"""Multimodal models in parts: each part equals eager at other sizes, and the parts together are the whole."""

from __future__ import annotations

import functools

import pytest

torch = pytest.importorskip("torch", reason="captures are made with PyTorch")
transformers = pytest.importorskip("transformers", reason="the models are transformers'")

from argosy.check.captures import compare, edge_shapes  # noqa: E402
from argosy.capture.components import Shape  # noqa: E402
from argosy.capture.multimodal import record_at, sample_at  # noqa: E402
from argosy.capture.multimodal_cut import record  # noqa: E402
from argosy.capture.patches.vision import masked_scatter_rows, segmented_attention  # noqa: E402
from argosy.capture.reader import read_capture  # noqa: E402
from argosy.capture.session import open_session, trace_session, write_session  # noqa: E402
from argosy.structures import identifier, named_leaves  # noqa: E402
from argosy.capture.twin import shrink  # noqa: E402
from argosy.capture.wiring import wiring  # noqa: E402
from thorough import thorough  # noqa: E402

FAMILIES = (thorough("llava"), "qwen2_5_vl", thorough("qwen3_vl"), "gemma3")


@pytest.fixture(scope="module")
def captured(tmp_path_factory):
    @functools.cache
    def make(family: str):
        session = open_session(shrink(transformers.CONFIG_MAPPING[family]()))
        trace_session(session)
        path = tmp_path_factory.mktemp(family) / "model.capture"
        write_session(session, path, {})
        return session, read_capture(path, session.twin.state_dict())

    return make


def test_components_and_wiring(captured):
    session, _ = captured("qwen3_vl")
    assert [each.name for each in session.components] == ["image_encoder", "embedding", "decode"]
    wires = {(wire["from"], wire["to"]) for wire in wiring(session.traced)}
    assert ("image_encoder.image_features", "embedding.image_features") in wires
    assert ("image_encoder.image_deepstack_features.0", "embedding.image_deepstack_features.0") in wires
    assert ("embedding.inputs_embeds", "decode.inputs_embeds") in wires
    assert ("embedding.visual_pos_masks", "decode.visual_pos_masks") in wires


def test_features_may_be_absent_by_their_range(captured):
    session, _ = captured("llava")
    dims = session.dims["embedding"]
    assert dims.names["image_features"] == {0: "image_tokens"}
    assert dims.ranges["image_tokens"] == (0, None)
    assert dims.ranges["sequence"] == (1, None)


def test_an_encoder_of_texts_and_pictures_has_a_decoder():
    session = open_session(shrink(transformers.CONFIG_MAPPING["florence2"]()))
    assert [each.name for each in session.components] == ["image_encoder", "embedding", "encoder", "decoder"]
    encoder, decoder = session.dims["encoder"], session.dims["decoder"]
    assert encoder.names["inputs_embeds"] == encoder.names["attention_mask"] == {0: "batch", 1: "encoder_sequence"}
    assert decoder.names["encoder_hidden_states"][1] == decoder.names["attention_mask"][1] == "encoder_sequence"


@pytest.mark.parametrize("family", FAMILIES)
def test_each_component_at_other_sizes(captured, family):
    session, graphs = captured(family)
    failed = []
    for component in session.components:
        for shape in edge_shapes(component, (8,)):
            result = compare(component, graphs[component.name], session.twin, shape)
            if not result.ok:
                failed.append(result)
    assert not failed


@pytest.mark.parametrize("family", FAMILIES)
def test_components_together_are_the_model(captured, family):
    """A prompt with images through every component, then one more token, as an engine would; the model itself is called
    with tokens and pixels."""
    session, graphs = captured(family)
    model = session.twin
    shape = Shape(2, 9, 0, 0)
    given = sample_at(model, shape)
    with torch.no_grad():
        want = model(**given, use_cache=False).logits
    encoder, embedding, decode = (each for each in session.components)
    features = graphs["image_encoder"](_flat(encoder.inputs(model, shape)))
    inputs = {**_flat(embedding.inputs(model, shape)), **_flat(features)}
    merged = _flat(graphs["embedding"](inputs))
    empty = _flat(decode.inputs(model, Shape(2, 4, 0, 0)))
    inputs = {**empty, **_flat(given), **merged}
    got = graphs["decode"](inputs)
    assert (got["logits"] - want).abs().max() < 1e-5

    token = torch.full((2, 1), 5)
    nothing = {name: torch.zeros(0, 64) for name in _flat(features)}
    merged = _flat(graphs["embedding"]({"input_ids": token, **nothing}))
    ids = torch.cat([given["input_ids"], token], dim=1)
    after = given["position_ids"].amax(dim=(0, 2) if given["position_ids"].dim() == 3 else 1) + 1
    position = after[None, :, None].expand(3, 2, 1) if given["position_ids"].dim() == 3 else after[:, None]
    step = {
        **{identifier(name.replace("present", "past_key_values")): value for name, value in got.items()},
        **merged,
        "attention_mask": torch.ones_like(ids),
        "position_ids": position,
        "token_type_ids": torch.cat([given.get("token_type_ids", given["input_ids"]), torch.zeros_like(token)], dim=1),
    }
    stepped = graphs["decode"](step)["logits"]
    longer = {**given, "input_ids": ids, "attention_mask": torch.ones_like(ids)}
    longer["position_ids"] = torch.cat([given["position_ids"], position], dim=-1)
    for name in ("token_type_ids", "mm_token_type_ids"):
        if name in given:
            longer[name] = torch.cat([given[name], torch.zeros_like(token)], dim=1)
    with torch.no_grad():
        want = model(**longer, use_cache=False).logits[:, -1:]
    assert (stepped - want).abs().max() < 1e-5


def _flat(values):
    return {identifier(name): value for name, value in named_leaves(values).items()}


def test_images_of_different_sizes_in_one_call(captured):
    """Windows, positions and boundaries of sequences of each picture stay its own."""
    session, graphs = captured("qwen2_5_vl")
    model = session.twin
    given = sample_at(model, Shape(2, 6, 0, 0))
    merge = model.config.vision_config.spatial_merge_size
    grid = torch.tensor([[1, 2 * merge, 5 * merge], [1, 7 * merge, 3 * merge], [2, 4 * merge, 4 * merge]])
    patches = int(grid.prod(-1).sum())
    width = given["pixel_values"].shape[1]
    pixels = torch.randn(patches, width, generator=torch.Generator().manual_seed(1))
    tokens = patches // merge**2
    ids = torch.full((1, tokens + 2), 5)
    ids[0, 1:-1] = model.config.image_token_id
    inputs = {"input_ids": ids, "pixel_values": pixels, "image_grid_thw": grid, "attention_mask": torch.ones_like(ids)}
    inputs["position_ids"] = torch.arange(tokens + 2)[None, None].expand(3, 1, -1)
    recording = record(model, inputs)
    graph = graphs["image_encoder"]
    got = graph({"pixel_values": pixels, **recording.geometry["image"]})["image_features"]
    assert (got - recording.fields["image_features"]).abs().max() < 1e-5
    one = record(model, {**inputs, "image_grid_thw": grid.flip(0)}).fields["image_features"]
    assert (one - got).abs().max() > 1e-3  # the order of sizes makes a difference


def test_masked_scatter_by_rows():
    base = torch.arange(24.0).reshape(2, 4, 3)
    mask = torch.tensor([[True, False, True, False], [False, True, True, False]])
    source = -torch.arange(1.0, 13.0).reshape(4, 3)
    for form in (mask, mask[..., None], mask[..., None].expand_as(base)):
        wanted = base.masked_scatter(mask[..., None].expand_as(base), source)
        assert torch.equal(masked_scatter_rows(base, form, source), wanted)
    nothing = masked_scatter_rows(base, torch.zeros_like(mask), source[:0])
    assert torch.equal(nothing, base)


def test_placeholders_without_features_keep_their_embeddings():
    base = torch.arange(24.0).reshape(2, 4, 3)
    mask = torch.tensor([[True, False, True, False], [False, True, True, False]])
    source = -torch.arange(1.0, 7.0).reshape(2, 3)
    wanted = base.clone()
    wanted[0, 0], wanted[0, 2] = source
    assert torch.equal(masked_scatter_rows(base, mask, source), wanted)
    assert torch.equal(masked_scatter_rows(base, mask, source[:0]), base)


def test_segments_attend_to_themselves():
    query, key, value = (torch.randn(1, 2, 7, 4, generator=torch.Generator().manual_seed(i)) for i in range(3))
    bounds = torch.tensor([0, 3, 4, 7])
    got, _ = segmented_attention(None, query, key, value, None, scaling=0.5, cu_seq_lens_q=bounds)
    parts = [
        torch.nn.functional.scaled_dot_product_attention(
            *(each[:, :, start:stop] for each in (query, key, value)), scale=0.5
        )
        for start, stop in ((0, 3), (3, 4), (4, 7))
    ]
    assert (got - torch.cat(parts, dim=2).transpose(1, 2)).abs().max() < 1e-6


def test_the_check_notices_a_lost_feature(captured):
    session, graphs = captured("llava")
    embedding = next(each for each in session.components if each.name == "embedding")
    inputs = _flat(embedding.inputs(session.twin, Shape(2, 9, 0, 0)))
    wanted = record_at(session.twin, Shape(2, 9, 0, 0)).received["inputs_embeds"]
    inputs["image_features"] = inputs["image_features"].roll(1, dims=0)
    got = graphs["embedding"](inputs)["inputs_embeds"]
    assert (got - wanted).abs().max() > 1e-3
