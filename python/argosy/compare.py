"""How far tensors are from those that were expected: the one comparison of the package."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch


@dataclass
class Difference:
    """The largest difference over all outputs of a call. Where ``error`` is set the outputs cannot be compared."""

    abs: float = 0.0
    #: against max(|expected|, floor), element by element
    rel: float = 0.0
    #: against max(1, the largest |expected| of the same output)
    scaled: float = 0.0
    #: the output that is farthest off
    worst: str = ""
    error: str = ""
    elements: int = 0
    above: tuple[int, int] = (0, 0)
    #: the norm of the difference against that of what is expected, of the output where that is largest
    overall: float = 0.0

    def share(self, which: int) -> float:
        """Of elements that differ by more than 0.1 (``which=0``) or 0.01 (``which=1``)."""
        return self.above[which] / max(self.elements, 1)

    def columns(self) -> dict[str, Any]:
        """As the columns of a table; None where nothing could be compared."""
        if self.error:
            return {"abs": None, "rel": None, ">0.1": None, ">0.01": None}
        return {"abs": self.abs, "rel": self.rel, ">0.1": self.share(0), ">0.01": self.share(1)}


def difference(
    expected: Mapping[str, torch.Tensor],
    actual: Mapping[str, torch.Tensor],
    *,
    ignored: Mapping[str, torch.Tensor] | None = None,
    by_order: bool = False,
    floor: float = 1e-3,
) -> Difference:
    """``ignored`` has masks of elements that do not count, by output. Outputs are paired by name, or ``by_order``.

    Equal infinities and two NaNs agree; a NaN on one side only is as wrong as can be. ``floor`` keeps values near zero
    from dominating relative differences.
    """
    pairs = _pairs(expected, actual, by_order)
    if isinstance(pairs, str):
        return Difference(error=pairs)
    result = Difference()
    for name, want, have in pairs:
        if want.shape != have.shape:
            return Difference(error=f"{name} has shape {tuple(have.shape)} instead of {tuple(want.shape)}")
        _add(result, name, want, have, (ignored or {}).get(name), floor)
    return result


def _pairs(
    expected: Mapping[str, torch.Tensor], actual: Mapping[str, torch.Tensor], by_order: bool
) -> list[tuple[str, torch.Tensor, torch.Tensor]] | str:
    if by_order:
        if len(expected) != len(actual):
            return f"{len(actual)} outputs ({', '.join(actual)}) instead of {len(expected)} ({', '.join(expected)})"
        return [(name, want, have) for (name, want), have in zip(expected.items(), actual.values(), strict=True)]
    if others := sorted(set(expected) ^ set(actual)):
        return f"outputs differ: {', '.join(others[:4])}"
    return [(name, want, actual[name]) for name, want in expected.items()]


def _add(
    result: Difference, name: str, want: torch.Tensor, have: torch.Tensor, ignored: torch.Tensor | None, floor: float
) -> None:
    if want.numel() == 0:
        return
    kind = torch.complex128 if want.is_complex() or have.is_complex() else torch.float64
    want, have = want.detach().cpu().to(kind), have.detach().cpu().to(kind)
    same = (want == have) | (want.isnan() & have.isnan())
    apart = (want - have).abs().nan_to_num(nan=math.inf, posinf=math.inf)
    apart = apart.masked_fill(same if ignored is None else same | ignored, 0.0)
    size = want.abs().nan_to_num(nan=0.0, posinf=0.0)
    largest = apart.max().item()
    if largest > result.abs or not result.worst:
        result.worst = name
    result.abs = max(result.abs, largest)
    result.rel = max(result.rel, (apart / size.clamp_min(floor)).max().item())
    result.scaled = max(result.scaled, largest / max(1.0, size.max().item()))
    counted = size if ignored is None else size.masked_fill(ignored, 0.0)
    result.overall = max(result.overall, apart.norm().item() / max(counted.norm().item(), 1e-6))
    result.elements += apart.numel()
    result.above = (result.above[0] + int((apart > 0.1).sum()), result.above[1] + int((apart > 0.01).sum()))
