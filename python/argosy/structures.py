"""Flattening of nested inputs and outputs (caches, model outputs, containers) to named tensors, and back.

One rule serves every cache class: an object's attributes are walked, tensors become leaves, everything else is kept as it
is. So a cache type that appears tomorrow needs no code here.
"""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch

Path = tuple[str, ...]

#: Attributes of caches by the names that engines and users know them under.
_PART_NAMES = {
    "keys": "key",
    "values": "value",
    "key_cache": "key",
    "value_cache": "value",
    "self_attention_cache": "decoder",
    "cross_attention_cache": "encoder",
}
#: Parts that only hold others and would make names longer without saying more.
_SILENT_PARTS = {"layers"}


@dataclasses.dataclass(frozen=True)
class Structure:
    """How to make a value again from its leaves. Mutable parts are copied each time, so that uses do not share state."""

    rebuild: Callable[[Iterator[torch.Tensor]], Any]


def flatten(value: Any, path: Path = ()) -> tuple[list[tuple[Path, torch.Tensor]], Structure]:
    """The tensors of ``value`` with their paths, in a fixed order, and what makes it again from as many tensors."""
    if isinstance(value, torch.Tensor):
        return [(path, value)], Structure(next)
    if isinstance(value, Mapping):
        items = [(str(key), item) for key, item in value.items()]
        keys = list(value)
        kind: Any = type(value)

        def mapping(parts: list[Any]) -> Any:
            pairs = dict(zip(keys, parts, strict=True))
            return pairs if kind is dict else kind(**pairs) if dataclasses.is_dataclass(value) else kind(pairs)

        return _flatten_parts(items, path, mapping)
    if isinstance(value, (list, tuple)):
        sequence: Any = type(value)
        named = hasattr(value, "_fields")
        items = [(str(i), item) for i, item in enumerate(value)]
        return _flatten_parts(items, path, lambda parts: sequence(*parts) if named else sequence(parts))
    if _is_container(value):
        names = [name for name, part in vars(value).items() if _holds_tensors(part)]
        empty = copy.copy(value)
        for name in names:
            empty.__dict__[name] = None

        def instance(parts: list[Any]) -> Any:
            result = copy.deepcopy(empty)
            result.__dict__.update(zip(names, parts, strict=True))
            # The order of attributes is part of the value: flattening it again must give the same order of leaves.
            result.__dict__.update({key: result.__dict__.pop(key) for key in list(vars(value))})
            return result

        return _flatten_parts([(name, vars(value)[name]) for name in names], path, instance)
    return [], Structure(lambda leaves: copy.deepcopy(value) if isinstance(value, (dict, list, set)) else value)


def _flatten_parts(items: list[tuple[str, Any]], path: Path, make: Callable) -> tuple[list, Structure]:
    leaves, structures = [], []
    for name, item in items:
        found, structure = flatten(item, (*path, name))
        leaves += found
        structures.append(structure)
    return leaves, Structure(lambda rest: make([structure.rebuild(rest) for structure in structures]))


def _is_container(value: Any) -> bool:
    """An object whose attributes may hold tensors that belong to a call: a cache, one of its layers, an output."""
    if isinstance(value, (torch.nn.Module, type)) or not hasattr(value, "__dict__"):
        return False
    return _holds_tensors(value)


def _holds_tensors(value: Any, depth: int = 0) -> bool:
    if isinstance(value, torch.Tensor):
        return True
    if depth > 6 or isinstance(value, (torch.nn.Module, type, str, bytes, int, float)):
        return False
    if isinstance(value, Mapping):
        return any(_holds_tensors(item, depth + 1) for item in value.values())
    if isinstance(value, (list, tuple)):
        return any(_holds_tensors(item, depth + 1) for item in value)
    if type(value).__module__.split(".")[0] in ("torch", "builtins", "collections"):
        return False
    return any(_holds_tensors(item, depth + 1) for item in getattr(value, "__dict__", {}).values())


def leaf_name(path: Path) -> str:
    """A dotted name: ``("past_key_values", "layers", "0", "keys")`` is ``past_key_values.0.key``.

    In caches of two parts the layer comes first, as engines write it: ``past_key_values.0.decoder.key``.
    """
    parts = [_PART_NAMES.get(part, part) for part in path if part not in _SILENT_PARTS]
    for i in range(1, len(parts) - 1):
        if parts[i] in ("decoder", "encoder") and parts[i + 1].isdigit():
            parts[i], parts[i + 1] = parts[i + 1], parts[i]
    return ".".join(parts)


def identifier(name: str) -> str:
    """``name`` as a Python identifier, which names of graph inputs must be."""
    text = "".join(char if char.isalnum() else "_" for char in name)
    return text if text and not text[0].isdigit() else f"_{text}"


def named_leaves(value: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors of keyword arguments (or of a model's output) by dotted name."""
    leaves, _ = flatten(dict(value))
    result = {leaf_name(path): tensor for path, tensor in leaves}
    assert len(result) == len(leaves), "two leaves of one name"
    return result
