"""Replacing attributes for a while, ending a call early, and a call's arguments by name."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch


class Reached(BaseException):
    """Raised where a run ends, with what was there: nothing behind it has to run or to be traceable."""

    def __init__(self, value: Any) -> None:
        self.value = value


def run_until_reached(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls ``function`` up to a ``raise Reached(value)``. Returns the value."""
    from torch.fx.experimental.proxy_tensor import get_proxy_mode

    mode = get_proxy_mode()
    stack = getattr(getattr(mode, "tracer", None), "module_stack", None) or {}
    depth = len(stack)
    try:
        function(*args, **kwargs)
    except Reached as reached:
        # The tracer notes which module it is in, and does not take the note back when an exception passes.
        while len(stack) > depth:
            stack.popitem()
        return reached.value
    name = getattr(function, "__qualname__", type(function).__name__)
    raise RuntimeError(f"{name} ended before the place where it is cut")


@contextlib.contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is ``value`` for a while."""
    had = name in vars(owner)
    old = vars(owner).get(name)
    _set(owner, name, value)
    try:
        yield
    finally:
        if had:
            _set(owner, name, old)
        elif isinstance(owner, torch.nn.Module):
            object.__delattr__(owner, name)
        else:
            delattr(owner, name)


def _set(owner: Any, name: str, value: Any) -> None:
    # A module's own way of setting attributes would register modules and parameters.
    object.__setattr__(owner, name, value) if isinstance(owner, torch.nn.Module) else setattr(owner, name, value)


def bound_arguments(function: Callable, args: tuple, kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a call by name, those of catch-alls among them."""
    signature = inspect.signature(function)
    arguments = dict(signature.bind(*args, **kwargs).arguments)
    for name, parameter in signature.parameters.items():
        if parameter.kind is parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(name, {}))
    return arguments
