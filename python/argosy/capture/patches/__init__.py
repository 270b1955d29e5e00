"""Reversible changes to torch and transformers for the time of a trace, each with its reason."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from ...patching import apply_patches
from ..weightless import ShapesOnly
from . import (  # noqa: F401 - register their patches
    convolutions,
    funnel,
    linear_attention,
    masks,
    placeholders,
    recurrent,
    rotary,
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
def shape_patches(model: torch.nn.Module) -> Iterator[None]:
    """What a run on the meta device needs changed, of which only shapes are wanted."""
    with ShapesOnly(), apply_patches("shapes", model), experts_implementation(model, "batched_mm"):
        yield


@contextlib.contextmanager
def experts_implementation(model: torch.nn.Module, name: str) -> Iterator[None]:
    """Experts as ``name`` computes them, where the model can choose. ``grouped_mm`` is one op for all experts of a layer;
    it has no kernel for the meta device, ``batched_mm`` has."""
    if not hasattr(model, "get_experts_implementation") or not model._can_set_experts_implementation():
        yield
        return
    before = model.get_experts_implementation()
    model.set_experts_implementation(name)
    try:
        yield
    finally:
        model.set_experts_implementation(before)
