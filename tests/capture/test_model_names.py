"""Captures go by what models can do: the names of model types in their code become fewer."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from sweeps import ROOT

sys.path.insert(0, str(ROOT / "tools"))

from model_names import CAPTURE, model_names  # noqa: E402

auto = pytest.importorskip("transformers.models.auto.configuration_auto", reason="it names the types")

#: Whoever takes a name away lowers it.
MOST = 29


def test_there_are_no_more_names_than_before():
    found = list(model_names(CAPTURE, auto.CONFIG_MAPPING_NAMES))
    assert len(found) <= MOST, found


def test_a_name_is_counted_wherever_it_is(tmp_path: Path):
    (tmp_path / "roles.py").write_text("ROWS = ['llama']\n")
    (tmp_path / "a.py").write_text("if kind == 'llama':\n    name = 'a llama'  # llama\n")
    assert list(model_names(tmp_path, {"llama"})) == [("a.py", 1, "llama")]
