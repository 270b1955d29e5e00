"""Products, norms, activations, attention, convolutions of one dim, recurrences."""

from __future__ import annotations

import torch
from op_case import Rows, b8, exactly, f16, f32, f64, i64
from torch import nn

ROWS = Rows("nn")
op, fn, module = ROWS.op, ROWS.fn, ROWS.module

# ---- products ----
op("aten.linear.default", f32("b", "s", 4), f32(3, 4), f32(3))
op("aten.linear.default", f32("b", 4), f32(3, 4))
op("aten.linear.default", f32("z", 4), f32(3, 4), f32(3))
op("aten.linear.default", f16("b", 4), f16(3, 4), f16(3))
op("aten.linear.default", f32(4), f32(3, 4), f32(3))
module("aten.linear.default", "a layer", lambda: nn.Linear(4, 3), f32("b", "s", 4))
module("aten.linear.default", "a layer without bias", lambda: nn.Linear(4, 3, bias=False), f32("b", "s", 4))
module("aten.linear.default", "one weight twice", lambda: _Tied(), f32("b", 4))
op("aten.matmul.default", f32("b", "s", 4), f32("b", 4, "t"))
op("aten.matmul.default", f32("b", 2, "s", 4), f32(4, 5))
op("aten.matmul.default", f32("b", 4), f32(4))
op("aten.matmul.default", f32(4), f32(4))
op("aten.matmul.default", f32(4), f32("b", 4, 5))
op("aten.matmul.default", f16("b", 3, 4), f16("b", 4, 5))
op("aten.matmul.default", f64("b", 4), f64(4, 5))
op("aten.matmul.default", i64("b", 4), i64(4, 5))
op("aten.bmm.default", f32("b", "s", 4), f32("b", 4, 3))
op("aten.mm.default", f32("b", 4), f32(4, 3))
op("aten.mm.default", i64("b", 4), i64(4, 3))
op("aten.mv.default", f32("b", 4), f32(4))
op("aten.dot.default", f32("b"), f32("b"))
op("aten.inner.default", f32("b", 4), f32("s", 4))
op("aten.outer.default", f32("b"), f32("s"))
op("aten.ger.default", f32("b"), f32("s"))
op("aten.addmm.default", f32(3), f32("b", 4), f32(4, 3))
op("aten.addmm.default", f32("b", 3), f32("b", 4), f32(4, 3), beta=0.5, alpha=2)
op("aten.addmm.default", i64("b", 3), i64("b", 4), i64(4, 3), beta=3, alpha=-2)
op("aten.addmv.default", f32("b"), f32("b", 4), f32(4))
op("aten.baddbmm.default", f32("b", 3, 5), f32("b", 3, 4), f32("b", 4, 5))
op("aten.baddbmm.default", f32("b", 1, 5), f32("b", 3, 4), f32("b", 4, 5), beta=0.5, alpha=0.25)
op("aten.baddbmm.default", f32("b", 3, 5, v="special"), f32("b", 3, 4), f32("b", 4, 5), beta=0)
op("aten.addbmm.default", f32(3, 5), f32("b", 3, 4), f32("b", 4, 5))
op("aten.einsum.default", "bqc,brqc->brq", [f32("b", 4, 3), f32("b", "s", 4, 3)])
op("aten.einsum.default", "bhwc,hkc->bhwk", [f32("b", 3, 4, 5), f32(3, 6, 5)])
op("aten.einsum.default", "i,j->ij", [f32("b"), f32("s")])
op("aten.einsum.default", "...d,de->...e", [f32("b", "s", 4), f32(4, 5)])
op("aten.einsum.default", "bld,bmd->blm", [f32("b", "s", 4), f32("b", "t", 4)])
op("aten.einsum.default", "bcshn,bczhn->bhcsz", [f32("b", 2, 3, 2, 4), f32("b", 2, 5, 2, 4)])
op("aten.tensordot.default", f32("b", 4, 5), f32(5, 4, 3), [1, 2], [1, 0])
op("aten.bilinear.default", f32("b", 3), f32("b", 4), f32(5, 3, 4), f32(5))
op("aten.kron.default", f32(4, 2), f32(2, 3))
op("aten.chain_matmul.default", [f32(5, 3), f32(3, 4), f32(4, 2)])
op("aten.cross.default", f32("b", 3), f32("b", 3), 1)
op("aten.linalg_cross.default", f32("b", 3), f32("b", 3))


class _Tied(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(4, 4), nn.Linear(4, 4, bias=False)
        self.second.weight = self.first.weight

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.second(self.first(x))


# ---- activations ----
for name in ("relu", "silu", "hardswish", "hardsigmoid", "mish", "selu", "celu", "relu6", "softsign", "log_sigmoid", "tanhshrink"):
    full = f"aten.{name}.default"
    try:
        from op_case import overload

        overload(full)
    except AttributeError:
        continue
    op(full, f32("b", 4))
    op(full, f32(17, v="special"), tolerance=2e-5)
op("aten.relu.default", i64("b"))
op("aten.silu.default", f16("b"))
op("aten.gelu.default", f32("b", 4))
op("aten.gelu.default", f32("b", 4), approximate="tanh")
op("aten.gelu.default", f16("b", 4))
op("aten.gelu.default", f32(17, v="special"), tolerance=2e-5)
op("aten.leaky_relu.default", f32("b", 4))
op("aten.leaky_relu.default", f32("b", 4), 0.2)
op("aten.elu.default", f32("b", 4))
op("aten.elu.default", f32("b", 4), 0.5)
op("aten.elu.default", f32(17, v="special"), 0.5, 2.0, 0.25)
op("aten.elu.default", f64("b", 4))
op("aten.softplus.default", f32("b", 17, v="special"), 2.0, 10.0)
op("aten.prelu.default", f32("b", 4, 3), f32(4))
op("aten.hardtanh.default", f32("b", 4))
op("aten.hardtanh.default", f32("b", 4), 0.0, 6.0)
op("aten.softplus.default", f32("b", 4))
op("aten.softplus.default", f32("b", 4), 2.0, 3.0)
op("aten.softplus.default", f32("b", v=exactly(-100.0, 0.0, 19.9, 20.1, 100.0)))
op("aten.softplus.default", f16("b", 4))
op("aten.softshrink.default", f32("b", 4))
op("aten.hardshrink.default", f32("b", 4))
op("aten.threshold.default", f32("b", 4), 0.5, -1.0)
op("aten.glu.default", f32("b", 6))
op("aten.glu.default", f32("b", 6, "s"), 1)
op("aten.softmax.int", f32("b", "s", 4), -1)
op("aten.softmax.int", f32("b", 4), 0)
op("aten.softmax.int", f16("b", 4), -1, torch.float32)
op("aten.softmax.int", f16("b", 4), -1)
op("aten.softmax.int", f32("b", 4), -1, torch.float64)
op("aten.softmax.int", i64("b", 4), -1, torch.float32)
op("aten._softmax.default", f32("b", 4), -1, False)
op("aten._safe_softmax.default", f32("b", 4, v=exactly(float("-inf"), float("-inf"), float("-inf"), float("-inf"), 1.0, 2.0, 3.0, 4.0)), -1)
op("aten.log_softmax.int", f32("b", 4), -1)
op("aten.log_softmax.int", f16("b", 4), -1, torch.float32)
op("aten._log_softmax.default", f32("b", 4), 1, False)

# ---- norms ----
op("aten.layer_norm.default", f32("b", "s", 6), [6], f32(6), f32(6))
op("aten.layer_norm.default", f32("b", 6), [6])
op("aten.layer_norm.default", f32("b", 6), [6], f32(6), None, 1e-3)
op("aten.layer_norm.default", f32("b", 3, 4), [3, 4], f32(3, 4), f32(3, 4))
op("aten.layer_norm.default", f16("b", 6), [6], f16(6), f16(6))
op("aten.native_layer_norm.default", f32("b", 6), [6], f32(6), f32(6), 1e-5)
op("aten.rms_norm.default", f32("b", 6), [6], f32(6), 1e-5)
op("aten.rms_norm.default", f32("b", 6), [6])
op("aten.rms_norm.default", f16("b", 6), [6], f16(6), 1e-5)
op("aten.group_norm.default", f32("b", 6, "s"), 2, f32(6), f32(6))
op("aten.group_norm.default", f32("b", 6, 3, 4), 3)
op("aten.native_group_norm.default", f32(2, 6, 5), f32(6), f32(6), 2, 6, 5, 3, 1e-5)
op("aten.batch_norm.default", f32("b", 3, 4), f32(3), f32(3), f32(3), f32(3, v="positive"), False, 0.1, 1e-5, False)
op("aten.batch_norm.default", f32("b", 3, 4, 5), None, None, f32(3), f32(3, v="positive"), False, 0.1, 1e-5, False)
op("aten.batch_norm.default", f32("b", 3), f32(3), None, f32(3), f32(3, v="positive"), False, 0.1, 1e-3, False)
op("aten.batch_norm.default", f32("m", 3, 4), f32(3), f32(3), None, None, True, 0.1, 1e-5, False)
module("aten.batch_norm.default", "a layer", lambda: _batch_norm(), f32("b", 3, 4, 5))
op("aten._native_batch_norm_legit_no_training.default", f32("b", 3, 4), f32(3), f32(3), f32(3), f32(3, v="positive"), 0.1, 1e-5)
op("aten.instance_norm.default", f32("b", 3, 5), f32(3), f32(3), None, None, True, 0.1, 1e-5, False)
op("aten._weight_norm.default", f32(4, 3, 5), f32(4, 1, 1), 0)
op("aten._weight_norm.default", f32(4, 3, 5), f32(1, 1, 5), 2)


def _batch_norm() -> nn.Module:
    layer = nn.BatchNorm2d(3)
    layer.running_mean.uniform_(-1, 1)
    layer.running_var.uniform_(0.5, 2)
    return layer


# ---- attention ----
Q, K, V = f32("b", 2, "s", 4), f32("b", 2, "t", 4), f32("b", 2, "t", 5)
sdpa = "aten.scaled_dot_product_attention.default"
op(sdpa, Q, K, V)
op(sdpa, Q, K, V, f32("b", 1, "s", "t"))
op(sdpa, Q, K, V, b8("b", 1, "s", "t"))
op(sdpa, Q, K, V, b8("s", "t"))
op(sdpa, Q, K, V, scale=0.3)
op(sdpa, f32("b", 2, "s", 4), f32("b", 2, "s", 4), f32("b", 2, "s", 4), None, 0.0, True)
op(sdpa, Q, K, V, None, 0.0, True)
op(sdpa, f32("b", 4, "s", 4), f32("b", 2, "t", 4), f32("b", 2, "t", 4), enable_gqa=True)
op(sdpa, f32("b", 6, "s", 4), f32("b", 2, "t", 4), f32("b", 2, "t", 4), b8("b", 1, "s", "t"), enable_gqa=True)
op(sdpa, f32("b", "s", 4), f32("b", "t", 4), f32("b", "t", 4))
op(sdpa, f16("b", 2, "s", 4), f16("b", 2, "t", 4), f16("b", 2, "t", 4), f16("b", 1, "s", "t"))
fn(sdpa, "a row of which all is masked", lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
    q, k, v, torch.tensor([[True, False, True], [False, False, False]])), f32("b", 2, 2, 4), f32("b", 2, 3, 4), f32("b", 2, 3, 4))  # fmt: skip
fn(sdpa, "a row of which all is minus infinity", lambda q, k, v: torch.nn.functional.scaled_dot_product_attention(
    q, k, v, torch.tensor([[0.0, float("-inf"), 0.0], [float("-inf")] * 3])), f32("b", 2, 2, 4), f32("b", 2, 3, 4), f32("b", 2, 3, 4))  # fmt: skip
op(sdpa, f32("b", 2, "s", 4), f32("b", 2, "z", 4), f32("b", 2, "z", 4))
op("aten._scaled_dot_product_flash_attention_for_cpu.default", Q, K, f32("b", 2, "t", 4), 0.0, False)
module("aten.scaled_dot_product_attention.default", "a whole layer", lambda: _Attention(), f32("b", "s", 8), tolerance=2e-5)


class _Attention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(8, 24), nn.Linear(8, 8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (part.unflatten(-1, (2, 4)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril()
        done = nn.functional.scaled_dot_product_attention(q, k, v, mask[None, None])
        return self.out(done.transpose(1, 2).reshape(x.shape))


# ---- convolutions over one dim ----
op("aten.conv1d.default", f32("b", 4, "n"), f32(6, 4, 3), f32(6), [1], [1])
op("aten.conv1d.default", f32("b", 4, 9), f32(6, 2, 3), None, [2], [2], [1], 2)
op("aten.conv1d.default", f32("b", 4, 9), f32(4, 1, 4), f32(4), [1], [3], [1], 4)
op("aten.conv1d.default", f32("b", 4, 9), f32(6, 4, 3), f32(6), [1], [0], [2])
op("aten.conv1d.default", f32(4, 9), f32(6, 4, 3))
op("aten.conv1d.default", f16("b", 4, 9), f16(6, 4, 3), f16(6))
op("aten.conv1d.padding", f32("b", 4, 9), f32(6, 4, 3), f32(6), [1], "same")
op("aten.conv1d.padding", f32("b", 4, 9), f32(6, 4, 4), f32(6), [1], "same")
op("aten.conv_transpose1d.default", f32("b", 4, "n"), f32(4, 6, 3), f32(6), [2], [1])
op("aten.conv_transpose1d.default", f32("b", 4, 9), f32(4, 3, 4), None, [2], [1], [1], 2, [2])
op("aten.convolution.default", f32("b", 4, 9), f32(6, 4, 3), f32(6), [1], [1], [1], False, [0], 1)
op("aten.convolution.default", f32("b", 4, 9), f32(4, 6, 3), f32(6), [2], [0], [1], True, [0], 1)
op("aten.max_pool1d.default", f32("b", 4, 9), [3], [2], [1])
op("aten.max_pool1d.default", f32("b", 4, 9), [2], [2], [0], [1], True)
op("aten.avg_pool1d.default", f32("b", 4, 9), [3], [2], [1])
op("aten.avg_pool1d.default", f32("b", 4, 9), [2], [2], [0], True)
op("aten.avg_pool1d.default", f32("b", 4, 9), [3], [2], [1], False, False)
op("aten.adaptive_avg_pool1d.default", f32("b", 4, 9), [1])
op("aten.adaptive_avg_pool1d.default", f32("b", 4, 9), [3])
op("aten.adaptive_avg_pool1d.default", f32("b", 4, 10), [4])
fn("aten.adaptive_max_pool1d.default", "values", lambda x: nn.functional.adaptive_max_pool1d(x, 3), f32("b", 4, 9))
op("aten.upsample_linear1d.vec", f32("b", 4, 5), [9], False, None)
op("aten.upsample_linear1d.vec", f32("b", 4, 5), [9], True, None)
op("aten.upsample_linear1d.vec", f32("b", 4, 5), None, False, [2.0])
op("aten.upsample_nearest1d.vec", f32("b", 4, 5), [8], None)
op("aten.upsample_nearest1d.vec", f32("b", 4, 5), None, [2.0])
fn("aten.upsample_linear1d.vec", "to a size that varies", lambda x, y: torch.nn.functional.interpolate(x, size=y.shape[0], mode="linear"), f32("b", 4, 5), f32("n"))
module("aten.lstm.input", "one layer", lambda: _First(nn.LSTM(4, 5, batch_first=True)), f32(3, 5, 4), tolerance=2e-5)
module("aten.lstm.input", "two layers, both ways", lambda: _First(nn.LSTM(4, 5, 2, bidirectional=True)), f32(5, 3, 4), tolerance=2e-5)
module("aten.gru.input", "one layer", lambda: _First(nn.GRU(4, 5, batch_first=True)), f32(3, 5, 4), tolerance=2e-5)


class _First(nn.Module):
    def __init__(self, inner: nn.Module) -> None:
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x)[0]


op("aten.nll_loss_nd.default", f32("b", 4), i64("b", v=exactly(0, 3, 1)), None, 1, -100)
op("aten.cross_entropy_loss.default", f32("b", 4), i64("b", v=exactly(0, 3, 1)))
op("aten.nll_loss_nd.default", f32("b", 4, 3), i64("b", 3, v=exactly(0, 3, -100, 1)), f32(4, v="positive"), 2, -100)
op("aten.nll_loss_nd.default", f32("b", 4), i64("b", v=exactly(2, 3, 1)), f32(4, v="positive"), 0, 1)
op("aten.cross_entropy_loss.default", f32("b", 4, 3), i64("b", 3, v=exactly(0, 3, -100, 1)), f32(4, v="positive"))
op("aten.mse_loss.default", f32("b", 4), f32("b", 4))
