"""What one model of the corpus is: a name, a kind, and a function that builds the module with its sample inputs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import torch
from torch.export import Dim

DYNAMIC = Dim.DYNAMIC  # the export fails if tracing turns this axis into a constant
AUTO = Dim.AUTO  # the axis may become a constant where the model's code needs one
BATCH = {0: DYNAMIC}
BATCH_SEQ = {0: DYNAMIC, 1: DYNAMIC}

VOCAB = 96


@dataclass(frozen=True)
class Inputs:
    """Arguments of one call of forward()."""

    args: tuple = ()
    kwargs: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Sample:
    """A built model. `traced` is what torch.export sees; `other` has other sizes along the dynamic axes."""

    module: torch.nn.Module
    traced: Inputs
    dynamic_shapes: Any
    other: Inputs


class Decompose(Enum):
    """What happens to the exported program before it is saved."""

    NOTHING = "nothing"
    WRITES = "writes"  # in-place writes become outputs that the signature declares as mutations
    CORE_ATEN = "core-aten"  # that, and composite ops are broken up as run_decompositions() does by default


@dataclass(frozen=True)
class ModelCase:
    """One architecture. `build` is deterministic: build_sample() seeds the generator before it.

    `with_grad` exports outside torch.no_grad(), as users do who forget it: regions under no_grad inside the model then
    become wrap_with_set_grad_enabled sub-graphs. `patched` traces inside transformers' own patches for export, for
    models whose code cannot be traced as it is.
    """

    name: str
    kind: str
    build: Callable[[], Sample]
    with_grad: bool = False
    decompose: Decompose = Decompose.NOTHING
    patched: bool = False


def build_sample(case: ModelCase) -> Sample:
    torch.manual_seed(sum(case.name.encode()))
    return case.build()


def make_distinct(module: torch.nn.Module) -> torch.nn.Module:
    """Adds noise to every parameter: fresh norms are all ones and biases all zeros, so that swapping two of them would
    go unnoticed."""
    with torch.no_grad():
        for parameter in module.parameters():
            if parameter.is_floating_point():
                parameter.add_(torch.randn_like(parameter) * 0.05)
    return module.eval()


def tokens(batch: int, length: int, low: int = 3) -> torch.Tensor:
    return torch.randint(low, VOCAB, (batch, length))


def padding_mask(batch: int, length: int, padding: int = 2, side: str = "left") -> torch.Tensor:
    """Ones, with `padding` zeros at one side of the last row."""
    mask = torch.ones(batch, length, dtype=torch.long)
    mask[-1, slice(0, padding) if side == "left" else slice(length - padding, length)] = 0
    return mask


def floats(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.randn(*shape).to(dtype)
