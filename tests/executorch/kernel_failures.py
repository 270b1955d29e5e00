"""Rows that ExecuTorch's kernels do not compute, each with its reason. ``kernel_run.py --all`` lists what fails."""

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {
    "shape-view.dtype(i32[bx2],float32)": "aten.view.dtype has no kernel in ExecuTorch",
    "indexing-bincount.default": "how many bins there are depends on data and has no upper bound",
    "indexing-bincount.default(of weights)": "how many bins there are depends on data and has no upper bound",
    "nn-gelu.default(f32[17]special)": "the kernel gives NaN for infinities",
    "nn-scaled_dot_product_attention.default(f32[bx2xsx4],f32[bx2xzx4],f32[bx2xzx4])": "bmm over nothing leaves its result as it was",
    "vision-grid_sampler.default(f32[bx2x3x4x5],f32[bx2x3x6x3]small,0,0,False)": "aten.grid_sampler_3d.default has no kernel in ExecuTorch",
    "vision-fft_rfft.default(size)": "aten.fft_rfft.default of complex numbers is not taken apart",
    "vision-fft_fft.default(real input)": "aten.fft_fft.default of complex numbers is not taken apart",
    "vision-fft_fftn.default(two dims, real part)": "aten.fft_fftn.default of complex numbers is not taken apart",
    "vision-stft.default(power)": "aten.stft.default of complex numbers is not taken apart",
    "symbolic-torch._sym_sqrt": "torch._sym_sqrt has no kernel in ExecuTorch",
    "control_flow-higher_order.while_loop(a fixed count)": "higher_order.while_loop has no kernel in ExecuTorch",
    "control_flow-higher_order.while_loop(until a sum is reached)": "higher_order.while_loop has no kernel in ExecuTorch",
    "control_flow-higher_order.while_loop(over tokens)": "higher_order.while_loop has no kernel in ExecuTorch",
}
