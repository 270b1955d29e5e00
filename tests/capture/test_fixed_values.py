"""Traces of code that computes with values of grids and lengths."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from argosy.capture.components import Component, Shape, one_size  # noqa: E402
from argosy.capture.dims import observe_dims  # noqa: E402
from argosy.capture.trace import has_sizes_by_values, trace  # noqa: E402


class Encoder(torch.nn.Module):
    """What encoders of packed media do with grids and masks."""

    def forward(self, pixels, grid, mask):
        parts = pixels.split(grid.prod(-1).tolist())
        lengths = torch.zeros(len(grid) + 1, dtype=torch.long)
        lengths[1:] = grid.prod(-1).cumsum(0)
        pooled = []
        for part, (height, width) in zip(parts, grid, strict=True):
            picture = part.view(height, width, -1)
            if height > 1:
                picture = picture[: height // 2]
            pooled.append(picture.mean((0, 1)))
        places = torch.arange(len(pixels)) >= lengths[1]
        rows = torch.repeat_interleave(torch.stack(pooled), grid.prod(-1), dim=0)
        return (pixels + rows)[mask.bool()] * (1 + places[mask.bool()].float()[:, None])


def _inputs(model, shape):
    torch.manual_seed(shape.media)
    grid = torch.tensor([[2, 3], [4, 2 + shape.batch]])[: 1 + shape.media]
    count = int(grid.prod(-1).sum())
    mask = torch.ones(count, dtype=torch.long)
    mask[1] = 0
    return {"pixels": torch.rand(count, 4), "grid": grid, "mask": mask}


def _run(model, forward, inputs):
    return {"rows": forward(**inputs)}


def test_values_that_code_computes_with_are_part_of_the_graph():
    model = Encoder()
    component = Component("image_encoder", _inputs, _run, symbols=lambda shape: {"batch": shape.batch})
    dims = observe_dims(component, model)
    inputs = component.inputs(model, Shape(media=1))
    with pytest.raises(Exception, match="data-dependent|unbacked"):
        trace(model, component, inputs, dims)
    single = one_size(component, ("grid", "mask"))
    made = single.inputs(model, Shape(batch=7, media=0))
    assert made["grid"].tolist() == [[2, 3], [4, 3]], "one row of the larger media, whatever is asked for"
    traced = trace(model, single, made, dims, fixed=tuple(dims.ranges))
    assert list(traced.input_paths) == ["pixels"]
    torch.testing.assert_close(traced.program.module()(pixels=made["pixels"])["rows"], model(**made))
    (fixed,) = traced.specialized
    assert (fixed["input"], fixed["dim"], fixed["value"]) == ("pixels", 0, 18)
    assert "grid and mask" in fixed["reason"]


def test_sizes_that_values_tell_are_seen_in_a_graph():
    class Chosen(torch.nn.Module):
        def forward(self, x, mask):
            return x[mask]

    class Whole(torch.nn.Module):
        def forward(self, x, mask):
            return torch.where(mask, x, 0.0)

    inputs, shapes = (torch.rand(5), torch.rand(5) > 0.5), tuple({0: torch.export.Dim.AUTO} for _ in range(2))
    chosen, whole = (torch.export.export(each, inputs, dynamic_shapes=shapes, strict=False) for each in (Chosen(), Whole()))
    assert has_sizes_by_values(chosen) and not has_sizes_by_values(whole)
