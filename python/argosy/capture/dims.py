"""Names and ranges of the axes that vary, found by comparing calls of different sizes."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import torch

from ..errors import ExportError
from .components import Component, Shape
from ..structures import named_leaves


#: Smallest and largest size by name of dim; None is no bound.
Limits = dict[str, tuple[int, int | None]]


@dataclass
class Dims:
    #: for each input the name of each axis that varies: {"input_ids": {0: "batch", 1: "sequence"}}
    names: dict[str, dict[int, str]] = field(default_factory=dict)
    #: smallest and largest size of each name; None is no bound
    ranges: Limits = field(default_factory=dict)
    #: names that are sums of others: {"total_sequence": ("past_sequence", "sequence")}
    sums: dict[str, tuple[str, ...]] = field(default_factory=dict)


#: Sizes that differ from each other in every call, and in every sum of two.
OBSERVED_SHAPES = (Shape(2, 19, 23, 3, 0), Shape(3, 21, 26, 2, 1), Shape(4, 17, 31, 1, 0))
SUMS = {"total_sequence": ("past_sequence", "sequence")}


def observe_dims(component: Component, model: torch.nn.Module, shapes: tuple[Shape, ...] = OBSERVED_SHAPES) -> Dims:
    """Runs the component's input maker at several shapes and names what varies."""
    calls, symbols = [], []
    for shape in shapes:
        leaves = named_leaves(component.inputs(model, shape))
        calls.append({name: tuple(tensor.shape) for name, tensor in leaves.items()})
        symbols.append(component.symbols(shape))
    return infer_dims(calls, symbols)


def infer_dims(calls: list[dict[str, tuple[int, ...]]], symbols: list[dict[str, int]]) -> Dims:
    """``calls`` are shapes by input; ``symbols`` what the sizes of each call were called by who chose them."""
    dims = Dims()
    others: dict[tuple[int, ...], str] = {}
    for name, shape in calls[0].items():
        sizes = [size for call in calls if (size := call.get(name)) is not None and len(size) == len(shape)]
        if len(sizes) < len(calls):
            continue
        for axis in range(len(shape)):
            seen = tuple(size[axis] for size in sizes)
            if len(set(seen)) == 1:
                continue
            known = next((key for key in symbols[0] if tuple(each[key] for each in symbols) == seen), None)
            found = known or others.get(seen) or _new_name(name, axis - len(shape), axis, others.values())
            if known is None:
                others[seen] = found
            dims.names.setdefault(name, {})[axis] = found
    used = {found for axes in dims.names.values() for found in axes.values()}
    dims.sums = {name: parts for name, parts in SUMS.items() if name in used}
    dims.ranges = {name: (0 if may_be_empty(name) else 1, None) for name in sorted(used)}
    return dims


def _new_name(name: str, from_end: int, axis: int, taken: Collection[str]) -> str:
    """A name for an axis that nobody called anything: the last two of a picture are its height and width."""
    side = {-2: "height", -1: "width"}.get(from_end) if name.startswith("pixel") else None
    return side if side is not None and side not in taken else f"{name}.{axis}"


def may_be_empty(name: str) -> bool:
    """A call can do without a past, and without media."""
    return name.startswith("past") or name.endswith("_tokens")


def parse_shape(text: str) -> Limits:
    """``batch=1,sequence=1..2048,past_sequence=0..`` as ranges by name."""
    ranges = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, equals, value = part.partition("=")
        low, dots, high = value.partition("..")
        try:
            first = int(low)
            last = first if not dots else int(high) if high else None
        except ValueError:
            equals = ""
        if not equals or not name or (last is not None and last < first) or first < 0:
            raise ExportError(
                f"'{part}' is not a range of a dim", code="usage", hint="write batch=1 or sequence=1..2048"
            )
        ranges[name.strip()] = (first, last)
    return ranges


def reach(limits: Limits) -> int:
    """How many positions a twin needs to be called within ``limits``."""
    lengths = [low for name, (low, _) in limits.items() if name.endswith("sequence")]
    return 128 + max(lengths, default=0)


def check_names(limits: Limits, components: list[Dims]) -> None:
    """Every name of ``limits`` is one of a dim of some component."""
    known = sorted({name for dims in components for name in dims.ranges})
    for name in limits:
        if name not in known:
            raise ExportError(
                f"the model has no dim '{name}' that --shape could narrow",
                code="invalid-input",
                hint=f"it has {', '.join(known)}" if known else "none of its dims varies",
            )


def narrowed(dims: Dims, limits: Limits) -> Dims:
    """``dims`` within ``limits``. A dim that has one size left is a number in what is exported."""
    ranges = dict(dims.ranges)
    for name in sorted(ranges.keys() & limits.keys()):
        low, high = ranges[name]
        wanted_low, wanted_high = limits[name]
        bounds = [bound for bound in (high, wanted_high) if bound is not None]
        least, most = max(low, wanted_low), min(bounds, default=None)
        ranges[name] = (least, most)
        if most is not None and least > most:
            raise ExportError(
                f"--shape leaves the dim '{name}' no size: it is {low} {f'to {high}' if high is not None else 'or more'}",
                code="invalid-input",
                hint="give a size in that range",
            )
    return Dims(dims.names, ranges, dims.sums)
