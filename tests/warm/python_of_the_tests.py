"""The program that is tested may be installed without torch: Python work is done by the tests' own Python, and what it makes is
kept for all tests of a folder, whose conftest.py imports this."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from warm import ROOT, warm_python


@pytest.fixture(scope="module", autouse=True)
def python_of_the_tests(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = Path(request.path).parent.name
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_PYTHON", warm_python())
        patch.setenv("PYTHONPATH", str(ROOT / "python"))
        patch.setenv("ARGOSY_CACHE", str(tmp_path_factory.getbasetemp() / f"cache-of-{folder}"))
        yield
