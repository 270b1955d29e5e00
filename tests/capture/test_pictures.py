"""Pictures of any size: which sizes a capture is made and checked at, and that graphs are right at others."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from captured import capture, differences  # noqa: E402

from argosy.check.captures import edge_shapes  # noqa: E402
from argosy.capture.components import Component, Shape  # noqa: E402
from argosy.capture.dims import infer_dims  # noqa: E402
from argosy.capture.patches import tracing_patches  # noqa: E402
from argosy.capture.patches.sizes import ShortFormulas, sizes_as_symbols  # noqa: E402
from argosy.capture.session import _trace_freest  # noqa: E402
from argosy.structures import named_leaves  # noqa: E402
from argosy.capture.twin import Sizes, build, sample_inputs  # noqa: E402
from argosy.capture.twin.request import OWN, TRACED  # noqa: E402
from argosy.capture.twin.processor_sizes import processor_size, size_by_settings  # noqa: E402

SMALL = {"embedding_size": 8, "hidden_sizes": [8, 16], "depths": [1, 1]}


def difference_at(session, graphs, height: int, width: int) -> float:
    """How far the graph of the one component is from eager on a picture of this size."""
    (component,) = session.components
    picture = torch.randn(1, 3, height, width, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        want = named_leaves(component.run(session.twin, session.twin.forward, {"pixel_values": picture}))
    got = graphs[component.name]({"pixel_values": picture})
    return max(float((want[name] - got[name]).abs().max()) for name in want)


def test_height_and_width_are_free_where_the_code_takes_any(tmp_path):
    config = transformers.ResNetConfig(layer_type="basic", architectures=["ResNetForImageClassification"], **SMALL)
    session, graphs = capture(config, tmp_path)
    (item,) = graphs["model"].interface["inputs"]
    assert item["dims"] == ["batch", 3, "height", "width"]
    assert not differences(session, graphs)
    for height, width in ((64, 64), (90, 77), (224, 160)):
        assert difference_at(session, graphs, height, width) < 1e-5


def test_position_encodings_are_interpolated_at_their_own_size_too(tmp_path):
    """DINOv2 leaves them as they are there, unless torch.jit traces."""
    config = transformers.Dinov2Config(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, image_size=32, patch_size=8)
    session, graphs = capture(config, tmp_path)
    assert session.traced[0].guards == []
    assert graphs["model"].interface["inputs"][0]["dims"] == ["batch", 3, "height", "width"]
    for height, width in ((32, 32), (64, 64), (40, 96)):
        assert difference_at(session, graphs, height, width) < 1e-5


def test_the_check_calls_free_axes_at_several_sizes_the_processors_among_them():
    config = transformers.ResNetConfig(layer_type="basic", architectures=["ResNetForImageClassification"], **SMALL)
    twin = build(config)
    sizes = {tuple(sample_inputs(twin, Sizes(media=media, free_pictures=True))["pixel_values"].shape[2:])
             for media in (0, 1, OWN)}  # fmt: skip
    assert processor_size("resnet") in sizes
    assert len({height for height, _ in sizes}) == len({width for _, width in sizes}) == 3
    assert any(height != width for height, width in sizes)
    from argosy.capture.finding import find_components

    (component,) = find_components(twin)
    assert {shape.media for shape in edge_shapes(component)} == {0, 1, OWN}


def test_a_size_that_code_insists_on_is_the_configurations(tmp_path):
    config = transformers.ViTConfig(image_size=32, patch_size=8, hidden_size=16, num_hidden_layers=1,
                                    num_attention_heads=2, intermediate_size=16)  # fmt: skip
    config.architectures = ["ViTForImageClassification"]
    session, graphs = capture(config, tmp_path)
    (item,) = graphs["model"].interface["inputs"]
    assert item["dims"] == ["batch", 3, 32, 32]
    assert not differences(session, graphs)


class Stubborn(torch.nn.Module):
    """Takes any size, but fixes it while it is traced."""

    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.ones(1))

    def forward(self, pixel_values):
        return {"output": pixel_values * self.weight + sum(range(pixel_values.shape[-1]))}


def test_sizes_that_a_trace_fixes_are_those_that_the_model_was_made_for():
    sides = {0: (8, 8), 1: (12, 16), OWN: (24, 24), TRACED: (32, 40)}

    def inputs(model, shape):
        return {"pixel_values": torch.ones(shape.batch, 3, *sides[shape.media])}

    component = Component("model", inputs, lambda model, forward, given: forward(**given), traced_media=TRACED,
                          together=("height", "width"), own_media=OWN)  # fmt: skip
    calls = [{"pixel_values": (batch, 3, *sides[media])} for batch, media in ((2, 0), (3, 1))]
    dims = infer_dims(calls, [{"batch": 2}, {"batch": 3}])
    assert dims.names == {"pixel_values": {0: "batch", 2: "height", 3: "width"}}
    model = Stubborn()
    made = [inputs(model, Shape(media=media)) for media in (TRACED, OWN)]
    traced = _trace_freest(model, component, made, dims)
    assert {(item["dim"], item["value"]) for item in traced.specialized} == {(2, 24), (3, 24)}


class Countable(torch.nn.Module):
    """Makes numbers of its sizes."""

    def forward(self, pixel_values):
        height = int(pixel_values.shape[-2])
        half = int(pixel_values.shape[-1] / 2)
        assert isinstance(3, int) and not isinstance(3.0, int) and int("7") == 7
        return pixel_values.new_zeros(len(pixel_values), height, half)


def test_sizes_stay_symbols_where_code_makes_numbers_of_them():
    model = Countable()
    sizes = {"pixel_values": dict.fromkeys((0, 2, 3), torch.export.Dim.AUTO)}
    with sizes_as_symbols(model):
        program = torch.export.export(model, (), {"pixel_values": torch.ones(2, 3, 16, 24)}, dynamic_shapes=sizes)
    assert program.module()(pixel_values=torch.ones(5, 3, 10, 12)).shape == (5, 10, 6)
    assert "int" not in globals() and "len" not in globals()


def test_sizes_stay_symbols_in_the_code_of_models():
    from transformers.models.rt_detr import modeling_rt_detr as code

    class Grid(torch.nn.Module):
        def forward(self, picture):
            return torch.arange(code.torch_int(picture.shape[-2] / 2)) * code.torch_int(3.5)

    model = Grid()
    sizes = {"picture": {2: torch.export.Dim.AUTO}}
    with tracing_patches(model):
        program = torch.export.export(model, (), {"picture": torch.ones(1, 2, 32, 48)}, dynamic_shapes=sizes)
    for height in (8, 33):
        picture = torch.ones(1, 2, height, 48)
        assert torch.equal(program.module()(picture=picture), model(picture))


class Windowed(torch.nn.Module):
    """Pads to windows and cuts, again and again, as Swin does."""

    def forward(self, picture):
        for window in (3, 5, 7, 11):
            more = (window - picture.shape[-1] % window) % window
            picture = torch.nn.functional.pad(picture, (0, more))[..., :-1]
        return picture


def test_long_formulas_of_sizes_are_refused():
    model, picture = Windowed(), torch.ones(1, 50)
    sizes = {"picture": {1: torch.export.Dim.AUTO}}
    with pytest.raises(ValueError, match="long formula"), ShortFormulas():
        torch.export.export(model, (), {"picture": picture}, dynamic_shapes=sizes)
    with ShortFormulas():
        model(picture)


@pytest.mark.parametrize("shift", [1, 2])
def test_funnel_shifts_as_its_code_does(shift):
    from transformers.models.funnel import modeling_funnel as code

    scores = torch.randn(2, 3, 7, shift * 7 + 9)
    want = code._relative_shift_gather(scores, 9, shift)
    with tracing_patches(torch.nn.Linear(1, 1)):
        assert torch.equal(code._relative_shift_gather(scores, 9, shift), want)


@pytest.mark.parametrize("stride", [1, 2])
def test_padding_of_mobilenets_depends_on_no_branch(stride):
    from transformers.models.mobilenet_v2 import modeling_mobilenet_v2 as code

    class Padded(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.convolution = torch.nn.Conv2d(2, 2, 3, stride=stride, dilation=2 if stride == 1 else 1)

        def forward(self, picture):
            return code.apply_tf_padding(picture, self.convolution)

    model = Padded()
    sizes = {"picture": dict.fromkeys((2, 3), torch.export.Dim.AUTO)}
    with tracing_patches(model):
        program = torch.export.export(model, (), {"picture": torch.ones(1, 2, 32, 48)}, dynamic_shapes=sizes)
    for size in ((32, 48), (33, 48), (32, 51), (7, 9)):
        picture = torch.randn(1, 2, *size)
        assert torch.equal(program.module()(picture=picture), model(picture))


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({"size": 224}, (224, 224)),
        ({"size": {"height": 480, "width": 640}}, (480, 640)),
        ({"size": {"shortest_edge": 256}, "crop_size": {"height": 224, "width": 192}, "do_center_crop": True}, (224, 192)),
        ({"size": {"shortest_edge": 256}, "crop_size": 224, "do_center_crop": False}, (256, 256)),
        ({"size": {"shortest_edge": 800, "longest_edge": 1333}}, (800, 1066)),
        ({"size": {"shortest_edge": 800, "longest_edge": 900}}, (800, 900)),
        ({"size": [96, 128]}, (96, 128)),
        ({"size": 512, "do_resize": False}, None),
        ({"size": "large"}, None),
    ],
)
def test_sizes_of_processors(settings, size):
    assert size_by_settings(settings) == size


def test_sizes_of_processors_by_type():
    assert processor_size("no-such-type") == (224, 224)
    assert processor_size("rt_detr") == (640, 640)


def test_funnel_takes_texts_of_any_length(tmp_path):
    config = transformers.FunnelConfig(vocab_size=64, block_sizes=[1, 1, 1], num_decoder_layers=1, d_model=16, n_head=2,
                                       d_head=8, d_inner=16, architectures=["FunnelModel"])  # fmt: skip
    session, graphs = capture(config, tmp_path)
    assert {item["name"]: item["dims"] for item in graphs["model"].interface["inputs"]}["input_ids"] == ["batch", "sequence"]
    assert not differences(session, graphs, [Shape(2, 19, 1, 3), Shape(1, 12, 1, 0), Shape(3, 40, 1, 0)])
