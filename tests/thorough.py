"""Which values of a parametrised test run for every change: the gate has 45 minutes. `pytest -m thorough` runs the others."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import Any

import pytest


def thorough(value: Any) -> Any:
    """A value that only `pytest -m thorough` runs; a tuple stands for several arguments."""
    values = value if isinstance(value, tuple) else (value,)
    return pytest.param(*values, marks=pytest.mark.thorough)


def always(names: Collection[str], among: Iterable[str]) -> list[Any]:
    """All of ``among``, of which ``names`` run for every change."""
    among = list(among)
    assert set(names) <= set(among), set(names) - set(among)
    return [name if name in names else thorough(name) for name in among]
