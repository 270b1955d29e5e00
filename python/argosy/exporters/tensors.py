"""Tensors inside nested inputs and outputs."""

from __future__ import annotations

from typing import Any

import torch

from ..structures import Path, flatten
from ..observer.calls import is_setting


def dotted(path: Path) -> str:
    """A tensor by the attributes that lead to it; a tensor by itself is ``output``."""
    return ".".join(path) or "output"


def get_leaf_tensors(obj: Any) -> dict[str, torch.Tensor]:
    """All tensors in a nest of containers, dataclasses, model outputs and caches, by dotted path.

    A tensor by itself is called ``output``. Private attributes, like the size of a window that a cache keeps as a tensor, are left
    out.
    """
    leaves, _ = flatten(obj)
    return {dotted(path): tensor for path, tensor in leaves if not is_setting(path)}


def cast_tensors(value: Any, dtype: torch.dtype | None, device: torch.device | None) -> Any:
    """`value` with its tensors on `device` and the floating-point ones in `dtype`; itself if that changes nothing."""
    leaves, structure = flatten(value)
    tensors = [tensor for _, tensor in leaves]
    moved = [
        tensor.to(device=device, dtype=dtype if tensor.is_floating_point() else tensor.dtype) for tensor in tensors
    ]
    if all(after is before for after, before in zip(moved, tensors, strict=True)):
        return value
    return structure.rebuild(iter(moved))


def module_dtype_and_device(module: torch.nn.Module) -> tuple[torch.dtype | None, torch.device | None]:
    """Of its first floating-point parameter; None for a module without one."""
    for parameter in module.parameters():
        if parameter.is_floating_point():
            return parameter.dtype, parameter.device
    return None, None
