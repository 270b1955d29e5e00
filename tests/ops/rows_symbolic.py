"""Sizes that are computed: sums, quotients, choices between them, and numbers read from tensors."""

from __future__ import annotations

import math

import torch
from op_case import Rows, exactly, f32, i64

ROWS = Rows("symbolic")
fn = ROWS.fn


def ones(*sizes) -> torch.Tensor:
    return torch.ones(*sizes)


fn("aten.sym_size.int", "as a number", lambda x: x * x.shape[1], f32("b", "s"))
fn("aten.sym_size.int", "as a float", lambda x: x / x.shape[1], f32("b", "s"))
fn("aten.sym_size.int", "in a comparison", lambda x: torch.arange(8) < x.shape[1], f32("b", "s"))
fn("_operator.add", "", lambda x: ones(x.shape[0] + x.shape[1]), f32("b", "s"))
fn("_operator.mul", "", lambda x: ones(x.shape[0] * x.shape[1], 2), f32("b", "s"))
fn("_operator.floordiv", "", lambda x: ones((x.shape[0] + 7) // 2), f32("b", "s"))
fn("_operator.mod", "", lambda x: ones(x.shape[1] % 4 + 1), f32("b", "s"))
fn("_operator.neg", "padding to a multiple", lambda x: torch.nn.functional.pad(x, (0, -x.shape[1] % 8)), f32("b", "s"))
fn("_operator.pow", "", lambda x: ones(x.shape[0] ** 2), f32("b", "s"))
fn("_operator.truediv", "", lambda x: x * (x.shape[0] / x.shape[1]), f32("b", "s"))
fn("torch.sym_max", "", lambda x: ones(torch.sym_max(x.shape[0], 4)), f32("b", "s"))
fn("torch.sym_min", "", lambda x: ones(torch.sym_min(x.shape[0], x.shape[1])), f32("b", "s"))
fn("torch.sym_float", "", lambda x: x * torch.sym_float(x.shape[0]), f32("b", "s"))
fn("math.trunc", "", lambda x: ones(math.trunc(x.shape[0] / 2) + 1), f32("b", "s"))
fn("torch._sym_sqrt", "", lambda x: x * torch._sym_sqrt(x.shape[0]), f32("b", "s"))
fn("torch.sym_ite", "", lambda x: ones(torch.sym_ite(x.shape[0] > 3, x.shape[0], x.shape[1])), f32("b", "s"))
fn("_operator.and_", "", lambda x: ones(torch.sym_ite((x.shape[0] > 3) & (x.shape[1] > 2), x.shape[0], x.shape[1])), f32("b", "s"))
fn("_operator.or_", "", lambda x: ones(torch.sym_ite((x.shape[0] > 3) | (x.shape[1] > 5), x.shape[0], x.shape[1])), f32("b", "s"))
fn("torch.sym_not", "", lambda x: ones(torch.sym_ite(torch.sym_not(x.shape[0] > 3), x.shape[0], x.shape[1])), f32("b", "s"))
fn("_operator.eq", "", lambda x: ones(torch.sym_ite(x.shape[0] == 5, 2, 3)), f32("b", "s"))
fn("_operator.ne", "", lambda x: ones(torch.sym_ite(x.shape[0] != 5, 2, 3)), f32("b", "s"))
fn("_operator.ge", "", lambda x: ones(torch.sym_ite(x.shape[0] >= 4, 2, 3)), f32("b", "s"))
fn("_operator.gt", "", lambda x: ones(torch.sym_ite(x.shape[0] > 4, 2, 3)), f32("b", "s"))
fn("_operator.le", "", lambda x: ones(torch.sym_ite(x.shape[0] <= 4, 2, 3)), f32("b", "s"))
fn("_operator.lt", "", lambda x: ones(torch.sym_ite(x.shape[0] < 4, 2, 3)), f32("b", "s"))


def _from_value(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
    length = n[0].item()
    torch._check(length >= 0)
    torch._check(length <= 100)
    return torch.zeros(length + 1, 3) + x[0, 0]


fn("_operator.add", "a number from a tensor", _from_value, f32("b", "s"), i64(2, v=exactly(3, 1)))
fn("aten.sym_size.int", "of a result whose size depends on values", lambda x: x[x > 0].shape[0] * x, f32("b", "s"))
