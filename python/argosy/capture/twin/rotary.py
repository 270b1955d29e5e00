"""Rotary scaling that is consistent with small heads and switches at a length that a test can reach."""

from __future__ import annotations

import functools
import inspect
import re
from pathlib import Path
from typing import Any

#: What a model splits the pairs of a head into, for rows, columns and time, if its configuration does not say.
_SECTIONS = re.compile(r"""["']mrope_section["'],\s*\[([\d,\s]+)\]""")

#: Where scaled rotary embeddings change, in tokens.
LIMIT = 24
#: The same for longrope: ``generate`` begins anew there, so it is more than a check generates, less than it can call with.
LONGROPE_LIMIT = 64


def shrink_rotary(config: dict[str, Any], old: dict[str, Any], head_dim: int | None, old_head_dim: int | None) -> None:
    """Rewrites rotary parameters of one configuration; ``old`` is the same before anything was rewritten."""
    for name in ("rope_parameters", "rope_scaling"):
        value = config.get(name)
        if not isinstance(value, dict):
            continue
        parts = [v for v in value.values() if isinstance(v, dict)] or [value]
        for part in parts:
            _shrink_parameters(part, config, head_dim)
        kinds = {part.get("rope_type") or part.get("type") or "default" for part in parts}
        _shrink_limits(config, old, parts, kinds)
    dim = config.get("rotary_dim")
    if isinstance(dim, int) and head_dim and old_head_dim:
        config["rotary_dim"] = max(2, 2 * (head_dim * dim // old_head_dim // 2))


def complete_sections(config: dict[str, Any]) -> None:
    """Writes out the sections that the model takes where the configuration has none: they are for heads of full width."""
    name = next((name for name in ("rope_parameters", "rope_scaling") if name in config), None)  # the latter: transformers 4
    sections = _default_sections(config.get("model_type", ""))
    if name is None or not sections:
        return
    if not isinstance(config[name], dict):
        config[name] = {"rope_type": "default"} if name == "rope_parameters" else {"type": "mrope"}
    for part in [value for value in config[name].values() if isinstance(value, dict)] or [config[name]]:
        part.setdefault("mrope_section", list(sections))


@functools.cache
def _default_sections(model_type: str) -> tuple[int, ...]:
    """They are in the code of the model, and nowhere else."""
    from transformers import CONFIG_MAPPING

    if model_type not in CONFIG_MAPPING:
        return ()
    folder = Path(inspect.getfile(CONFIG_MAPPING[model_type])).parent
    found = [match for file in sorted(folder.glob("modeling_*.py")) for match in _SECTIONS.findall(file.read_text())]
    return tuple(int(number) for number in found[0].split(",")) if found else ()


def _shrink_parameters(part: dict[str, Any], config: dict[str, Any], head_dim: int | None) -> None:
    if head_dim is None:
        return
    partial = part.get("partial_rotary_factor", config.get("partial_rotary_factor")) or 1.0
    half = max(1, int(head_dim * partial) // 2)
    section = part.get("mrope_section")
    if section:
        part["mrope_section"] = _apportion(section, half)
    for name in ("short_factor", "long_factor"):
        factors = part.get(name)
        if isinstance(factors, list) and factors:
            part[name] = [factors[i * len(factors) // half] for i in range(half)]


def _apportion(section: list[int], total: int) -> list[int]:
    """Splits ``total`` in the proportions of ``section``, at least one each."""
    new = [max(1, value * total // sum(section)) for value in section]
    order = sorted(range(len(section)), key=lambda i: -section[i])
    while sum(new) < total:
        new[order[sum(new) % len(order)]] += 1
    while sum(new) > total and max(new) > 1:
        new[new.index(max(new))] -= 1
    return new


def _shrink_limits(config: dict[str, Any], old: dict[str, Any], parts: list[dict[str, Any]], kinds: set[str]) -> None:
    longest = old.get("max_position_embeddings")
    limit = LONGROPE_LIMIT if "longrope" in kinds else LIMIT
    for part in parts:
        original = part.get("original_max_position_embeddings") or old.get("original_max_position_embeddings")
        if not isinstance(original, int):
            continue
        if "original_max_position_embeddings" in part:
            part["original_max_position_embeddings"] = limit
        if isinstance(longest, int):
            config["max_position_embeddings"] = max(64, min(limit * longest // original, 1024))
    if isinstance(old.get("original_max_position_embeddings"), int):
        config["original_max_position_embeddings"] = limit
    if "dynamic" in kinds:
        config["max_position_embeddings"] = limit  # here this is the length at which the base changes
