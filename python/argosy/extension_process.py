"""What the processes have in common that the command starts to run what extensions have registered."""

from __future__ import annotations

import contextlib
import json
import os
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, BinaryIO, TypeVar

from .errors import ExportError

Registered = TypeVar("Registered")


@contextlib.contextmanager
def answers() -> Iterator[BinaryIO]:
    """Where answers go: stdout. What extensions print goes to stderr from now on."""
    with os.fdopen(os.dup(1), "wb") as stream:
        os.dup2(2, 1)
        yield stream


def find(
    kind: str, name: str, registry: Callable[[], dict[str, Registered]], describe: Callable[[Registered], dict[str, Any]],
    stream: BinaryIO,
) -> Registered | None:  # fmt: skip
    """What an extension has registered by that name; the first line of answers tells the command of it, or why there is none."""
    about: dict[str, Any]
    try:
        known = registry()
        found = known.get(name)
        if found is None:
            about = {"error": f"installed packages have {kind} {', '.join(sorted(known)) or 'none'}", "unknown": True}
        else:
            about = describe(found)
    except Exception as error:
        found, about = None, error_of(error, kind)
    send(stream, {"version": 1, **about})
    return found


def send(stream: BinaryIO, answer: dict[str, Any]) -> None:
    """A line of JSON."""
    stream.write(json.dumps(answer).encode() + b"\n")
    stream.flush()


def error_of(error: Exception, what: str) -> dict[str, str]:
    """With the place where somebody's function failed."""
    if isinstance(error, ExportError):
        return {"error": error.message, "hint": error.hint}
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return {"error": f"the {what} fails at {place}: {said}", "hint": "correct it there, or leave it out"}
