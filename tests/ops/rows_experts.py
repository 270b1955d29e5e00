"""Grouped products, as mixtures of experts use them."""

from __future__ import annotations

import torch
from op_case import Rows, f32, i64

ROWS = Rows("experts")
fn = ROWS.fn


def ends(*values: int):
    """Where each expert's rows end."""
    return lambda sizes, generator: torch.tensor(values)


def _import_fallback() -> None:
    import transformers.integrations.moe  # noqa: F401 - registers the op


def _fallback(x: torch.Tensor, w: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
    return torch.ops.transformers.grouped_mm_fallback(x, w, offsets)


_import_fallback()
NAME = "transformers.grouped_mm_fallback.default"
fn(NAME, "three experts", _fallback, f32(7, 22), f32(3, 22, 15), i64(3, v=ends(2, 5, 7)))
fn(NAME, "an expert without rows", _fallback, f32(7, 22), f32(3, 22, 15), i64(3, v=ends(2, 2, 7)))
fn(NAME, "rows that no expert has", _fallback, f32(7, 22), f32(3, 22, 15), i64(3, v=ends(2, 4, 5)))


def _experts(x: torch.Tensor, logits: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    """Tokens sorted by expert, multiplied in groups, and put back."""
    weights, chosen = logits.softmax(-1).topk(2, -1)
    flat = chosen.reshape(-1)
    order = torch.argsort(flat)
    counts = torch.histc(flat.float(), bins=4, min=0, max=3)
    rows = torch.ops.transformers.grouped_mm_fallback(x[order // 2], w, counts.cumsum(0).to(torch.int32))
    scattered = torch.zeros_like(rows).index_copy(0, order, rows) * weights.reshape(-1, 1)
    return scattered.reshape(x.shape[0], 2, -1).sum(1)


fn(NAME, "a whole layer", _experts, f32("b", 8), f32("b", 4, v="distinct"), f32(4, 8, 6))


def _as_exporters_do(program: torch.export.ExportedProgram) -> None:
    """torch has no fake kernel of its own op for float32, so that a trace has another one, which is replaced."""
    from argosy.exporters.experts import EXPERTS
    from argosy.patching import apply_fx_node_fixes

    apply_fx_node_fixes(EXPERTS, program.graph_module)


GROUPED = "aten._grouped_mm.default"
fn(GROUPED, "three experts", lambda *given: _fallback(*given) * 2, f32(7, 16), f32(3, 16, 12), i64(3, v=ends(2, 5, 7)), after=_as_exporters_do)
fn(GROUPED, "odd sizes", lambda *given: _fallback(*given) * 2, f32(7, 22), f32(3, 22, 15), i64(3, v=ends(2, 2, 7)), after=_as_exporters_do)
