"""What registries by name have in common. Importing this module imports nothing else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeVar

from .errors import ExportError


class Registered(Protocol):
    """What a function was registered as."""

    @property
    def function(self) -> Callable[..., Any]: ...


R = TypeVar("R", bound=Registered)


def register_once(table: dict[str, R], name: str, registered: R, what: str) -> None:
    """Enters it under its name. The same function may come again, as a module may be loaded twice; another one may not."""
    other, new = (source_of(each.function) for each in (table.get(name, registered), registered))
    if other != new:
        raise ExportError(
            f"the {what} {name!r} is registered twice: by {other} and {new}",
            code="invalid-input",
            hint="give one of them another name",
        )
    table[name] = registered


def source_of(function: Callable[..., Any]) -> str:
    """``package.module.name``"""
    return f"{getattr(function, '__module__', '?')}.{getattr(function, '__qualname__', type(function).__name__)}"
