"""The observer: records real calls of a module and infers from them what an export needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .dims import DimExpr, infer_dims

if TYPE_CHECKING:
    from .observer import InputObserver as InputObserver

__all__ = ["DimExpr", "InputObserver", "infer_dims"]


def __getattr__(name: str) -> Any:
    # `dims` needs no torch, so that the observer itself is imported when it is asked for.
    if name == "InputObserver":
        from .observer import InputObserver

        return InputObserver
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
