"""Which layers of a deep model a shallow one should have, so that its graph shows all that the deep one does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: By depth: which of that many layers are kept.
Selection = dict[int, list[int]]
#: Of the layers, so many at most are worth tracing.
_WORTH = 0.6


def selections(kinds: dict[int, Sequence[Any]]) -> list[list[Selection]]:
    """Series of two selections, the second larger, by the ``kinds`` of layers that each depth has. The first series leaves
    out whichever layers are not needed, the second only those at the end: some configurations say what a layer is by its
    place alone."""
    found = []
    for series in (_chosen, _beginnings):
        by_depth = {depth: series(each) for depth, each in kinds.items()}
        if all(by_depth.values()):
            found.append([{depth: each[i] for depth, each in by_depth.items()} for i in range(2)])
    return [each for each in found if sum(map(len, each[0].values())) <= _WORTH * sum(kinds)]


def _pairs(kinds: Sequence[Any], kept: Sequence[int]) -> set[tuple[Any, Any]]:
    """Which kind follows which, behind the first layer."""
    return {(kinds[a], kinds[b]) for a, b in zip(kept[1:], kept[2:], strict=False)}


def _chosen(kinds: Sequence[Any]) -> list[list[int]]:
    last = len(kinds) - 1
    kept = {0, last}
    for i in range(1, last):
        if kinds[i] not in {kinds[each] for each in kept if each}:
            kept.add(i)
    series = [sorted(kept)]
    for i in range(2, len(kinds)):
        pair = (kinds[i - 1], kinds[i])
        if pair not in _pairs(kinds, sorted(kept)):
            ways = [{i - 1}, {i}, {i - 1, i}]
            kept |= next(way for way in ways if pair in _pairs(kinds, sorted(kept | way)))
    for _ in range(2):
        series.append(sorted(kept := _one_more_of_each(kinds, kept)) if len(kept) == len(series[-1]) else sorted(kept))
    return series[1:] if len(series[0]) < len(series[1]) < len(series[2]) else []


def _one_more_of_each(kinds: Sequence[Any], kept: set[int]) -> set[int]:
    more = set(kept)
    for kind in set(kinds[1:]):
        more |= set([i for i in range(1, len(kinds)) if kinds[i] == kind and i not in kept][:1])
    return more


def _beginnings(kinds: Sequence[Any]) -> list[list[int]]:
    def shows(depth: int, times: int, pairs: bool) -> bool:
        if kinds[depth - 1] != kinds[-1]:
            return False
        if pairs and not _pairs(kinds, range(len(kinds))) <= _pairs(kinds, range(depth)):
            return False
        return all(kinds[1:depth].count(kind) >= min(times, kinds[1:].count(kind)) for kind in kinds[1:])

    kinds = list(kinds)
    series: list[list[int]] = []
    for times, pairs in ((1, False), (2, True), (3, True)):
        least = len(series[-1]) + 1 if series else 2
        depth = next((n for n in range(least, len(kinds)) if shows(n, times, pairs)), None)
        if depth is None:
            return []
        series.append(list(range(depth)))
    return series[1:]
