"""Reversible changes to torch and transformers for the time of a trace, each with its reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from ...patching import apply_patches
from ..shapes_only import Run, ShapesOnly
from ..twin.placeholders import everything_counts
from . import (  # noqa: F401 - register their patches
    convolutions,
    expert_loops,
    funnel,
    linear_attention,
    masks,
    placeholders,
    recurrent,
    rotary,
    rows,
    sizes,
)


@contextlib.contextmanager
def tracing_patches(model: torch.nn.Module, experts: str | None = "grouped_mm") -> Iterator[None]:
    """Everything that a trace of ``model`` needs changed; restored afterwards, also when the trace fails. ``experts``: how these are
    computed, None as the model says."""
    chosen = contextlib.nullcontext() if experts is None else experts_implementation(model, experts)
    with apply_patches("capture", model), chosen:
        yield


@contextlib.contextmanager
def shape_patches(model: torch.nn.Module, run: Run | None = None) -> Iterator[None]:
    """What a run on the meta device needs changed, of which only shapes are wanted. ``run`` calls its ops."""
    with ShapesOnly(run), everything_counts(), apply_patches("shapes", model), experts_implementation(model, "batched_mm"):
        yield


@contextlib.contextmanager
def experts_implementation(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Experts as ``name`` computes them, in all parts of the model that can choose. ``grouped_mm`` is one op for all experts of a
    layer; it has no kernel for the meta device, ``batched_mm`` has."""
    with contextlib.ExitStack() as stack:
        for part in model.modules():
            # Class by class: a model whose own code has no experts may have a language model inside whose code has.
            if hasattr(part, "get_experts_implementation") and part._can_set_experts_implementation():
                before = part.get_experts_implementation()
                part.set_experts_implementation(name)
                stack.callback(part.set_experts_implementation, before)
        yield
