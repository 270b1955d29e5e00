"""Where a link of a page leads to on the site.

Pages link to each other and to other files as the repository has them, so that links work there as well. README.md is the site's
first page, and a file outside docs/ becomes a page that shows it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]

#: Pages from outside docs/, by where they are on the site.
OUTSIDE = {"README.md": "index.md", "CONTRIBUTING.md": "contributing.md"}
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
_CODE = re.compile(r"(`+)[^`]+\1")
_LINK = re.compile(r"(?<=\]\()([^)\s#]+)(#[^)\s]*)?(?=\))")
_ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:")


def place_of(path: str) -> str:
    """The page of the site that a file or folder of the repository is on."""
    if path in OUTSIDE:
        return OUTSIDE[path]
    if path.startswith("docs/"):
        inside = path.removeprefix("docs/")
        return f"{inside}/index.md" if (REPOSITORY / path).is_dir() else inside
    if path.startswith("examples/") and (REPOSITORY / path / "README.md").is_file():
        return f"{path}.md"
    if path.startswith("examples/") and path.endswith("/README.md"):
        return f"{path.removesuffix('/README.md')}.md"
    return f"source/{path}.md"


def code_lines(lines: list[str]) -> list[bool]:
    """Which lines of a page are code: those of fences and indented ones."""
    result = []
    fence = ""
    for line in lines:
        found = _FENCE.match(line)
        result.append(bool(fence or found or line.startswith("    ")))
        if found:
            fence = "" if line.strip() == fence else fence or found[1]
    return result


def replace_links(text: str, change: Callable[[str, str], str]) -> str:
    """The page with `change(path, anchor)` in place of each link to a file; code is left alone."""
    lines = text.split("\n")
    for i, is_code in enumerate(code_lines(lines)):
        if is_code:
            continue
        # Found where code is blanked, from the end, so that places stay right.
        blanked = _CODE.sub(lambda code: "x" * len(code[0]), lines[i])
        for link in reversed(list(_LINK.finditer(blanked))):
            if not _ELSEWHERE.match(link[1]):
                lines[i] = lines[i][: link.start()] + change(link[1], link[2] or "") + lines[i][link.end() :]
    return "\n".join(lines)


def resolve(link: str, page: str) -> str | None:
    """The file or folder of the repository that a link on a page of the repository means; None if there is none."""
    path = os.path.normpath(os.path.join(os.path.dirname(page), link))
    return path if not path.startswith("..") and (REPOSITORY / path).exists() else None


def on_site(text: str, page: str, place: str) -> str:
    """A page of the repository with links as they are on the site. A link to nothing stays as it is, for MkDocs to find."""

    def change(link: str, anchor: str) -> str:
        path = resolve(link, page)
        if path is None:
            return link + anchor
        file = path if (REPOSITORY / path).is_file() and not path.endswith(".md") and path.startswith("docs/") else None
        target = file.removeprefix("docs/") if file else place_of(path)
        return os.path.relpath(target, os.path.dirname(place) or ".") + anchor

    return replace_links(text, change)


def linked_files(text: str, page: str) -> list[str]:
    """What a page links to that is no page: files and folders of the repository outside docs/."""
    found: list[str] = []

    def note(link: str, anchor: str) -> str:
        path = resolve(link, page)
        if path is not None and place_of(path).startswith("source/"):
            found.append(path)
        return link + anchor

    replace_links(text, note)
    return found
