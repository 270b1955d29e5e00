"""The page of the C++ library: what its public headers declare."""

from __future__ import annotations

import re

from links import REPOSITORY

#: What a program includes, and what that includes for results and errors.
HEADERS = (
    *sorted(path.relative_to(REPOSITORY).as_posix() for path in (REPOSITORY / "include/argosy").glob("*.h")),
    "src/base/result.h",
    "src/base/error.h",
)  # fmt: skip

#: A comment and a class, a function or another name for a type, all at the outer level.
_DECLARATION = re.compile(
    r"""^(?P<comment>(?:///.*\n)*)
    (?P<code>(?:enum\ class|class|struct)\ (?P<type>\w+)[^;{]*\{(?:.*\};|[\s\S]*?^\};)$
      |(?:template\ .*\n)?using\ (?P<alias>\w+)\ =\ .*;$
      |[\w:<>]+\ (?P<function>\w+)\(.*\);$)""",
    re.MULTILINE | re.VERBOSE,
)
_PRIVATE = re.compile(r"^\n private:[\s\S]*(?=^\};)", re.MULTILINE)
_OF_HEADER = re.compile(r"^(?P<comment>(?:///.*\n)+)namespace", re.MULTILINE)


def page() -> str:
    """Generated from the headers."""
    text = (
        "# C++\n\nPrograms find headers and library with `find_package(argosy)` and link `argosy::argosy`. "
        "Everything is in the namespace `argosy`.\n"
    )
    for header in HEADERS:
        code = (REPOSITORY / header).read_text()
        text += f"\n## {header.removeprefix('include/').removeprefix('src/')}\n"
        if of_header := _OF_HEADER.search(code):
            text += f"\n{_prose(of_header['comment'])}\n"
        text += shown(code)
    return text


def shown(code: str) -> str:
    """Each declaration of a header with its comment, without what is private."""
    text = ""
    for found in _DECLARATION.finditer(code):
        name = found["type"] or found["alias"] or found["function"]
        comment = f"{_prose(found['comment'])}\n\n" if found["comment"] else ""
        text += f"\n### {name}\n\n{comment}~~~~~~cpp\n{_PRIVATE.sub('', found['code'])}\n~~~~~~\n"
    return text


def _prose(comment: str) -> str:
    return "\n".join(line.removeprefix("///").removeprefix(" ") for line in comment.splitlines())
