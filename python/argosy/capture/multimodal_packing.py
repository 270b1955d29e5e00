"""Packing: features of the crops of a picture put in the order of the whole picture, without its borders, with a mark
after each row.

How long the result is depends on the sizes of pictures; but it is a choice of rows that sizes alone decide. The numbers of
these rows are computed outside the graph, by packing numbers instead of features.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch

from .swap import bound_arguments
from .swap import replaced

_METHOD = "pack_image_features"
_MARK = "image_newline"


@dataclass
class Packing:
    """One call of the packing method."""

    #: flat features before packing, [rows, width]
    rows: torch.Tensor
    #: numbers of rows after packing; ``len(rows)`` is the mark
    index: torch.Tensor
    #: crops of each picture
    counts: list[int]


@contextlib.contextmanager
def observed_packing(owner: torch.nn.Module, found: Callable[[Packing], None]) -> Iterator[None]:
    """Tells ``found`` how features were packed, if ``owner`` packs any."""
    original = getattr(owner, _METHOD, None)
    if original is None:
        yield
        return

    def call(*args, **kwargs):
        arguments = bound_arguments(original, args, kwargs)
        parts = list(arguments["image_features"])
        index = _numbers(original, arguments, parts)
        if index is not None:
            rows = torch.cat([part.reshape(-1, part.shape[-1]) for part in parts])
            found(Packing(rows, index, [part.shape[0] for part in parts]))
        return original(*args, **kwargs)

    with replaced(owner, _METHOD, call):
        yield


def _numbers(method: Callable, arguments: dict, parts: list[torch.Tensor]) -> torch.Tensor | None:
    """Which row each packed feature is; None if some are made from several rows (very large pictures are shrunk)."""
    numbered, start = [], 0
    for part in parts:
        count = part.shape[:-1].numel()
        numbered.append(torch.arange(start, start + count, dtype=torch.float64).reshape(*part.shape[:-1], 1))
        start += count
    mark = {} if arguments.get(_MARK) is None else {_MARK: torch.full((1,), float(start), dtype=torch.float64)}
    packed = method(**{**arguments, "image_features": numbered, **mark})[0]
    numbers = torch.cat([part.reshape(-1) for part in packed])
    return numbers.long() if bool((numbers == numbers.round()).all()) else None


def packed_rows(owner: torch.nn.Module, rows: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
    mark = getattr(owner, _MARK, None)
    return rows[index] if mark is None else torch.cat([rows, mark[None].to(rows.dtype)])[index]


def crops_of(pixels: torch.Tensor, counts: list[int]) -> torch.Tensor:
    """The crops of all pictures one after another, without the padding of pictures that have fewer."""
    return (
        pixels if pixels.dim() == 4 else torch.cat([each[:count] for each, count in zip(pixels, counts, strict=True)])
    )
