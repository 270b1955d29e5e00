"""One observed call: copies of what a method was given and what it returned."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from ..structures import flatten, leaf_name


@dataclass
class Call:
    """Arguments as they were before the call (a cache is changed by it), outputs as they were after it."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    arguments: dict[str, Any]
    """All arguments that were not None by parameter name, in the order of the signature, then as passed."""
    outputs: Any = None
    seconds: float = 0.0
    leaves: dict[str, torch.Tensor] = field(default_factory=dict)
    """The tensors in `arguments` by dotted name: ``past_key_values.0.key``."""

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {name: tuple(tensor.shape) for name, tensor in self.leaves.items()}


#: Flags of transformers' models and what they are where nobody sets them.
_USUAL = {"return_dict": True, "output_attentions": False, "output_hidden_states": False}


def record(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Call:
    """A call of `method`, before it is made. Nothing in it is shared with the caller's objects."""
    own_args, own_kwargs = copy_value((args, dict(kwargs)))
    arguments = name_arguments(method, own_args, own_kwargs)
    return Call(own_args, own_kwargs, arguments, leaves=named_tensors(arguments))


def name_arguments(method: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name. Those of ``*args`` are called ``args.0`` and so on; an argument that is None is left out."""
    try:
        bound = inspect.signature(method).bind_partial(*args, **kwargs)
    except TypeError:
        # The call itself says what is wrong with it; here it only needs names.
        given = {f"args.{i}": value for i, value in enumerate(args)} | dict(kwargs)
        return {name: value for name, value in given.items() if value is not None}
    named: dict[str, Any] = {}
    for name, parameter in bound.signature.parameters.items():
        if name not in bound.arguments:
            continue
        value = bound.arguments[name]
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            named.update({f"{name}.{i}": item for i, item in enumerate(value)})
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            named.update(value)
        else:
            named[name] = value
    # What models of transformers do anyway; and a constant that is no parameter only gets in the way.
    for flag, usual in _USUAL.items():
        if named.get(flag) is usual and flag not in bound.signature.parameters:
            del named[flag]
    return {name: value for name, value in named.items() if value is not None}


def copy_value(value: Any) -> Any:
    """A deep copy. Tensors are cloned and detached, which a plain deepcopy refuses for results of other operations."""
    leaves, _ = flatten(value)
    return copy.deepcopy(value, {id(tensor): tensor.detach().clone() for _, tensor in leaves})


def named_tensors(arguments: Mapping[str, Any]) -> dict[str, torch.Tensor]:
    """The tensors in `arguments` by dotted name. Tensors that merely describe a cache layer are left out."""
    leaves, _ = flatten(dict(arguments))
    return {leaf_name(path): tensor for path, tensor in leaves if not is_setting(path)}


def is_setting(path: tuple[str, ...]) -> bool:
    """Whether the leaf is a private attribute, like the tensor that holds a cache layer's window size."""
    return len(path) > 1 and path[-1].startswith("_")


def output_tensors(outputs: Any) -> dict[str, torch.Tensor]:
    """The tensors in what a method returned, by dotted name."""
    leaves, _ = flatten(outputs)
    return {leaf_name(path) or "output": tensor for path, tensor in leaves if not is_setting(path)}


def with_tensors(arguments: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> dict[str, Any]:
    """`arguments` made anew, with the tensors of these names in place of their own."""
    leaves, structure = flatten(dict(arguments))
    chosen = [tensors.get(leaf_name(path), tensor) for path, tensor in leaves]
    return structure.rebuild(iter(chosen))
