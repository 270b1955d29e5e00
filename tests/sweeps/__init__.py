"""Sweeps: commands that run many models or many faults and write what came of it to ``docs/coverage``. ``python tests/sweeps`` lists them."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy")).absolute()

# Helpers of tests that sweeps use: the built extension, Python processes that start warm, Node.
sys.path += [str(ROOT / "tests" / name) for name in ("ops", "warm", "bundles")]
