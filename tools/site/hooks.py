"""What MkDocs is told of this repository: pages from outside docs/, generated ones, links and the order of pages."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import heat_map  # noqa: E402
import links  # noqa: E402
import reference_commands  # noqa: E402
import reference_cpp  # noqa: E402
import reference_python  # noqa: E402
from links import REPOSITORY  # noqa: E402
from mkdocs.exceptions import PluginError  # noqa: E402
from mkdocs.structure.files import File, Files  # noqa: E402
from pygments.formatters import HtmlFormatter  # noqa: E402

_GENERATED = {
    "reference/python.md": reference_python.page,
    "reference/commands.md": reference_commands.page,
    "reference/cpp.md": reference_cpp.page,
    "coverage/heat-map.md": heat_map.page,
}
_ITEM = re.compile(r"([-*+]|\d\.) ")
_LANGUAGES = {".cpp": "cpp", ".h": "cpp", ".py": "python", ".html": "html", ".txt": "text"}


def on_config(config: Any) -> Any:
    config.mdx_configs["toc"]["slugify"] = slug
    config.nav = list(_with_folders(config.nav, _pages_of_folders()))
    return config


def slug(heading: str, separator: str) -> str:
    """The anchor of a heading, as code hosts make it, so that one anchor serves there and here."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).strip().replace(" ", separator)


def on_files(files: Files, config: Any) -> Files:
    def add(place: str, content: str | bytes) -> None:
        files.append(File.generated(config, place, content=content))

    pages = {f"docs/{file.src_uri}": file.content_string for file in files.documentation_pages()}
    outside = [*links.OUTSIDE, *(str(path.relative_to(REPOSITORY)) for path in REPOSITORY.glob("examples/*/README.md"))]
    for page in outside:
        pages[page] = (REPOSITORY / page).read_text()
        add(links.place_of(page), links.on_site(pages[page], page, links.place_of(page)))
    for path in sorted({path for page, text in pages.items() for path in links.linked_files(text, page)}):
        add(links.place_of(path), source_page(path))
    for folder in sorted({path.parent for path in (REPOSITORY / "docs").glob("*/*.md")}):
        add(f"{folder.name}/index.md", folder_page(folder))
    for place, page_of in _GENERATED.items():
        try:
            add(place, page_of())
        except (OSError, LookupError, ValueError) as error:
            raise PluginError(f"{place}: {error}") from error
    css = (Path(__file__).parent / "site.css").read_text()
    add("assets/site.css", css + HtmlFormatter(style="default").get_style_defs(".codehilite"))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Files) -> str:
    if not page.file.generated_by:
        markdown = links.on_site(markdown, f"docs/{page.file.src_uri}", page.file.src_uri)
    return mend_lists(markdown)


def mend_lists(text: str) -> str:
    """Where the repository shows pages, a list may follow a paragraph at once, and what belongs to an item is indented as far as
    its text. Here an empty line comes first, and four spaces are wanted."""
    lines = text.split("\n")
    result: list[str] = []
    width = 0  # of the sign of the item that a line may belong to
    has_parts = False  # that item is more than one paragraph
    for line, is_code in zip(lines, links.code_lines(lines), strict=True):
        before = result[-1] if result else ""
        if width and line.startswith(" " * width):
            line = " " * (4 - width) + line
        elif (found := _ITEM.match(line)) and not is_code:
            if before and (not width or has_parts):
                result.append("")
            width, has_parts = len(found[0]), False
        elif line:
            width = 0
        else:
            has_parts = True
        result.append(line)
    return "\n".join(result)


def source_page(path: str) -> str:
    """A page that shows a file of the repository, or all files of a folder."""
    at = REPOSITORY / path
    shown = sorted(file for file in at.iterdir() if file.is_file()) if at.is_dir() else [at]
    text = f"# {path}\n\nA {'folder' if at.is_dir() else 'file'} of the repository.\n"
    for file in shown:
        language = _LANGUAGES.get(file.suffix, "text")
        title = f"\n## {file.name}\n" if at.is_dir() else ""
        text += f"{title}\n~~~~~~{language}\n{file.read_text().rstrip()}\n~~~~~~\n"
    return text


def folder_page(folder: Path) -> str:
    lines = [f"- [{_title(page)}]({page.name})" for page in sorted(folder.glob("*.md"))]
    return f"# {folder.name.capitalize()}\n\n" + "\n".join(lines) + "\n"


def _title(page: Path) -> str:
    return page.read_text().partition("\n")[0].removeprefix("# ")


def _pages_of_folders() -> dict[str, list[str]]:
    docs = REPOSITORY / "docs"
    found: dict[str, list[str]] = {}
    for page in sorted(docs.glob("*/*.md")):
        found.setdefault(f"{page.parent.name}/", []).append(page.relative_to(docs).as_posix())
    return found


def _with_folders(nav: list[Any], folders: dict[str, list[str]]) -> Any:
    for entry in nav:
        if isinstance(entry, str) and entry.endswith("/"):
            yield from folders[entry]
        elif isinstance(entry, dict):
            ((title, below),) = entry.items()
            yield {title: list(_with_folders(below, folders)) if isinstance(below, list) else below}
        else:
            yield entry
