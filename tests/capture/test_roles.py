"""Every row of the tables of roles is needed: without it the twin of the family that it names is another one."""

from __future__ import annotations

import pytest
from argosy.capture.twin.roles import LAYERS, LISTS, NUMBERS, Roles, Row
from argosy.capture.twin.shrink import shrink_tree
from sweeps.configurations import configuration

ROWS = [(table, row) for table in (NUMBERS, LISTS, LAYERS) for row in table.rows]


@pytest.mark.parametrize(("table", "row"), ROWS, ids=[f"{row.pattern}-{row.family}" for _, row in ROWS])
def test_a_row_is_needed(table: Roles, row: Row, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = configuration(row.family).to_dict() | row.given
    small = shrink_tree(tree)
    monkeypatch.setattr(table, "rows", tuple(other for other in table.rows if other is not row))
    assert shrink_tree(tree) != small
