"""Writes the rules of `argosy lint` into the table of docs/lint.md."""

from __future__ import annotations

from test_lint import DOCUMENT, listed_rows, rows_of_rules

text = DOCUMENT.read_text()
old = "\n".join(listed_rows(text))
DOCUMENT.write_text(text.replace(old, "\n".join(rows_of_rules())))
