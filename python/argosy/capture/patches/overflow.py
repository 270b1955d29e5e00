"""Half precision: code that looks whether numbers have become infinite."""

from __future__ import annotations

import contextlib
from typing import Any

import torch
from torch.overrides import TorchFunctionMode


class OverflowTaken(TorchFunctionMode):
    """Answers ``if not torch.isfinite(x).all()`` and ``if torch.isinf(x).any()`` about values of float16 as if some were
    infinite.

    Reason: BART and others clamp what has overflowed, and a graph cannot ask. Clamping what has not changes nothing but
    the thousand largest values that float16 has.
    """

    _ASKED = {torch.isfinite: torch.Tensor.all, torch.isinf: torch.Tensor.any}

    def __init__(self) -> None:
        super().__init__()
        #: what was made of values of float16, by id, with the answer to "all" or "any" of it; kept, so that ids stay theirs
        self._made: dict[int, tuple[torch.Tensor, Any]] = {}

    def __torch_function__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        first = args[0] if args else None
        known = self._made.get(id(first))
        if function is torch.Tensor.__bool__ and known is not None and isinstance(known[1], bool):
            return known[1]
        result = function(*args, **(kwargs or {}))
        if function in self._ASKED and isinstance(first, torch.Tensor) and first.dtype == torch.float16:
            self._made[id(result)] = (result, self._ASKED[function])
        elif known is not None and function is known[1] and len(args) == 1 and not kwargs:
            self._made[id(result)] = (result, function is torch.Tensor.any)
        return result


def overflow_taken(model: torch.nn.Module) -> contextlib.AbstractContextManager:
    """For a model of float16; of others, nothing."""
    is_half = any(parameter.dtype == torch.float16 for parameter in model.parameters())
    return OverflowTaken() if is_half else contextlib.nullcontext()
