"""Plain modules with sub-graphs: cond, while_loop, scan, and regions under no_grad and autocast."""

from __future__ import annotations

import torch
from torch import nn
from torch._higher_order_ops import scan, while_loop

from .case import BATCH, BATCH_SEQ, DYNAMIC, Inputs, ModelCase, Sample, floats, make_distinct


class BranchingModel(nn.Module):
    """Nested conditions on data; the branches use weights and a symbolic size of the caller."""

    def __init__(self) -> None:
        super().__init__()
        self.left = nn.Linear(8, 8)
        self.right = nn.Linear(8, 8, bias=False)

    def forward(self, x: torch.Tensor, threshold: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        rows = x.shape[0]

        def positive(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            inner = torch.cond(
                t.abs().max() > 2.0, lambda u: u.tanh() * rows, lambda u: u.relu() + self.left.bias, (t,)
            )
            return self.left(inner), inner.sum(0)

        def negative(t: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            return self.right(t) / rows, t.amax(0)

        return torch.cond(x.sum() > threshold, positive, negative, (x,))


class ShapeBranchModel(nn.Module):
    """A condition on a size instead of a value: the predicate is a symbolic boolean."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cond(x.shape[0] * 2 > x.shape[1] + 3, lambda t: t.cumsum(0), lambda t: t.softmax(-1), (x,))


class FixedPointModel(nn.Module):
    """Iterates until the change is small or a limit is reached; carries an integer, a tensor and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(6, 6)

    def forward(self, x: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def unfinished(step, value, change):
            return (step < limit) & (change > 1e-3)

        def iterate(step, value, change):
            updated = 0.5 * value + 0.25 * torch.tanh(self.map(value))
            return step + 1, updated, (updated - value).abs().max()

        start = (torch.zeros((), dtype=torch.int64), x.clone(), torch.full((), float("inf")))
        steps, value, _ = while_loop(unfinished, iterate, start)
        return steps, value


class ScanModel(nn.Module):
    """A gated recurrence as a scan over time."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def step(state, token):
            updated = torch.sigmoid(self.gate(token)) * state + token
            return updated, updated * 2.0

        return scan(step, torch.zeros_like(x[0]), x, dim=0)


class RegionsModel(nn.Module):
    """Regions without gradient and under autocast, which become wrapped sub-graphs when traced with gradients."""

    def __init__(self) -> None:
        super().__init__()
        self.frozen = nn.Linear(8, 8)
        self.low = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            scale = self.frozen(x).mean(-1, keepdim=True)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            y = self.low(x) + scale
        return y.float() * scale


def case(name: str, make, traced: tuple, other: tuple, shapes: tuple, with_grad: bool = False) -> ModelCase:
    def build() -> Sample:
        return Sample(
            make_distinct(make()),
            Inputs(args=tuple(t() for t in traced)),
            shapes,
            Inputs(args=tuple(t() for t in other)),
        )

    return ModelCase(name, "control-flow", build, with_grad)


CASES = [
    case(
        "cond_nested",
        BranchingModel,
        (lambda: floats(4, 8), lambda: torch.tensor(-100.0)),
        (lambda: floats(7, 8), lambda: torch.tensor(100.0)),
        (BATCH, None),
    ),
    case("cond_on_shape", ShapeBranchModel, (lambda: floats(4, 8),), (lambda: floats(9, 3),), (BATCH_SEQ,)),
    case(
        "while_loop",
        FixedPointModel,
        (lambda: floats(3, 6), lambda: torch.tensor(5)),
        (lambda: floats(8, 6), lambda: torch.tensor(50)),
        (BATCH, None),
    ),
    case("scan", ScanModel, (lambda: floats(5, 2, 4),), (lambda: floats(9, 3, 4),), ({0: DYNAMIC, 1: DYNAMIC},)),
    case("wrapped_regions", RegionsModel, (lambda: floats(3, 8),), (lambda: floats(5, 8),), (BATCH,), with_grad=True),
]
