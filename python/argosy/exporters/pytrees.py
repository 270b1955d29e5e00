"""Makes caches and other containers known to pytree, so that programs take and return them as they are.

One rule for all classes: an object is its tensors, and a description of everything else from which it can be made again.
Two descriptions are equal if they have the same form; numbers and flags in them may differ, as they do from call to call.
"""

from __future__ import annotations

import functools
import importlib
import json
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree

#: Attributes that count the tokens in a cache layer. In a graph they are the size of the keys, not a constant.
LENGTHS = ("cumulative_length", "_seen_tokens", "seen_tokens")


#: Classes and functions by path. Strict traces cannot import; what they need has been found before.
_FOUND: dict[str, Any] = {}


class Form(NamedTuple):
    """A description: a nest of tagged lists that JSON can hold. A named tuple, which torch's strict mode can follow."""

    node: list[Any]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Form) and _outline(self.node) == _outline(other.node)

    def __ne__(self, other: object) -> bool:  # a tuple has one of its own
        return not self == other

    def __hash__(self) -> int:
        return hash(json.dumps(_outline(self.node)))


def register_containers(*values: Any) -> None:
    """Registers the classes of all objects in `values` that hold tensors and are not known yet."""
    for value in values:
        if isinstance(value, dict):
            register_containers(*value.values())
        elif isinstance(value, (list, tuple)):
            register_containers(*value)
        elif _is_object(value):
            register_class(type(value))
        if type(value) in _pytree.SUPPORTED_NODES and not isinstance(value, (dict, list, tuple)):
            _pytree.tree_unflatten(*_pytree.tree_flatten(value))  # finds the classes inside


def register_cache_pytrees() -> None:
    """Registers all cache classes of transformers."""
    from transformers import cache_utils

    waiting = [cache_utils.Cache]
    while waiting:
        kind = waiting.pop()
        register_class(kind)
        waiting += kind.__subclasses__()


def register_cache_pytrees_for_model(model: torch.nn.Module) -> None:
    """Registers all cache classes: a model may return one that was not among its inputs."""
    register_cache_pytrees()
    # Some models have a cache class of their own, beside transformers' base class.
    for name, value in vars(sys.modules[type(model).__module__]).items():
        if isinstance(value, type) and name.endswith("Cache") and not issubclass(value, torch.nn.Module):
            register_class(value)


def register_class(kind: type) -> None:
    if kind in _pytree.SUPPORTED_NODES:
        return
    _pytree.register_pytree_node(
        kind,
        _flatten,
        _unflatten,
        serialized_type_name=f"{kind.__module__}.{kind.__qualname__}",
        to_dumpable_context=lambda form: form.node,
        from_dumpable_context=Form,
        flatten_with_keys_fn=_flatten_with_keys,
    )


def _flatten(value: Any) -> tuple[list[torch.Tensor], Form]:
    leaves: list[torch.Tensor] = []
    return leaves, Form(_describe(value, leaves))


def _flatten_with_keys(value: Any) -> tuple[list[tuple[Any, torch.Tensor]], Form]:
    leaves, form = _flatten(value)
    return [(_pytree.SequenceKey(index), leaf) for index, leaf in enumerate(leaves)], form


def _unflatten(leaves: Any, form: Form) -> Any:
    given = list(leaves)
    return _make(form.node, iter(given), given)


# ---- objects to descriptions and back ----


def _is_object(value: Any) -> bool:
    return (
        hasattr(value, "__dict__")
        and not isinstance(value, (type, torch.Tensor, torch.nn.Module))
        and type(value) not in _pytree.SUPPORTED_NODES
        and type(value).__module__.split(".")[0] not in ("builtins", "torch", "functools", "enum")
    )


def _describe(value: Any, leaves: list[torch.Tensor]) -> list[Any]:
    if isinstance(value, torch.Tensor):
        leaves.append(value)
        return ["tensor"]
    if isinstance(value, (torch.SymInt, torch.SymFloat, torch.SymBool)):
        return ["value", None]
    if value is None or isinstance(value, (bool, int, float, str)):
        return ["value", value]
    if isinstance(value, (torch.dtype, torch.device)):
        return [type(value).__name__, str(value).removeprefix("torch.")]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, [_describe(item, leaves) for item in value]]
    if isinstance(value, dict):
        return ["dict", [[_describe(key, []), _describe(item, leaves)] for key, item in value.items()]]
    if isinstance(value, type):
        return ["class", _path(value)]
    if isinstance(value, functools.partial):
        return ["partial", _path(value.func), _describe(value.args, leaves), _describe(value.keywords, leaves)]
    if hasattr(value, "__dict__") and not callable(value):
        return ["object", _path(type(value)), [*_describe_attributes(value, leaves)]]
    return ["value", None]


def _describe_attributes(value: Any, leaves: list[torch.Tensor]) -> Iterator[list[Any]]:
    attributes = vars(value)
    keys = attributes.get("keys")
    first = len(leaves)
    for name, part in attributes.items():
        length = name in LENGTHS and isinstance(part, (int, torch.SymInt)) and isinstance(keys, torch.Tensor)
        if length and keys.dim() > 1 and (isinstance(part, torch.SymInt) or part == keys.shape[-2]):
            before = [item for key, item in attributes.items() if isinstance(item, torch.Tensor)]
            position = next(i for i, item in enumerate(before) if item is keys)
            yield [name, ["length", first + position]]
        else:
            yield [name, _describe(part, leaves)]


def _make(node: list[Any], leaves: Iterator[Any], given: list[Any]) -> Any:
    tag = node[0]
    if tag == "tensor":
        return next(leaves)
    if tag == "value":
        return node[1]
    if tag == "length":
        keys = given[node[1]]
        return keys.shape[-2] if isinstance(keys, torch.Tensor) else 0
    if tag in ("list", "tuple"):
        parts = [_make(part, leaves, given) for part in node[1]]
        return parts if tag == "list" else tuple(parts)
    if tag == "dict":
        return {_make(key, iter(()), []): _make(part, leaves, given) for key, part in node[1]}
    if tag == "object":
        kind = _find(node[1])
        result = kind.__new__(kind)
        for name, part in node[2]:
            vars(result)[name] = _make(part, leaves, given)
        return result
    if tag == "class":
        return _find(node[1])
    if tag == "partial":
        args, keywords = _make(node[2], leaves, given), _make(node[3], leaves, given)
        return functools.partial(_find(node[1]), *args, **keywords)
    return getattr(torch, node[1]) if tag == "dtype" else torch.device(node[1])


def _outline(node: list[Any]) -> list[Any]:
    """The form alone: what is a tensor, what a container, which class."""
    tag = node[0]
    if tag in ("value", "length", "dtype", "device"):
        return ["value"]
    if tag in ("list", "tuple"):
        return [tag, [_outline(part) for part in node[1]]]
    if tag == "dict":
        return [tag, [[key, _outline(part)] for key, part in node[1]]]
    if tag == "object":
        return [tag, node[1], [[name, _outline(part)] for name, part in node[2]]]
    return node


def _path(value: Any) -> str:
    return f"{value.__module__}:{value.__qualname__}"


def _find(path: str) -> Any:
    if path not in _FOUND:
        module, _, name = path.partition(":")
        _FOUND[path] = functools.reduce(getattr, name.split("."), importlib.import_module(module))
    return _FOUND[path]
