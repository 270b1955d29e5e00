"""What depends on the sizes of media alone: computed outside of graphs, from the values of grids.

Encoders of packed media call functions of a grid (positions, boundaries of sequences, orders of windows) that loop over its
values. These functions are found by their first argument; in a graph their results are inputs.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch

from .swap import replaced

#: Arguments that describe the sizes of media by whole numbers.
GEOMETRY = ("grid_thw", "image_grid_thw", "video_grid_thw", "image_sizes", "target_sizes", "spatial_shapes", "grid_hws",
            "merge_sizes", "image_merge_sizes")
#: What such functions return, by the names that encoders know it under. Others are called after the function.
_RESULTS = {
    "get_vision_position_ids": ("position_ids",),
    "get_vision_nearest_position_ids": ("position_ids",),
    "get_vision_cu_seqlens": ("cu_seqlens",),
    "get_vision_attention_seqlens": ("cu_seqlens", "max_seqlen"),
    "get_vision_window_index": ("window_index", "cu_window_seqlens"),
    "get_window_index": ("window_index", "cu_window_seqlens"),
    "get_vision_interpolation_indices_and_weights": ("interpolation_indices", "interpolation_weights"),
    "rot_pos_emb": ("rotary_positions",),
}


def is_geometry(name: str) -> bool:
    return name in GEOMETRY


def _functions(part: torch.nn.Module) -> list[tuple[Any, str, Callable]]:
    """Where the code of ``part`` finds functions whose first argument is a grid: the namespaces of its classes, and methods
    of its modules."""
    found: list[tuple[Any, str, Callable[..., Any]]] = []
    seen = set()
    for module in part.modules():
        namespace = sys.modules.get(type(module).__module__)
        if namespace is None or namespace.__name__.startswith("torch."):
            continue
        if namespace not in seen:
            seen.add(namespace)
            for name, function in list(vars(namespace).items()):
                if inspect.isfunction(function) and _takes_grid(function):
                    found.append((namespace, name, function))
        for name in _RESULTS:
            if _takes_grid(getattr(type(module), name, None)):
                found.append((module, name, getattr(module, name)))
    return found


def _takes_grid(function: Callable | None) -> bool:
    if function is None:
        return False
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    return bool(names) and names[0] in GEOMETRY


def _names(function: str, count: int) -> list[str]:
    known = _RESULTS.get(function, ())
    if len(known) == count:
        return list(known)
    base = function.removeprefix("get_")
    return [base] if count == 1 else [f"{base}_{i}" for i in range(count)]


@contextlib.contextmanager
def observed_geometry(
    part: torch.nn.Module, found: Callable[[str, torch.Tensor], None], device: torch.device
) -> Iterator[None]:
    """Tells ``found`` what functions of grids return. They get their grids on the CPU, and their callers the results on
    ``device``, all but the boundaries of sequences, whose values are read."""
    level = [0]

    def watched(name: str, function: Callable) -> Callable:
        def call(*args: Any, **kwargs: Any) -> Any:
            level[0] += 1
            try:
                result = function(*args, **kwargs)
            finally:
                level[0] -= 1
            if level[0]:  # called by another of these functions
                return result
            parts = result if isinstance(result, tuple) else (result,)
            names = _names(name, len(parts))
            for key, value in zip(names, parts, strict=True):
                if isinstance(value, torch.Tensor):
                    found(key, value)
            moved = tuple(_moved(key, value, device) for key, value in zip(names, parts, strict=True))
            return moved if isinstance(result, tuple) else moved[0]

        return call

    with contextlib.ExitStack() as stack:
        for owner, name, function in _functions(part):
            stack.enter_context(replaced(owner, name, watched(name, function)))
        yield


def _moved(name: str, value: Any, device: torch.device) -> Any:
    return value.to(device) if isinstance(value, torch.Tensor) and "seqlens" not in name else value


@contextlib.contextmanager
def given_geometry(part: torch.nn.Module, values: dict[str, torch.Tensor]) -> Iterator[None]:
    """Functions of grids return ``values``, and look at no grid."""

    def stand_in(name: str) -> Callable | None:
        base = name.removeprefix("get_")
        names = _RESULTS.get(name) or [key for key in values if key == base or key.startswith(f"{base}_")]
        result = tuple(values.get(key) for key in names)
        if all(value is None for value in result):
            return None
        return lambda *args, **kwargs: result if len(result) > 1 else result[0]

    with contextlib.ExitStack() as stack:
        for owner, name, _ in _functions(part) if values else ():
            if (replacement := stand_in(name)) is not None:
                stack.enter_context(replaced(owner, name, replacement))
        yield
