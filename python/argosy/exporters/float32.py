"""Models whose weights are bfloat16, as graphs in float32: engines on CPUs have no kernels for the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch

from ..capture.weightless import stand_ins

#: What weights are converted from.
NARROW = torch.bfloat16


@contextmanager
def weights_in_float32(model: torch.nn.Module) -> Iterator[dict[int, torch.Tensor]]:
    """For a with block weights of bfloat16 are float32 tensors without data. Gives the originals by the identity of what stands
    for them; as long as it is kept, these identities are theirs."""
    places = stand_ins(model, lambda tensor: tensor.dtype is NARROW, torch.float32)
    try:
        for holder, name, _, fake in places:
            holder[name] = fake
        yield {id(fake): tensor for _, _, tensor, fake in places}
    finally:
        for holder, name, tensor, _ in places:
            holder[name] = tensor


def give_back(program: torch.export.ExportedProgram, originals: dict[int, torch.Tensor]) -> None:
    """The program with its weights as they are in the model, for a reader that converts them."""
    for values in (program.state_dict, program.constants):
        for name, value in values.items():
            if isinstance(value, torch.Tensor) and id(value) in originals:
                values[name] = originals[id(value)]


def widened(inputs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Inputs of a graph in float32, whichever a caller has."""
    return {name: tensor.float() if tensor.dtype is NARROW else tensor for name, tensor in inputs.items()}
