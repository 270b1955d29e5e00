"""Padding of convolutions in audio codecs."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import torch

from ...patching import register_model_patch

METHOD = "_get_extra_padding_for_conv1d"


@register_model_patch(
    "capture",
    reason="Encodec, Mimi and their relatives hold stride and kernel size in tensors, so the padding is a tensor too, of which "
    "a trace knows nothing, though it follows from sizes alone",
)
@contextlib.contextmanager
def integer_padding(model: torch.nn.Module) -> Iterator[None]:
    """Convolutions that pad to whole frames compute with Python numbers. Found by the method that they share."""
    changed: list[tuple[torch.nn.Module, dict[str, torch.Tensor]]] = []
    for module in model.modules():
        if not hasattr(module, METHOD):
            continue
        numbers = {
            name: buffer
            for name, buffer in module._buffers.items()
            if buffer is not None and buffer.dim() == 0 and not buffer.is_floating_point() and not buffer.is_meta
        }
        if not {"stride", "kernel_size", "padding_total"} <= numbers.keys():
            continue
        for name, buffer in numbers.items():
            del module._buffers[name]
            vars(module)[name] = int(buffer)
        vars(module)[METHOD] = _Padding(module.kernel_size - module.padding_total, module.stride)
        changed.append((module, numbers))
    try:
        yield
    finally:
        for module, numbers in changed:
            for name in (*numbers, METHOD):
                vars(module).pop(name)
            module._buffers.update(numbers)


class _Padding:
    """How many frames of a signal are missing to a whole number of strides."""

    def __init__(self, overlap: int, stride: int) -> None:
        self.overlap, self.stride = overlap, stride

    def __call__(self, hidden_states: torch.Tensor) -> int:
        length = hidden_states.shape[-1]
        frames = (length - self.overlap + self.stride - 1) // self.stride
        return frames * self.stride + self.overlap - length
