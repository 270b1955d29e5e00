"""Reads pages that must open without a network."""

from __future__ import annotations

from html.parser import HTMLParser
from pathlib import Path

_WITHOUT_END = {"meta", "br"}
_ALLOWED = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "table", "tr", "th", "td", "details", "summary", "b", "i", "br"}  # fmt: skip


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.problems: list[str] = []
        self.words: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _ALLOWED:
            self.problems.append(f"<{tag}>")
        self.problems += [
            f"<{tag} {name}>" for name, _ in attrs if name in ("src", "href", "style") or name.startswith("on")
        ]
        if tag not in _WITHOUT_END:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.problems.append(f"</{tag}>")

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] == "style":
            if "url(" in data or "@import" in data:
                self.problems.append("a style that loads something")
        else:
            self.words.append(data)


def text_of_page(path: Path) -> str:
    """What a page says. Tags that do not fit, and anything that would load or run something, are errors."""
    reader = _Reader()
    reader.feed(path.read_text(encoding="utf-8"))
    reader.close()
    assert not reader.problems and not reader.open, (reader.problems, reader.open)
    return " ".join(reader.words)
