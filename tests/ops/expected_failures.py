"""Rows that are known to fail, each with its reason. A row that passes all the same fails the run: take it out."""

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {
    "shape-view.dtype(f32[b],float32)": "no translation of aten.view.dtype yet; no popular family has it",
    "shape-view.dtype(i32[bx2],float32)": "no translation of aten.view.dtype yet; no popular family has it",
    "shape-as_strided.default(f32[4x6],(2 3),(6 2),1)": "no translation of aten.as_strided.default yet; no popular family has it",
    "shape-cartesian_prod.default((f32[b] f32[s]))": "no translation of aten.cartesian_prod.default yet; no popular family has it",
    "shape-block_diag.default((f32[2x3] f32[3x2]))": "no translation of aten.block_diag.default yet; no popular family has it",
    "indexing-_unique2.default": "no translation of aten._unique2.default yet; no popular family has it",
    "indexing-unique_consecutive.default": "no translation of aten.unique_consecutive.default yet; no popular family has it",
    "nn-gelu.default(f32[17]special)": "Gelu of ONNX Runtime gives NaN for infinities",
    "nn-_scaled_dot_product_flash_attention_for_cpu.default(f32[bx2xsx4],f32[bx2xtx4],f32[bx2xtx4],0.0,False)": "no translation of aten._scaled_dot_product_flash_attention_for_cpu.default yet; no popular family has it",
    "nn-nll_loss_nd.default(f32[bx4],i64[b],None,1,-100)": "no translation of aten.nll_loss_nd.default yet; no popular family has it",
    "nn-cross_entropy_loss.default(f32[bx4],i64[b])": "no translation of aten.cross_entropy_loss.default yet; no popular family has it",
    "vision-col2im.default(f32[bx8x9],(6 6),(2 2),(1 1),(0 0),(2 2))": "no translation of aten.col2im.default yet; no popular family has it",
    "vision-fft_rfft.default(size)": "aten.fft_rfft.default gives complex numbers, which ONNX Runtime lacks; no popular family has it",
    "vision-fft_fft.default(real input)": "aten.fft_fft.default gives complex numbers, which ONNX Runtime lacks; no popular family has it",
    "vision-fft_fftn.default(two dims, real part)": "aten.fft_fftn.default gives complex numbers, which ONNX Runtime lacks; no popular family has it",
    "vision-stft.default(power)": "aten.stft.default gives complex numbers, which ONNX Runtime lacks; no popular family has it",
    "creation-logspace.default(fixed)": "no translation of aten.logspace.default yet; no popular family has it",
    "creation-tril_indices.default": "no translation of aten.tril_indices.default yet; no popular family has it",
    "creation-triu_indices.default": "no translation of aten.triu_indices.default yet; no popular family has it",
    "creation-randperm.default": "no translation of aten.randperm.default yet; no popular family has it",
    "creation-multinomial.default": "no translation of aten.multinomial.default yet; no popular family has it",
}
