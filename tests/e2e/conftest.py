"""Prints the table of models at the end of the run, whether tests passed or not."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest
from models import cases_by_name
from round_trip import LOWERING_PASSES, RoundTrip, format_table

#: warm.py, which tests of other folders use too
sys.path.append(str(Path(__file__).parents[1] / "warm"))

ROUND_TRIP = pytest.StashKey[RoundTrip]()


@pytest.fixture(scope="session")
def archives(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where archives that torch exported are. ARGOSY_E2E_DIR keeps them from run to run."""
    kept = os.environ.get("ARGOSY_E2E_DIR")
    return Path(kept).absolute() if kept else tmp_path_factory.mktemp("archives")


@pytest.fixture(scope="session")
def round_trip(request: pytest.FixtureRequest, archives: Path, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    """Results for the models whose tests were selected."""
    result = request.config.stash[ROUND_TRIP] = RoundTrip(archives, tmp_path_factory.mktemp("written"))
    result.run(selected_cases(request, "model"))
    return result


@pytest.fixture(scope="session")
def lowered(request: pytest.FixtureRequest, archives: Path, tmp_path_factory: pytest.TempPathFactory) -> RoundTrip:
    """The same with passes between reading and writing."""
    result = RoundTrip(archives, tmp_path_factory.mktemp("lowered"), LOWERING_PASSES)
    result.run(selected_cases(request, "lowered_model"))
    return result


def selected_cases(request: pytest.FixtureRequest, parameter: str) -> dict[str, str]:
    """The kinds of the models that selected tests take as `parameter`."""
    callspecs = [item.callspec for item in request.session.items if hasattr(item, "callspec")]
    names = [each.params[parameter] for each in callspecs if parameter in each.params]
    cases = cases_by_name()
    return {name: cases[name].kind for name in names}


def pytest_terminal_summary(terminalreporter, config: pytest.Config) -> None:
    result = config.stash.get(ROUND_TRIP, None)
    if result and result.rows:
        terminalreporter.section("models read, verified, printed, parsed, written back and run")
        for line in format_table(list(result.rows.values())):
            terminalreporter.write_line(line)
