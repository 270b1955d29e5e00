"""Writes: to fresh tensors, to views of them, to inputs and to buffers."""

from __future__ import annotations

import torch
from op_case import Rows, b8, below, exactly, f32, i64
from torch import nn

ROWS = Rows("inplace")
fn, module = ROWS.fn, ROWS.module


def fresh(op: str, change, *inputs, label: str = "", tolerance: float | None = None) -> None:
    """A write to a copy of the first input, which is then read."""

    def function(x: torch.Tensor, *others: torch.Tensor) -> torch.Tensor:
        y = x.clone()
        change(y, *others)
        return y * 2 if y.dtype != torch.bool else ~y

    fn(op, label or "a fresh tensor", function, *inputs, tolerance=tolerance)


X = f32("b", 6)
for name in ("add", "sub", "mul", "div"):
    fresh(f"aten.{name}_.Tensor", lambda y, z, name=name: getattr(y, f"{name}_")(z), X, f32("b", 6, v="nonzero"))
    fresh(f"aten.{name}_.Tensor", lambda y, name=name: getattr(y, f"{name}_")(2.5), X, label="a number")
fresh("aten.add_.Tensor", lambda y, z: y.add_(z), i64("b"), i64("b"), label="integers")
fresh("aten.add_.Tensor", lambda y, z: y.add_(z, alpha=2), X, X, label="alpha")
fresh("aten.div_.Tensor_mode", lambda y: y.div_(2, rounding_mode="floor"), i64("b"))
fresh("aten.floor_divide_.Scalar", lambda y: torch.ops.aten.floor_divide_.Scalar(y, 2), i64("b"))
fresh("aten.remainder_.Scalar", lambda y: y.remainder_(3), i64("b"))
fresh("aten.pow_.Scalar", lambda y: y.pow_(2), X)
for name in ("neg", "abs", "exp", "sin", "cos", "tanh", "sigmoid", "relu", "floor", "ceil", "round", "square", "silu",
             "zero", "logical_not", "hardswish", "elu", "hardsigmoid"):  # fmt: skip
    full = f"aten.{name}_.default"
    fresh(full, lambda y, full=full: _overload(full)(y), X)
for name in ("sqrt", "rsqrt", "log", "reciprocal"):
    fresh(f"aten.{name}_.default", lambda y, name=name: getattr(y, f"{name}_")(), f32("b", 6, v="positive"))
fresh("aten.leaky_relu_.default", lambda y: torch.ops.aten.leaky_relu_.default(y, 0.2), X)
fresh("aten.hardtanh_.default", lambda y: torch.ops.aten.hardtanh_.default(y, 0.0, 1.0), X)
fresh("aten.gelu_.default", lambda y: torch.ops.aten.gelu_.default(y), X)
fresh("aten.clamp_.default", lambda y: y.clamp_(-1, 1), X)
fresh("aten.clamp_min_.default", lambda y: y.clamp_min_(0.5), X)
fresh("aten.clamp_max_.default", lambda y: y.clamp_max_(0.5), X)
fresh("aten.bitwise_not_.default", lambda y: y.bitwise_not_(), b8("b"))
fresh("aten.__ior__.Tensor", lambda y, z: y.__ior__(z), b8("b"), b8("b"))
fresh("aten.__iand__.Tensor", lambda y, z: y.__iand__(z), b8("b"), b8("b"))
fresh("aten.__ixor__.Tensor", lambda y, z: y.__ixor__(z), b8("b"), b8("b"))
fresh("aten.bitwise_and_.Tensor", lambda y, z: y.bitwise_and_(z), b8("b"), b8("b"))
fresh("aten.bitwise_or_.Tensor", lambda y, z: y.bitwise_or_(z), b8("b"), b8("b"))
fresh("aten.logical_and_.default", lambda y, z: y.logical_and_(z), b8("b"), b8("b"))
fresh("aten.eq_.Scalar", lambda y: y.eq_(1), i64("b"))
fresh("aten.copy_.default", lambda y, z: y.copy_(z), X, f32(6))
fresh("aten.copy_.default", lambda y, z: y.copy_(z), X, i64("b", 6), label="another dtype")
fresh("aten.fill_.Scalar", lambda y: torch.ops.aten.fill_.Scalar(y, 2.0), X)
fresh("aten.fill_.Tensor", lambda y, z: torch.ops.aten.fill_.Tensor(y, z), X, f32())
fresh("aten.fill_.Tensor", lambda y, z: y[:, 0].fill_(z), X, f32(), label="a column")
fresh("aten.masked_fill_.Scalar", lambda y, m: y.masked_fill_(m, 7.0), X, b8("b", 6))
fresh("aten.masked_fill_.Tensor", lambda y, m, z: y.masked_fill_(m, z), X, b8("b", 1), f32())
fresh("aten.masked_scatter_.default", lambda y, m, z: y.masked_scatter_(m, z), X, b8("b", 6), f32(64))
fresh("aten.index_put_.default", lambda y, i: y.__setitem__(i, 3.0), f32(6, 4), i64("b", v=below(6)))
fresh("aten.index_put_.default", lambda y, m: y.__setitem__(m, 0.0), X, b8("b", 6), label="a mask")
fresh("aten.index_put_.default", lambda y, i, z: torch.ops.aten.index_put_.default(y, [i], z, True), f32(6, 4), i64("b", v=below(6)), f32("b", 4), label="accumulate")
fresh("aten.index_put_.default", lambda y, i, z: y.__setitem__((slice(None), i), z), X, i64(2, v=exactly(4, 1)), f32("b", 2), label="columns")
fresh("aten.index_copy_.default", lambda y, i, z: y.index_copy_(1, i, z), X, i64(2, v=exactly(4, 1)), f32("b", 2))
fresh("aten.index_add_.default", lambda y, i, z: y.index_add_(1, i, z), X, i64(3, v=below(6)), f32("b", 3))
fresh("aten.index_fill_.int_Scalar", lambda y, i: y.index_fill_(1, i, 0.0), X, i64(3, v=below(6)))
fresh("aten.scatter_.value", lambda y, i: y.scatter_(1, i, 1.0), X, i64("b", 3, v=below(6)))
fresh("aten.scatter_.src", lambda y, i, z: y.scatter_(1, i, z), X, i64("b", 3, v=exactly(0, 4, 2)), f32("b", 3))
fresh("aten.scatter_add_.default", lambda y, i, z: y.scatter_add_(1, i, z), X, i64("b", 3, v=below(6)), f32("b", 3))
fresh("aten.tril_.default", lambda y: y.tril_(), f32("b", 4, 4))
fresh("aten.triu_.default", lambda y: y.triu_(1), f32("b", 4, 4))
fresh("aten.fill_diagonal_.default", lambda y: y.fill_diagonal_(3.0), f32(4, 4))
fresh("aten.cumsum_.default", lambda y: y.cumsum_(1), X)
fresh("aten.addcmul_.default", lambda y, z: y.addcmul_(z, z, value=0.5), X, X)
fresh("aten.addcdiv_.default", lambda y, z: y.addcdiv_(z, z, value=0.5), X, f32("b", 6, v="nonzero"))
fresh("aten.lerp_.Scalar", lambda y, z: y.lerp_(z, 0.5), X, X)
fresh("aten.addmm_.default", lambda y, z: y.addmm_(z, z), f32(4, 4), f32(4, 4))
fresh("aten.baddbmm_.default", lambda y, z: y.baddbmm_(z, z), f32("b", 4, 4), f32("b", 4, 4))
fresh("aten.dropout_.default", lambda y: torch.ops.aten.dropout_.default(y, 0.5, False), X)
fn("aten.uniform_.default", "shape", lambda x: x.clone().uniform_(), X, only_shapes=True)
fn("aten.normal_.default", "shape", lambda x: x.clone().normal_(), X, only_shapes=True)
fn("aten.exponential_.default", "shape", lambda x: x.clone().exponential_(), X, only_shapes=True)
fn("aten.bernoulli_.float", "shape", lambda x: x.clone().bernoulli_(0.5), X, only_shapes=True)
fn("aten.unsqueeze_.default", "then written", lambda x: (x + 1).unsqueeze_(1).mul_(2), X)
fn("aten.squeeze_.dim", "", lambda x: (x + 1).squeeze_(1) * 2, f32("b", 1, 4))
fn("aten.transpose_.default", "", lambda x: (x + 1).transpose_(0, 1) * 2, X)
fn("aten.t_.default", "", lambda x: (x + 1).t_() * 2, X)


def _overload(name: str):
    from op_case import overload

    return overload(name)


# ---- through views ----
def written(label: str, change, *inputs, op: str = "aten.copy_.default") -> None:
    def function(x: torch.Tensor, *others: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        y = x * 1
        change(y, *others)
        return y, y + 1

    fn(op, label, function, *inputs)


written("a slice", lambda y, z: y[:, 1:3].copy_(z), X, f32("b", 2))
written("a column", lambda y, z: y[:, 2].copy_(z), X, f32("b"))
written("a row", lambda y, z: y[0].copy_(z), X, f32(6))
written("every second", lambda y: y[:, ::2].mul_(3), X, op="aten.mul_.Tensor")
written("a slice of a slice", lambda y: y[:, 1:5][:, 1:3].add_(10), X, op="aten.add_.Tensor")
written("transposed", lambda y, z: y.transpose(0, 1)[0].copy_(z), X, f32("b"))
written("permuted", lambda y: y.permute(2, 0, 1)[0].add_(5), f32("b", 3, 4), op="aten.add_.Tensor")
written("in another view", lambda y: y.view(-1, 2, 3)[:, 0].add_(5), X, op="aten.add_.Tensor")
written("with one dim more", lambda y: y.unsqueeze(1).mul_(2), X, op="aten.mul_.Tensor")
written("the last token", lambda y, z: y[:, -1].copy_(z), f32("b", "s", 4), f32("b", 4))
written("from a length on", lambda y, z: y[:, : z.shape[1]].copy_(z), f32("b", 8), f32("b", "s"))
written("a part of a split", lambda y: y.split(3, 1)[1].zero_(), X, op="aten.zero_.default")
written("a part of a chunk", lambda y: y.chunk(2, -1)[0].zero_(), X, op="aten.zero_.default")
written("the diagonal", lambda y: y.diagonal().fill_(1.0), f32(4, 4), op="aten.fill_.Scalar")
written("a mask in a slice", lambda y, m: y[:, 1:3].masked_fill_(m, 0.0), X, b8("b", 2), op="aten.masked_fill_.Scalar")
written("two writes", lambda y, z: (y[:, 0].copy_(z), y[:, 1].copy_(y[:, 0] * 2)), X, f32("b"))
written("shifted in itself", lambda y: y[:, :-1].copy_(y[:, 1:].clone()), X)


def _view_sees_write(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    view = y[:, 2:]
    y.mul_(3)
    return view + 0


def _base_sees_write(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    first, second = y[:, :3], y[:, 2:]
    first.zero_()
    return second + y[:, 2:]


fn("aten.mul_.Tensor", "a view sees the write to its base", _view_sees_write, X)
fn("aten.zero_.default", "a view sees the write through another", _base_sees_write, X)


# ---- a list that grows, as vision models fill masks ----
def _filled(x: torch.Tensor) -> torch.Tensor:
    mask = torch.zeros(1, 8, 8, dtype=torch.bool)
    for i, (rows, columns) in enumerate(((slice(0, 4), slice(0, 4)), (slice(0, 4), slice(4, None)), (slice(4, None), slice(None)))):
        mask[:, rows, columns] = i % 2 == 0
    return x * mask


fn("aten.fill_.Tensor", "windows of a mask", _filled, f32("b", 8, 8))


# ---- buffers ----
class _Counter(nn.Module):
    """Reads a buffer that it has written."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("total", torch.zeros(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = self.total.clone()
        total.add_(x.sum(0))
        return total * x


module("aten.add_.Tensor", "a copy of a buffer", _Counter, f32("b", 4))
