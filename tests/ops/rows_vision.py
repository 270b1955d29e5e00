"""Ops on pictures and volumes: convolutions, pools, resampling, Fourier transforms."""

from __future__ import annotations

import torch
from case import Rows, f16, f32
from torch import nn

ROWS = Rows("vision")
op, fn, module = ROWS.op, ROWS.fn, ROWS.module

op("aten.conv2d.default", f32("b", 3, 8, 9), f32(4, 3, 3, 3), f32(4), [1, 1], [1, 1])
op("aten.conv2d.default", f32("b", 3, "n", "n"), f32(4, 3, 2, 2), None, [2, 2])
op("aten.conv2d.default", f32("b", 4, 8, 9), f32(4, 1, 3, 3), f32(4), [2, 1], [1, 0], [1, 2], 4)
op("aten.conv2d.default", f32(3, 8, 9), f32(4, 3, 3, 3))
op("aten.conv2d.default", f16("b", 3, 8, 9), f16(4, 3, 3, 3), f16(4))
op("aten.conv2d.padding", f32("b", 3, 8, 9), f32(4, 3, 3, 3), f32(4), [1, 1], "same")
op("aten.conv2d.padding", f32("b", 3, 8, 9), f32(4, 3, 4, 2), f32(4), [1, 1], "same")
op("aten.conv2d.padding", f32("b", 3, 8, 9), f32(4, 3, 3, 3), f32(4), [2, 2], "valid")
module("aten.conv2d.default", "a layer", lambda: nn.Conv2d(3, 4, 3, padding=1), f32("b", 3, 8, 8))
op("aten.conv3d.default", f32("b", 3, 4, 6, 6), f32(4, 3, 2, 3, 3), f32(4), [2, 3, 3])
op("aten.conv3d.padding", f32("b", 3, 4, 6, 6), f32(4, 3, 3, 3, 3), f32(4), [1, 1, 1], "same")
op("aten.conv_transpose2d.input", f32("b", 3, 4, 5), f32(3, 4, 2, 2), f32(4), [2, 2])
op("aten.conv_transpose2d.input", f32("b", 4, 4, 5), f32(4, 2, 3, 3), None, [2, 2], [1, 1], [1, 1], 2, [1, 1])
op("aten.conv_transpose3d.input", f32("b", 3, 2, 4, 4), f32(3, 2, 2, 2, 2), f32(2), [2, 2, 2])
op("aten.convolution.default", f32("b", 3, 8, 9), f32(4, 3, 3, 3), f32(4), [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
op("aten.max_pool2d.default", f32("b", 3, 8, 9), [3, 3], [2, 2], [1, 1])
op("aten.max_pool2d.default", f32("b", 3, 8, 9), [2, 2])
op("aten.max_pool2d.default", f32("b", 3, 8, 9), [3, 2], [2, 2], [0, 0], [1, 1], True)
op("aten.max_pool2d_with_indices.default", f32("b", 3, 8, 9, v="distinct"), [2, 2], [2, 2])
op("aten.max_pool3d.default", f32("b", 3, 4, 6, 6), [2, 2, 2])
op("aten.avg_pool2d.default", f32("b", 3, 8, 9), [2, 2])
op("aten.avg_pool2d.default", f32("b", 3, 8, 9), [3, 3], [2, 2], [1, 1])
op("aten.avg_pool2d.default", f32("b", 3, 8, 9), [3, 3], [2, 2], [1, 1], True, False)
op("aten.avg_pool2d.default", f32("b", 3, 9, 9), [2, 2], [2, 2], [0, 0], True)
op("aten.avg_pool3d.default", f32("b", 3, 4, 6, 6), [2, 2, 2])
op("aten.adaptive_avg_pool2d.default", f32("b", 3, 8, 9), [1, 1])
op("aten.adaptive_avg_pool2d.default", f32("b", 3, 8, 9), [4, 3])
op("aten.adaptive_avg_pool2d.default", f32("b", 3, 8, 9), [3, 2])
op("aten.adaptive_avg_pool2d.default", f32("b", 3, "n", "n"), [1, 1])
op("aten._adaptive_avg_pool2d.default", f32("b", 3, 8, 9), [1, 1])
op("aten.adaptive_max_pool2d.default", f32("b", 3, 8, 9), [1, 1])
for name in ("bilinear", "bicubic"):
    full = f"aten.upsample_{name}2d.vec"
    op(full, f32("b", 3, 4, 5), [7, 9], False, None)
    op(full, f32("b", 3, 4, 5), [7, 9], True, None)
    op(full, f32("b", 3, 8, 8), [4, 3], False, None)
    op(full, f32("b", 3, 4, 5), None, False, [2.0, 2.0])
    op(full, f32("b", 3, 4, 5), None, False, [1.6, 0.7])
    fn(full, "to sizes that vary", lambda x, y, name=name: nn.functional.interpolate(x, size=y.shape, mode=name), f32("b", 3, 4, 5), f32("n", "m"))
    fn(full, "of sizes that vary", lambda x, name=name: nn.functional.interpolate(x, size=(6, 7), mode=name), f32("b", 3, "n", "n"))
op("aten.upsample_bilinear2d.default", f32("b", 3, 4, 5), [7, 9], False)
op("aten.upsample_nearest2d.vec", f32("b", 3, 4, 5), [7, 9], None)
op("aten.upsample_nearest2d.vec", f32("b", 3, 4, 5), None, [2.0, 2.0])
op("aten.upsample_nearest2d.vec", f32("b", 3, 8, 8), [3, 5], None)
op("aten.upsample_nearest2d.default", f32("b", 3, 4, 5), [8, 10])
op("aten._upsample_nearest_exact2d.vec", f32("b", 3, 4, 5), [7, 9], None)
op("aten._upsample_bilinear2d_aa.vec", f32("b", 3, 8, 8), [4, 4], False, None)
op("aten._upsample_bicubic2d_aa.vec", f32("b", 3, 8, 8), [4, 4], False, None)
op("aten.upsample_trilinear3d.vec", f32("b", 3, 2, 4, 5), [4, 7, 9], False, None)
op("aten.upsample_nearest3d.vec", f32("b", 3, 2, 4, 5), [4, 8, 10], None)
for mode in (0, 1, 2):
    for padding in (0, 1, 2):
        op("aten.grid_sampler.default", f32("b", 2, 4, 5), f32("b", 3, 6, 2, v="small"), mode, padding, False)
op("aten.grid_sampler.default", f32("b", 2, 4, 5), f32("b", 3, 6, 2, v="small"), 0, 0, True)
op("aten.grid_sampler_2d.default", f32("b", 2, 4, 5), f32("b", 3, 6, 2, v="small"), 0, 0, False)
op("aten.im2col.default", f32("b", 2, 6, 6), [2, 2], [1, 1], [0, 0], [2, 2])
op("aten.im2col.default", f32("b", 2, 6, 6), [3, 3], [1, 1], [1, 1], [1, 1])
op("aten.col2im.default", f32("b", 8, 9), [6, 6], [2, 2], [1, 1], [0, 0], [2, 2])
fn("aten.fft_rfft.default", "size", lambda x: torch.view_as_real(torch.fft.rfft(x, dim=-1)), f32("b", 8), tolerance=1e-4)
fn("aten.fft_fft.default", "real input", lambda x: torch.fft.fft(x, dim=1).real, f32("b", 8, 4), tolerance=1e-4)
fn("aten.fft_fftn.default", "two dims, real part", lambda x: torch.fft.fftn(x, dim=(1, 2)).real, f32("b", 8, 4), tolerance=1e-4)
fn("aten.stft.default", "power", lambda x: torch.stft(x, 8, 4, window=torch.hann_window(8), return_complex=True).abs() ** 2, f32("b", 32), tolerance=1e-4)
