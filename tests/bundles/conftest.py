"""The program that is tested may be installed without torch: Python work is done by the tests' own Python, and what it makes is
kept for all tests of this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "warm"))

from warm import warm_python  # noqa: E402


@pytest.fixture(scope="module", autouse=True)
def python_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_PYTHON", warm_python())
        patch.setenv("PYTHONPATH", str(Path(__file__).parents[2] / "python"))
        patch.setenv("ARGOSY_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-bundles"))
        yield
