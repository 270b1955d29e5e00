"""Complex numbers, which ONNX Runtime lacks: they come from real ones and become such again."""

from __future__ import annotations

import torch
from op_case import Rows, f32

ROWS = Rows("complex_numbers")
fn = ROWS.fn
PAIRS = f32("b", "s", 4, 2)
real = torch.view_as_real


def as_complex(x: torch.Tensor) -> torch.Tensor:
    return torch.view_as_complex(x)


fn("aten.view_as_complex.default", "and back", lambda x: real(as_complex(x)), PAIRS)
fn("aten.view_as_real.default", "after a product", lambda x, y: real(as_complex(x) * as_complex(y)), PAIRS, PAIRS)
fn("aten.polar.default", "", lambda r, phi: real(torch.polar(r, phi)), f32("b", 4, v="positive"), f32("b", 4))
fn("aten.complex.default", "", lambda re, im: real(torch.complex(re, im)), f32("b", 4), f32("b", 4))
fn("aten.mul.Tensor", "a complex and a real one", lambda x, y: real(as_complex(x) * y), PAIRS, f32("b", "s", 4))
fn("aten.mul.Tensor", "a complex one and a number", lambda x: real(as_complex(x) * 2.5), PAIRS)
fn("aten.mul.Tensor", "broadcast", lambda x, y: real(as_complex(x) * as_complex(y)), PAIRS, f32("s", 4, 2))
fn("aten.add.Tensor", "two", lambda x, y: real(as_complex(x) + as_complex(y)), PAIRS, PAIRS)
fn("aten.sub.Tensor", "two", lambda x, y: real(as_complex(x) - as_complex(y)), PAIRS, PAIRS)
fn("aten.div.Tensor", "by a real one", lambda x: real(as_complex(x) / 2.0), PAIRS)
fn("aten.abs.default", "", lambda x: as_complex(x).abs(), PAIRS)
fn("aten.real.default", "", lambda x: as_complex(x).real, PAIRS)
fn("aten.imag.default", "", lambda x: as_complex(x).imag, PAIRS)
fn("aten.angle.default", "", lambda x: as_complex(x).angle(), PAIRS)
fn("aten.neg.default", "", lambda x: real(-as_complex(x)), PAIRS)
fn("aten.exp.default", "of imaginary numbers", lambda x: real(torch.exp(torch.complex(torch.zeros_like(x), x))), f32("b", 4))
fn("aten.unsqueeze.default", "a view of complex ones", lambda x: real(as_complex(x).unsqueeze(1)), PAIRS)
fn("aten.reshape.default", "merged", lambda x: real(as_complex(x).reshape(x.shape[0], -1)), PAIRS)
fn("aten.view.default", "", lambda x: real(as_complex(x).view(x.shape[0], 1, x.shape[1], 4)), PAIRS)
fn("aten.transpose.int", "", lambda x: real(as_complex(x).transpose(1, 2)), PAIRS)
fn("aten.slice.Tensor", "", lambda x: real(as_complex(x)[:, 1:3]), PAIRS)
fn("aten.select.int", "", lambda x: real(as_complex(x)[:, 0]), PAIRS)
fn("aten.index_select.default", "rows of a table", lambda x: real(as_complex(x).index_select(1, torch.tensor([0, 0]))), PAIRS)
fn("aten.cat.default", "two", lambda x, y: real(torch.cat([as_complex(x), as_complex(y)], 1)), PAIRS, PAIRS)
fn("aten.stack.default", "two", lambda x, y: real(torch.stack([as_complex(x), as_complex(y)], 1)), PAIRS, PAIRS)
fn("aten.expand.default", "", lambda x: real(as_complex(x)[:, :, None].expand(-1, -1, 3, -1)), PAIRS)
fn("aten.sum.dim_IntList", "", lambda x: real(as_complex(x).sum(1)), PAIRS)
fn("aten.where.self", "", lambda x, y: real(torch.where(x[..., 0] > 0, as_complex(x), as_complex(y))), PAIRS, PAIRS)
fn("aten.mul.Tensor", "frequencies by positions", lambda x: real(torch.polar(torch.ones_like(x), x)[:, None] * torch.polar(torch.ones(4), torch.arange(4.0))), f32("b"))


def _rotary(x: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """Rotary embeddings as DeepSeek's models write them."""
    angles = positions[..., None] * torch.tensor([1.0, 0.1])
    rotation = torch.polar(torch.ones_like(angles), angles)
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * rotation.unsqueeze(1)).flatten(3).type_as(x)


fn("aten.polar.default", "rotary embeddings", _rotary, f32("b", 3, "s", 4), f32("b", "s", v="whole"))
