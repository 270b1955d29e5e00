"""Finds the code blocks of Markdown pages.

A block is fenced or indented by four spaces. One that cannot run has a comment before it that says why:

    <!-- not run: compiles for minutes -->          the whole block
    <!-- not run, line 1: compiles for minutes -->  that line of it
"""

from __future__ import annotations

import re
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,}) *([\w+-]*)")
_MARKER = re.compile(r"^<!-- not run(?:, line (\d+))?: *(.*?) *-->$")
_LIST_ITEM = re.compile(r"^ {0,3}([-*+]|\d+[.)]) ")


@dataclass
class Block:
    page: Path
    #: of the first line of code, from 1
    line: int
    language: str
    text: str
    #: why it is not run; empty if it is
    reason: str = ""
    #: the same for lines of it, counted from 1
    lines_not_run: dict[int, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def is_shell(self) -> bool:
        return self.language in ("", "sh")

    def commands(self) -> str:
        """The shell's part of a block: lines after a prompt where it has prompts, since the others are output then."""
        lines = [line for i, line in enumerate(self.text.splitlines(), 1) if i not in self.lines_not_run]
        if any(line.startswith("$ ") for line in lines):
            lines = [line[2:] for line in lines if line.startswith("$ ")]
        return "\n".join(lines) + "\n"


def find_blocks(page: Path, text: str) -> list[Block]:
    """The blocks of a page, in order. What is wrong with a marker is a ValueError."""
    blocks: list[Block] = []
    lines = text.splitlines()
    markers: list[tuple[int | None, str]] = []
    in_list, i = False, 0
    while i < len(lines):
        line = lines[i]
        if found := _MARKER.match(line):
            if not found[2]:
                raise ValueError(f"{page}:{i + 1}: the marker gives no reason")
            markers.append((int(found[1]) if found[1] else None, found[2]))
            i += 1
            continue
        if fence := _FENCE.match(line):
            end = next((k for k in range(i + 1, len(lines)) if lines[k].strip() == fence[1]), None)
            if end is None:
                raise ValueError(f"{page}:{i + 1}: the fence has no end")
            blocks.append(_block(page, i + 2, fence[2], lines[i + 1 : end], markers))
            markers, i = [], end + 1
            continue
        if line.startswith("    ") and not in_list and (i == 0 or not lines[i - 1].strip()):
            end = next((k for k in range(i, len(lines)) if lines[k].strip() and not lines[k].startswith("    ")), len(lines))
            blocks.append(_block(page, i + 1, "", lines[i:end], markers))
            markers, i = [], end
            continue
        if line.strip():
            if markers:
                raise ValueError(f"{page}:{i + 1}: a marker stands before something that is no block")
            # Lines that are indented after an item belong to it.
            in_list = bool(_LIST_ITEM.match(line)) or (in_list and line.startswith("  "))
        i += 1
    if markers:
        raise ValueError(f"{page}: a marker stands at the end of the page")
    return blocks


def _block(page: Path, line: int, language: str, lines: list[str], markers: list[tuple[int | None, str]]) -> Block:
    text = textwrap.dedent("\n".join(lines)).rstrip("\n") + "\n"
    whole = " ".join(reason for number, reason in markers if number is None)
    parts = {number: reason for number, reason in markers if number is not None}
    if wrong := [number for number in parts if not 1 <= number <= len(lines)]:
        raise ValueError(f"{page}:{line}: the block has no line {wrong[0]}")
    return Block(page, line, language, text, whole, parts)


def pages(repository: Path) -> list[Path]:
    """All pages that users and contributors read, relative to the repository."""
    found = [repository / "README.md", repository / "CONTRIBUTING.md"]
    found += sorted((repository / "docs").rglob("*.md")) + sorted((repository / "examples").rglob("README.md"))
    return [page.relative_to(repository) for page in found]
