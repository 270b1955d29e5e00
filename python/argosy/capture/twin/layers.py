"""Fewer layers, every kind of layer kept.

Configurations tell the kinds of their layers in five ways: a list with an entry per layer, a set of layer indices, a
threshold, a period, and a set of layers whose output is used. The kinds are read from all of them at once, so that a
layer that is special in two ways stays so.
"""

from __future__ import annotations

import math
import re
from typing import Any, TypeGuard

from .roles import LAYERS as ROLES

LAYERS = 2
#: More than this many layers are never kept for a period's sake.
_LONGEST_PERIOD = 8

_OFFSETS = {"attn_layer_period": "attn_layer_offset", "expert_layer_period": "expert_layer_offset"}


def shrink_layers(config: dict[str, Any]) -> None:
    """Rewrites everything about layers in one configuration (not in those nested in it)."""
    count = next((n for n in ROLES.patterns("stack") if _is_count(config.get(n))), None)
    if count is not None and "depths" not in config:
        _shrink_stack(config, count)
    for name, value in config.items():
        role = ROLES.of(name)
        if role in ("stack", "count") and name != count and _is_count(value):
            config[name] = config[count] if role == "stack" and count else min(value, LAYERS)
        elif role == "depths" and isinstance(value, (list, tuple)):
            config[name] = [min(v, 2 if i == 0 else 1) if isinstance(v, int) else v for i, v in enumerate(value)]


#: How many layers there are; a model may go through these several times, each time with states of their own.
_REPEATED = "num_layers_per_stack"


#: What a configuration calls the layers of the part for pictures whose outputs it uses, and that part.
_TAPS_OF_VISION, _VISION = re.compile(r"vision_feature_layers?$"), "vision_config"
_LENT = "out_indices of the whole"


def lend_taps(configs: list[dict[str, Any]]) -> list[tuple[dict[str, Any], str]]:
    """Gives layers that a whole model taps to the part that has them, to be shrunk with it. Returns who lent, and what."""
    lent = []
    for config in configs:
        part = config.get(_VISION)
        for name, value in config.items():
            if not (_TAPS_OF_VISION.match(name) and isinstance(value, (list, tuple)) and isinstance(part, dict)):
                continue
            count = next((part[n] for n in ROLES.patterns("stack") if _is_count(part.get(n))), None)
            if count is not None:
                part[_LENT] = [layer if layer >= 0 else count + 1 + layer for layer in value]
                lent.append((config, name))
    return lent


def take_taps_back(lent: list[tuple[dict[str, Any], str]]) -> None:
    for config, name in lent:
        config[name] = config[_VISION].pop(_LENT)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def _shrink_stack(config: dict[str, Any], count: str) -> None:
    total = config[count]
    stack = _Stack(config, total)
    kept = stack.kept_layers()
    for name in stack.lists:
        config[name] = [config[name][i] for i in kept]
    overrides = {int(i): values for i, values in (config.get("per_layer_config") or {}).items()}
    if overrides:
        config["per_layer_config"] = {new: overrides[old] for new, old in enumerate(kept) if old in overrides}
    for name in stack.sources:
        config[name] = [kept.index(i) for i in config[name]]
    for name in stack.kinds:
        config[name] = [new for new, old in enumerate(kept) if old in config[name]]
    for name, first in stack.taps.items():
        # negative indices count from the end and stay
        config[name] = [i if i < first else kept.index(min(i - first, total - 1)) + first for i in config[name]]
    for name in stack.first:
        config[name] = sum(old < config[name] for old in kept)
    for name in stack.last:
        config[name] = sum(old >= total - config[name] for old in kept)
    repeated = config.get(_REPEATED)
    if _is_count(repeated) and total % repeated == 0:
        config[_REPEATED] = len(kept)
        config[count] = len(kept) * (total // repeated)
    else:
        config[count] = len(kept)


class _Stack:
    """What a configuration says of its layers, by the names of its attributes."""

    def __init__(self, config: dict[str, Any], total: int) -> None:
        self._config, self._total = config, total
        roles = {name: ROLES.of(name) for name in config}
        many = [name for name, value in config.items() if isinstance(value, (list, tuple))]
        self.sources = [name for name in many if roles[name] == "sources" and len(config[name]) == total]
        #: Each with the index of the first layer.
        self.taps = {name: int(roles[name] != "taps") for name in many if str(roles[name]).startswith("taps")}
        self.kinds = [name for name in many if roles[name] == "kinds"]
        self.lists = [
            n for n in many if len(config[n]) == total > LAYERS and n not in self.taps and n not in self.kinds
        ]
        self.first = [name for name, value in config.items() if roles[name] == "first" and _is_count(value)]
        self.last = [name for name, value in config.items() if roles[name] == "last" and _is_count(value)]
        unlisted = ("period",) if self.lists else ("period", "listed period")
        self._periods = [n for n, v in config.items() if roles[n] in unlisted and _is_count(v) and v > 1]

    def kept_layers(self) -> list[int]:
        """Those that the small configuration keeps. Rewrites periods."""
        config, total = self._config, self._total
        period = self._shrink_periods()
        cycle = config.get("block_types")
        if isinstance(cycle, (list, tuple)) and 0 < len(cycle) < total:
            period = math.lcm(period, len(cycle))
        tapped = {min(i - first, total - 1) for n, first in self.taps.items() for i in config[n] if i >= first}
        if period > 1:
            # a period speaks of positions, so that layers can only be dropped at the end
            return list(range(min(total, max(period, LAYERS, *(i + 1 for i in tapped), 0))))
        first_of: dict[tuple, int] = {}
        for i in range(total):
            first_of.setdefault(self._kind(i), i)
        kept = {*first_of.values(), *tapped}
        kept |= {self._config[name][i] for name in self.sources for i in kept}
        for i in range(total):
            if len(kept) < min(total, LAYERS):
                kept.add(i)
        return sorted(kept)

    def _kind(self, i: int) -> tuple:
        config = self._config
        return (
            *(_hashable(config[name][i]) for name in self.lists if name not in self.sources),
            *(config[name][i] == i for name in self.sources),
            *(i in config[name] for name in self.kinds),
            *(i < config[name] for name in self.first),
            *(i >= self._total - config[name] for name in self.last),
        )

    def _shrink_periods(self) -> int:
        """Rewrites long periods as short ones; returns the number of layers after which all of them begin anew."""
        config, whole = self._config, 1
        for name in self._periods:
            period, new = config[name], min(config[name], 4)
            offset = _OFFSETS.get(name)
            if offset is not None and isinstance(config.get(offset), int):
                config[offset] = config[offset] * new // period
            config[name] = new
            whole = math.lcm(whole, new)
        return min(whole, _LONGEST_PERIOD)


def _hashable(value: Any) -> Any:
    return tuple(_hashable(v) for v in value) if isinstance(value, (list, tuple)) else repr(value)
