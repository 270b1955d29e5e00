"""What programs of the package say to people, on stderr."""

from __future__ import annotations

import logging
import os
import sys
import textwrap
import warnings

from .errors import ExportError

#: Columns in which lines are broken between words.
_LEAST = 40


def hush_libraries() -> None:
    """What torch and its libraries say of themselves while they are loaded is nothing that a user could act on."""
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")
    warnings.filterwarnings("ignore")
    for name in ("torchao", "torch.utils._pytree"):
        logging.getLogger(name).setLevel(logging.ERROR)


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
