"""Small modules, each for one feature of exported graphs that the architectures rarely or never show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from .case import AUTO, BATCH, BATCH_SEQ, DYNAMIC, Inputs, ModelCase, Sample, floats, make_distinct


class SymbolicSizes(nn.Module):
    """Arithmetic on sizes that stays in the graph, sizes as outputs, an integer input that is not fixed."""

    def forward(self, x: torch.Tensor, y: torch.Tensor, repeat: int) -> dict[str, Any]:
        a, b = x.shape[0], y.shape[0]
        middle = (a + b) // 2
        return {
            "half": torch.ones(middle, 3) * float("-inf"),
            "wide": torch.zeros(torch.sym_max(a, b), torch.sym_min(a, b + 1)),
            "mask": torch.full((a, a), float("-inf")).triu(1),
            "nan": torch.full((b % 3 + 1,), float("nan")),
            "scaled": x * torch.sym_float(x.shape[1]) ** -0.5 * (a * b) + torch.sym_sqrt(b),
            "power": torch.arange(a**2 - a),
            "repeated": y.repeat(repeat, 2),
            "sizes": [a * 2, middle, repeat + 1, (a + 7) // 4 * 4],
            "parity": torch.full((2,), torch.sym_ite(a % 2 == 0, a, b)),
        }


class ComplexRotary(nn.Module):
    """Rotary embedding as complex numbers, with a complex buffer and a complex scalar."""

    def __init__(self) -> None:
        super().__init__()
        frequencies = torch.outer(torch.arange(16.0), 1.0 / (100.0 ** (torch.arange(4.0) / 4)))
        self.register_buffer("rotation", torch.polar(torch.ones_like(frequencies), frequencies))
        self.project = nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, phase: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        pairs = torch.view_as_complex(self.project(x).unflatten(-1, (4, 2)))
        turned = pairs * self.rotation[: x.shape[1]] * torch.polar(torch.ones_like(phase), phase)[:, None, None]
        spectrum = torch.fft.rfft(x, dim=1)
        return torch.view_as_real(turned).flatten(-2), turned * (0.5 + 2j), spectrum.abs()


class TiedWeights(nn.Module):
    """One parameter under two names, two parameters that are views of one storage, one transposed in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.embed = nn.Embedding(20, 8)
        self.head = nn.Linear(8, 20, bias=False)
        self.head.weight = self.embed.weight
        storage = torch.randn(4, 8)
        self.upper = nn.Parameter(storage[:2])
        self.lower = nn.Parameter(storage[2:])
        self.turned = nn.Parameter(torch.randn(8, 8).t())

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        hidden = self.embed(ids) @ self.turned
        return self.head(hidden * self.upper.sum(0) - self.lower.prod(0))


class DataDependent(nn.Module):
    """Sizes that only the data tells: nonzero, a boolean mask, a value read out of a tensor."""

    def forward(
        self, x: torch.Tensor, count: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        n = count.item()
        torch._check(n >= 2)
        torch._check(n <= x.shape[0])
        head = x[:n] * 2
        positive = x[x[:, 0] > 0]
        where = torch.nonzero(x > 1.0)
        return head, positive.sum(0), where, torch.arange(n * 2 + 1)


class Resize(nn.Module):
    """Interpolation by factors and by sizes, in three modes, with a channels-last copy."""

    def forward(self, image: torch.Tensor) -> tuple[torch.Tensor, ...]:
        nearest = F.interpolate(image, scale_factor=2.0)
        linear = F.interpolate(image, scale_factor=(1.5, 0.5), mode="bilinear", align_corners=False)
        cubic = F.interpolate(image, size=(9, 7), mode="bicubic", antialias=True)
        last = image.contiguous(memory_format=torch.channels_last)
        return (
            nearest,
            linear,
            cubic,
            F.pixel_unshuffle(F.pad(last, (1, 1, 1, 1), value=-1.0), 2),
            F.adaptive_avg_pool2d(last, (2, None)),
        )


class Recurrent(nn.Module):
    """LSTM and GRU: ops with lists of weights, and several results."""

    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(6, 8, num_layers=2, bidirectional=True, batch_first=True)
        self.gru = nn.GRU(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        hidden, _ = self.lstm(x)
        return self.gru(hidden)


class ManyTypes(nn.Module):
    """Buffers and casts of many element types, and quantised arithmetic by hand."""

    def __init__(self) -> None:
        super().__init__()
        for dtype in (torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64):
            self.register_buffer("as_" + str(dtype).removeprefix("torch."), torch.randint(0, 100, (4,)).to(dtype))
        for dtype in (torch.float64, torch.float16, torch.bfloat16, torch.float8_e4m3fn, torch.float8_e5m2):
            self.register_buffer("as_" + str(dtype).removeprefix("torch."), torch.randn(4).to(dtype))
        self.register_buffer("flags", torch.tensor([True, False, True, True]))
        self.register_buffer("scalar", torch.tensor(3.25))
        self.register_buffer("empty", torch.zeros(0, 4))

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        quantised = torch.clamp(torch.round(x / self.scalar) + 3, -128, 127).to(torch.int8)
        return [
            quantised,
            (quantised.to(torch.int16) * self.as_int8 + self.as_uint8).sum(0, dtype=torch.int32),
            x.double() @ self.as_float64,
            x.half() + self.as_float16,
            x.bfloat16() * self.as_bfloat16,
            x * self.as_float8_e4m3fn.float() + self.as_float8_e5m2.to(x.dtype),
            torch.where(self.flags, x, self.as_int64),
            (self.as_int16 ^ 5) << 1,
            self.as_int32 // 7,
            torch.cat([self.empty, x]),
            x.to(torch.float8_e4m3fn).view(torch.uint8),
        ]


class Indexing(nn.Module):
    """Slices, gathers, index lists with holes, functions whose options are strings, constants made in forward()."""

    def forward(
        self,
        x: torch.Tensor,
        rows: torch.Tensor,
        names: dict[str, torch.Tensor],
        scale: float = 0.5,
        mode: str = "floor",
        extra: Any = None,
    ) -> tuple:
        table = torch.tensor([[1.0, 2.0], [3.0, float("inf")]])
        order = torch.tensor([2, 0, 1])
        y = torch.div(x, scale, rounding_mode=mode)
        top = torch.topk(x, 2, dim=-1)
        return (
            y[:, :, order],
            x[rows, :, rows],
            x[:, None, 1::2, ...].flip(-1),
            F.gelu(x, approximate="tanh"),
            top.values,
            top.indices,
            torch.einsum("bij,kj->bik", x[..., :2], table),
            x.scatter(1, rows[:, None, None].expand(-1, 1, x.shape[2]), 9.0),
            torch.stack(x.unbind(1)[::-1]),
            sum(names.values()),
            None,
            extra,
            torch.bucketize(x, torch.tensor([-1.0, 0.0, 1.0]), right=True, out_int32=True),
        )


def case(name: str, make: Callable[[], nn.Module], traced: Callable, other: Callable, shapes: Any) -> ModelCase:
    return ModelCase(name, "feature", lambda: Sample(make_distinct(make()), Inputs(traced()), shapes, Inputs(other())))


def indexing() -> ModelCase:
    def inputs(batch: int) -> Inputs:
        names = {"b": floats(batch), "a": floats(batch)}
        return Inputs((floats(batch, 3, 4), torch.arange(batch) % 3, names), {"scale": 0.25, "mode": "trunc"})

    shapes = {"x": BATCH, "rows": BATCH, "names": {"b": BATCH, "a": BATCH}, "scale": None, "mode": None}
    return ModelCase("indexing", "feature", lambda: Sample(Indexing().eval(), inputs(3), shapes, inputs(5)))


CASES = [
    case(
        "symbolic_sizes",
        SymbolicSizes,
        lambda: (floats(5, 4), floats(7), 3),
        lambda: (floats(8, 6), floats(4), 2),
        (BATCH_SEQ, BATCH, DYNAMIC),
    ),
    case(
        "complex_rotary",
        ComplexRotary,
        lambda: (floats(2, 5, 8), floats(2)),
        lambda: (floats(3, 11, 8), floats(3)),
        (BATCH_SEQ, BATCH),
    ),
    case(
        "tied_weights",
        TiedWeights,
        lambda: (torch.arange(12).view(3, 4),),
        lambda: (torch.arange(10).view(2, 5),),
        (BATCH_SEQ,),
    ),
    case(
        "data_dependent",
        DataDependent,
        lambda: (floats(6, 4), torch.tensor(3)),
        lambda: (floats(9, 4), torch.tensor(7)),
        (BATCH, None),
    ),
    case(
        "interpolate",
        Resize,
        lambda: (floats(2, 3, 8, 6),),
        lambda: (floats(3, 3, 10, 12),),
        ({0: DYNAMIC, 2: AUTO, 3: AUTO},),
    ),
    case("lstm_gru", Recurrent, lambda: (floats(2, 5, 6),), lambda: (floats(3, 5, 6),), (BATCH,)),
    case("many_types", ManyTypes, lambda: (floats(3, 4),), lambda: (floats(5, 4),), (BATCH,)),
    indexing(),
]
