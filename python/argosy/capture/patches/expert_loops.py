"""Experts that a model's own code computes one after the other."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ...patching import register_model_patch
from ..swap import replaced

_TAKES = ("hidden_states", "top_k_index", "top_k_weights")
_REASON = (
    "such code asks which experts have tokens, which no trace knows; those without any add nothing, so that a graph of all of them is right"
)


@register_model_patch("capture", "shapes", reason=_REASON)
@contextlib.contextmanager
def every_expert(model: torch.nn.Module) -> Iterator[None]:
    """Loops over experts that have tokens go over all of them."""
    with contextlib.ExitStack() as stack:
        for module in model.modules():
            if _loops(module):
                stack.enter_context(replaced(module, "forward", _with_all(module.forward, module.num_experts)))
        yield


def _loops(module: torch.nn.Module) -> bool:
    """Whether the experts are a loop: a choice of implementations is a wrapper around it."""
    forward = type(module).forward
    known = isinstance(getattr(module, "num_experts", None), int) and not hasattr(forward, "__wrapped__")
    return known and set(_TAKES) <= set(inspect.signature(forward).parameters)


def _with_all(forward: Callable, count: int) -> Callable:
    @functools.wraps(forward)
    def call(*args: Any, **kwargs: Any) -> Any:
        with _AllHit(count):
            return forward(*args, **kwargs)

    return call


class _AllHit(TorchFunctionMode):
    """The places of what is not zero among experts (and a class for none, which some count) are numbers, of all experts."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count

    def __torch_function__(self, function, types, args=(), kwargs=None):
        if function is torch.Tensor.nonzero and args[0].dim() == 1 and args[0].shape[0] in (self._count, self._count + 1):
            return [[number] for number in range(self._count)]
        return function(*args, **(kwargs or {}))
