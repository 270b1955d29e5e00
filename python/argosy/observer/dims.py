"""Which axes of the tensors of several calls vary, which are equal, and which are sums of others.

Pure arithmetic on sizes: nothing here needs torch. `infer_dims` reads the shapes that a function was called with, a call
at a time, and says for each axis whether it is fixed, a dimension with a name, or a sum, as in
``attention_mask: {0: batch, 1: past_sequence + sequence}``.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

Shapes = Mapping[str, Sequence[int]]


@dataclass(frozen=True)
class DimExpr:
    """A size: a fixed number, a named dimension, or a sum of named dimensions and a number."""

    terms: tuple[tuple[str, int], ...] = ()
    """Name and how many times it is added (at least once), sorted by name."""
    offset: int = 0

    @staticmethod
    def fixed(size: int) -> DimExpr:
        return DimExpr((), size)

    @staticmethod
    def symbol(name: str) -> DimExpr:
        return DimExpr(((name, 1),), 0)

    @property
    def is_fixed(self) -> bool:
        return not self.terms

    @property
    def is_symbol(self) -> bool:
        return self.offset == 0 and len(self.terms) == 1 and self.terms[0][1] == 1

    @property
    def symbols(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.terms)

    def evaluate(self, sizes: Mapping[str, int]) -> int:
        """The size for given sizes of its dimensions."""
        return self.offset + sum(sizes[name] * count for name, count in self.terms)

    def __add__(self, other: DimExpr) -> DimExpr:
        counts = dict(self.terms)
        for name, count in other.terms:
            counts[name] = counts.get(name, 0) + count
        return DimExpr(tuple(sorted(counts.items())), self.offset + other.offset)

    def scaled(self, factor: int) -> DimExpr:
        return DimExpr(tuple((name, count * factor) for name, count in self.terms), self.offset * factor)

    def __str__(self) -> str:
        parts = [name if count == 1 else f"{count}*{name}" for name, count in self.terms]
        if self.offset or not parts:
            parts.append(str(self.offset))
        return " + ".join(parts)


@dataclass
class _Group:
    """Axes that have the same size in every call."""

    axes: list[tuple[str, int]]
    sizes: dict[int, int]
    """Call to size; calls that had none of the axes are left out."""
    name: str = ""
    parts: tuple[_Group, ...] = ()
    """Not empty when it is ``factor * sum(parts) + offset``."""
    factor: int = 1
    offset: int = 0


def infer_dims(calls: Sequence[Shapes]) -> dict[str, dict[int, DimExpr]]:
    """For every tensor named in `calls` and every axis of it, what its size is.

    `calls` has one mapping from name to shape per call; a name may be missing in some. The rules, in order:

    * An axis with one size in all calls that have it is fixed.
    * Two axes are the same dimension if they are equal in every call that has both, and these show two sizes or more.
    * A dimension that is in every call the sum of two or three others, a multiple of one, or one plus a number, is
      written so. Each unknown (the number, the factor) needs one more call that agrees, so that chance finds no sums:
      ``total = past + sequence`` takes two different calls, ``total = past + 1`` three.

    Names follow from the tensors' names (``batch``, ``sequence``, ``past_sequence``, …), the rest are called after
    tensor and axis. The result depends on `calls` only, and lists the tensors in order of appearance.

    Where shapes of a name differ in rank, empty tensors of a smaller rank (a cache that was not filled yet) count as
    missing; any other difference is a ValueError.
    """
    shapes = _shapes_by_name(calls)
    groups = _group_axes(shapes)
    batch = _batch_group(shapes, groups)
    _find_sums([group for group in groups if group is not batch])
    _name_groups(groups, batch, {name: _rank(by_call) for name, by_call in shapes.items()})
    expression = {axis: _expand(group) for group in groups for axis in group.axes}
    return {
        name: {
            axis: expression.get((name, axis)) or DimExpr.fixed(size)
            for axis, size in enumerate(next(iter(by_call.values())))
        }
        for name, by_call in shapes.items()
    }


def dim_sizes(dims: Mapping[str, Mapping[int, DimExpr]], shapes: Shapes) -> dict[str, int]:
    """Sizes of the named dimensions in a call with these `shapes`, read from the axes that are no sums."""
    sizes: dict[str, int] = {}
    for name, shape in shapes.items():
        for axis, dim in dims.get(name, {}).items():
            if dim.is_symbol and axis < len(shape):
                sizes.setdefault(dim.symbols[0], shape[axis])
    return sizes


def _shapes_by_name(calls: Sequence[Shapes]) -> dict[str, dict[int, tuple[int, ...]]]:
    shapes: dict[str, dict[int, tuple[int, ...]]] = {}
    for index, call in enumerate(calls):
        for name, shape in call.items():
            shapes.setdefault(name, {})[index] = tuple(int(size) for size in shape)
    for name, by_call in shapes.items():
        rank = max(len(shape) for shape in by_call.values())
        by_call = {index: shape for index, shape in by_call.items() if len(shape) == rank or 0 not in shape}
        shapes[name] = by_call
        if any(len(shape) != rank for shape in by_call.values()):
            raise ValueError(f"'{name}' has shapes of different ranks: {sorted(set(by_call.values()))}")
    return shapes


def _agree(first: Mapping[int, int], second: Mapping[int, int]) -> bool:
    """Equal wherever both are known, and these calls tell more than one size."""
    common = first.keys() & second.keys()
    return all(first[call] == second[call] for call in common) and len({first[call] for call in common}) > 1


def _group_axes(shapes: Mapping[str, Mapping[int, tuple[int, ...]]]) -> list[_Group]:
    """Groups of the axes that vary. Axes known in most calls come first, as those known in few may fit several groups."""
    varying = []
    for name, by_call in shapes.items():
        for axis in range(len(next(iter(by_call.values())))):
            sizes = {index: shape[axis] for index, shape in by_call.items()}
            if len(set(sizes.values())) > 1:
                varying.append(((name, axis), sizes))
    order = {place: position for position, (place, _) in enumerate(varying)}
    groups: list[_Group] = []
    for place, sizes in sorted(varying, key=lambda item: -len(item[1])):
        for group in groups:
            if _agree(group.sizes, sizes):
                group.axes.append(place)
                group.sizes = {**sizes, **group.sizes}
                break
        else:
            groups.append(_Group([place], dict(sizes)))
    for group in groups:
        group.axes.sort(key=order.__getitem__)
    return sorted(groups, key=lambda group: order[group.axes[0]])


# ---- sums ----


def _find_sums(groups: list[_Group]) -> None:
    for group in groups:
        found = sorted(_candidates(group, groups), key=lambda candidate: candidate[0])
        for _, parts, factor, offset in found:
            if any(_depends_on(part, group) for part in parts):
                continue
            group.parts, group.factor, group.offset = parts, factor, offset
            break


def _candidates(group: _Group, groups: list[_Group]) -> Iterator[tuple[tuple[int, ...], tuple[_Group, ...], int, int]]:
    """Sums that fit, as (rank, parts, factor, number): fewer unknowns, more calls and fewer parts go first."""
    others = [
        (position, other)
        for position, other in enumerate(groups)
        if other is not group and all(other.sizes[c] <= group.sizes[c] for c in other.sizes.keys() & group.sizes.keys())
    ]
    for count in (2, 3, 1):
        for chosen in itertools.combinations(others, count):
            parts = tuple(other for _, other in chosen)
            rows = _rows(group, parts)
            if not rows or len({row[-1] for row in rows}) < 2:
                continue
            for factor, offset in _fits(rows):
                unknowns = (factor != 1) + (offset != 0)
                # One call more than unknowns; a sum of three also needs a third call.
                if len(rows) < max(2, count, 2 + unknowns) or (count == 1 and not unknowns):
                    continue
                # A part that stays the same is hidden in the number, one that is always zero tells nothing.
                columns = [{row[i] for row in rows} for i in range(count)]
                if {0} in columns or (unknowns and any(len(column) == 1 for column in columns)):
                    continue
                yield (unknowns, -len(rows), count, *(position for position, _ in chosen)), parts, factor, offset


def _rows(group: _Group, parts: tuple[_Group, ...]) -> list[tuple[int, ...]]:
    """The distinct combinations of sizes, (part, …, whole), over calls that have them all, in a fixed order."""
    calls = set(group.sizes).intersection(*(part.sizes for part in parts))
    return sorted({(*(part.sizes[call] for part in parts), group.sizes[call]) for call in calls})


def _fits(rows: list[tuple[int, ...]]) -> Iterator[tuple[int, int]]:
    """(factor, number) with ``whole = factor * sum(parts) + number`` in all rows: plain, plus a number, or a multiple."""
    differences = {row[-1] - sum(row[:-1]) for row in rows}
    if len(differences) == 1 and (offset := differences.pop()) >= 0:
        yield 1, offset
    if len(rows[0]) == 2 and rows[0][0] > 0:
        factor = rows[0][1] // rows[0][0]
        if factor > 1 and all(whole == factor * part for part, whole in rows):
            yield factor, 0


def _depends_on(group: _Group, target: _Group) -> bool:
    return group is target or any(_depends_on(part, target) for part in group.parts)


def _expand(group: _Group) -> DimExpr:
    if not group.parts:
        return DimExpr.symbol(group.name)
    total = DimExpr()
    for part in group.parts:
        total = total + _expand(part)
    return total.scaled(group.factor) + DimExpr.fixed(group.offset)


# ---- names ----

#: Inputs whose first axis is the batch, whatever else varies with it.
_BATCHED = ("input_ids", "inputs_embeds", "decoder_input_ids", "input_values", "input_features", "attention_mask")

#: Pattern of the tensor's name, its rank (0: any), axis, name of the dimension. The first row that matches an axis wins.
_NAMES: tuple[tuple[str, int, int, str], ...] = (
    (r"input_ids|inputs_embeds", 0, 1, "sequence"),
    (r"decoder_(input_ids|inputs_embeds)", 0, 1, "decoder_sequence"),
    (r"past\w*\b.*\b(cross|encoder|cross_attention_cache)\b.*", 4, 2, "encoder_sequence"),
    (r"past\w*\b.*", 4, 2, "past_sequence"),
    (r"encoder_(hidden_states|outputs|attention_mask)\b.*", 0, 1, "encoder_sequence"),
    (r"decoder_attention_mask", 2, 1, "total_decoder_sequence"),
    (r"attention_mask\b.*", 2, 1, "total_sequence"),
    (r"attention_mask\b.*", 4, 3, "total_sequence"),
    (r"attention_mask\b.*", 4, 2, "sequence"),
    (r"position_ids|token_type_ids|hidden_states", 0, 1, "sequence"),
    (r"position_ids", 3, 2, "sequence"),
    (r"cache_position", 1, 0, "sequence"),
    (r".*video.*grid_thw|.*pixel_values_videos", 0, 0, "videos"),
    (r".*grid_thw", 2, 0, "images"),
    (r"pixel_values", 2, 0, "patches"),
    (r"pixel_values", 0, 0, "images"),
    (r"pixel_(values|mask).*", 0, -2, "height"),
    (r"pixel_(values|mask).*", 0, -1, "width"),
    (r"input_features|audio_values|.*features?(_attention)?_mask", 0, -1, "frames"),
    (r"input_features", 3, 1, "frames"),
    (r"input_values", 0, -1, "samples"),
)


def _batch_group(shapes: Mapping[str, Mapping[int, tuple[int, ...]]], groups: list[_Group]) -> _Group | None:
    """The group of the batch: the first axis of a batched input, else of most tensors. No batch is part of a sum."""
    first = {axis[0]: group for group in groups for axis in group.axes if axis[1] == 0}
    for name in _BATCHED:
        if name in shapes:
            return first.get(name)
    packed = re.compile(r".*grid_thw|cu_.*seqlens|pixel_values.*|cache_position")
    counts = [
        (sum(1 for name, axis in group.axes if axis == 0 and not packed.fullmatch(name)), -position)
        for position, group in enumerate(groups)
    ]
    most = max(counts, default=(0, 0))
    if most[0] > 0:
        return groups[-most[1]]
    images = next((name for name, by_call in shapes.items() if name == "pixel_values" and _rank(by_call) > 2), None)
    return first.get(images) if images else None


def _rank(by_call: Mapping[int, tuple[int, ...]]) -> int:
    return len(next(iter(by_call.values())))


def _name_groups(groups: list[_Group], batch: _Group | None, ranks: Mapping[str, int]) -> None:
    taken = {"batch"}
    if batch is not None:
        batch.name = "batch"
    unnamed = [group for group in groups if group is not batch and not group.parts]
    for pattern, rank, axis, name in _NAMES:
        for group in unnamed:
            matches = any(
                rank in (0, ranks[tensor]) and position == axis % ranks[tensor] and re.fullmatch(pattern, tensor)
                for tensor, position in group.axes
            )
            if matches and not group.name and name not in taken:
                group.name = name
                taken.add(name)
    for group in unnamed:
        if not group.name:
            tensor, axis = group.axes[0]
            base = re.sub(r"\W+", "_", f"{tensor}_{axis}")
            group.name = next(name for name in _numbered(base) if name not in taken)
            taken.add(group.name)


def _numbered(base: str) -> Iterator[str]:
    yield base
    for number in itertools.count(2):
        yield f"{base}_{number}"
