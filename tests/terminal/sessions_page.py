"""The page that shows the recorded sessions as they are."""

from __future__ import annotations

import re

from recording import REPOSITORY, golden

PAGE = REPOSITORY / "docs/how-to/terminal.md"
_BLOCK = re.compile(r"(<!-- session: ([a-z-]+) -->\n```console\n)(.*?)(```\n)", re.DOTALL)


def with_sessions(page: str) -> str:
    """The page with the golden texts in its blocks."""
    return _BLOCK.sub(lambda found: found[1] + golden(found[2]).read_text(encoding="utf-8") + found[4], page)


def shown(page: str) -> list[str]:
    """Names of the sessions that it shows."""
    return [found[2] for found in _BLOCK.finditer(page)]
