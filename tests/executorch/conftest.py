"""What all tests of this folder have."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "warm"))

from python_of_the_tests import python_of_the_tests  # noqa: E402, F401
