"""Code of half precision that asks whether numbers have become infinite is traced as if some had."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from argosy.capture.patches.overflow import overflow_taken  # noqa: E402

LARGEST = torch.finfo(torch.float16).max - 1000


def clamped(x):
    return torch.clamp(x, min=-LARGEST, max=LARGEST)


def by_finite(x):
    return clamped(x) if x.dtype == torch.float16 and not torch.isfinite(x).all() else x


def by_infinite(x):
    return clamped(x) if torch.isinf(x).any() else x


def as_tensor(x):
    """T5's way, which a graph can hold."""
    limit = torch.where(torch.isinf(x).any(), LARGEST, torch.finfo(x.dtype).max)
    return torch.clamp(x, min=-limit, max=limit)


class Layer(torch.nn.Module):
    def __init__(self, ask, dtype):
        super().__init__()
        self.ask, self.weight = ask, torch.nn.Parameter(torch.ones(4, dtype=dtype))

    def forward(self, x):
        with overflow_taken(self):
            return self.ask(x * self.weight)


@pytest.mark.parametrize("ask", [by_finite, by_infinite, as_tensor])
def test_what_has_overflowed_is_clamped(ask):
    layer = Layer(ask, torch.float16)
    x = torch.tensor([[1.5, -2.0, float("inf"), 0.0]], dtype=torch.float16)
    program = torch.export.export(layer, (x,), strict=False).module()
    for given in (x, x.clamp(max=100)):
        assert torch.equal(program(given), ask(given))


def test_other_questions_about_data_are_left():
    layer = Layer(lambda x: x * 2 if (x > 0).any() else x, torch.float16)
    with pytest.raises(Exception, match="data-dependent"):
        torch.export.export(layer, (torch.ones(1, 4, dtype=torch.float16),), strict=False)


def test_models_of_float32_are_left():
    with pytest.raises(Exception, match="data-dependent"):
        torch.export.export(Layer(by_infinite, torch.float32), (torch.ones(1, 4),), strict=False)
