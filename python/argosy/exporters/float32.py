"""Models whose weights are bfloat16, as graphs in float32: engines on CPUs have no kernels for the other."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

#: What weights are converted from.
NARROW = torch.bfloat16


@contextmanager
def weights_in_float32(model: torch.nn.Module) -> Iterator[dict[int, torch.Tensor]]:
    """For a with block weights of bfloat16 are float32 tensors without data. Gives the originals by the identity of what stands
    for them; as long as it is kept, these identities are theirs."""
    originals: dict[int, torch.Tensor] = {}
    stand_ins: dict[int, torch.Tensor] = {}
    places = []
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    for module in model.modules():
        for holder in (module._parameters, module._buffers):
            for name, tensor in holder.items():
                if tensor is None or tensor.dtype is not NARROW:
                    continue
                if id(tensor) not in stand_ins:
                    with mode:
                        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=torch.float32)
                    is_parameter = isinstance(tensor, torch.nn.Parameter)
                    stand_ins[id(tensor)] = torch.nn.Parameter(fake, requires_grad=False) if is_parameter else fake
                    originals[id(stand_ins[id(tensor)])] = tensor
                places.append((holder, name, tensor))
    try:
        for holder, name, tensor in places:
            holder[name] = stand_ins[id(tensor)]
        yield originals
    finally:
        for holder, name, tensor in places:
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
