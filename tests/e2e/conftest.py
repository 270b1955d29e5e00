"""Prints the table of models at the end of the run, whether tests passed or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from models import cases_by_name
from round_trip import RoundTrip, format_table

#: warm.py, which tests of other folders use too
sys.path.append(str(Path(__file__).parents[1] / "warm"))

ROUND_TRIP = pytest.StashKey[RoundTrip]()


@pytest.fixture(scope="session")
def round_trip(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    """Results for the models whose tests were selected. ARGOSY_E2E_DIR keeps the exported archives from run to run."""
    written = tmp_path_factory.mktemp("written")
    kept = os.environ.get("ARGOSY_E2E_DIR")
    archives = Path(kept).absolute() if kept else tmp_path_factory.mktemp("archives")
    result = request.config.stash[ROUND_TRIP] = RoundTrip(archives, written)
    cases = cases_by_name()
    selected = [item.callspec.params["model"] for item in request.session.items if "model" in callspec_params(item)]
    result.run({name: cases[name].kind for name in selected})
    return result


def callspec_params(item: pytest.Item) -> dict:
    callspec = getattr(item, "callspec", None)
    return callspec.params if callspec else {}


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    result = config.stash.get(ROUND_TRIP, None)
    if result and result.rows:
        terminalreporter.section("models read, verified, printed, parsed, written back and run")
        for line in format_table(list(result.rows.values())):
            terminalreporter.write_line(line)
