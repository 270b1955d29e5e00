"""Rows that are known to fail, each with its reason. A row that passes all the same fails the run: take it out."""

from __future__ import annotations

EXPECTED_FAILURES: dict[str, str] = {}
