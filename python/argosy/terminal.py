"""What programs of the package say to people, on stderr."""

from __future__ import annotations

import os
import sys
import textwrap

from .errors import ExportError

#: Columns in which lines are broken between words.
_LEAST = 40


def say(text: str) -> None:
    """Lines; in a terminal they are broken between words, and what goes on is indented."""
    columns = os.get_terminal_size(sys.stderr.fileno()).columns if sys.stderr.isatty() else 0
    for line in text.split("\n"):
        print(wrapped(line, columns) if columns >= _LEAST else line, file=sys.stderr, flush=True)


def wrapped(line: str, columns: int) -> str:
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(line, columns, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


def say_error(error: ExportError) -> None:
    say(f"error[{error.code}]: {error.message}")
    if error.hint:
        say(f"  hint: {error.hint}")
