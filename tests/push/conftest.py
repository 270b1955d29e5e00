"""Tests of pushes use the Hub of tests/e2e and the tiny bundles of tests/bundles; none needs torch."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE.parent / "e2e"), str(HERE.parent / "bundles")]
