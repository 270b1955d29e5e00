"""The page that shows all families and formats at one glance, from the tables in docs/coverage."""

from __future__ import annotations

import html
from dataclasses import dataclass

from links import REPOSITORY

COVERAGE = REPOSITORY / "docs/coverage"


@dataclass(frozen=True)
class Column:
    title: str
    page: str
    #: of the table's column with the result
    result: str
    #: the part of the page; empty: the only table of families
    section: str = ""


COLUMNS = (
    Column("capture", "capture.md", "ours"),
    Column("ONNX", "onnx.md", "ours"),
    Column(".pt2", "pt2.md", "pt2"),
    Column("ExecuTorch", "executorch.md", "ours"),
    Column("GenAI", "bundles.md", "status", "genai"),
    Column("Optimum", "bundles.md", "status", "optimum"),
    Column("transformers.js", "bundles.md", "status", "transformersjs"),
    Column("live: ONNX", "live-onnx.md", "ours"),
    Column("live: ExecuTorch", "live-executorch.md", "ours"),
    Column("live: dynamo", "live-dynamo.md", "ours"),
)
#: Each result that tables have, its sign and what it means.
RESULTS = {
    "ok": ("✓", "every result is the model's"),
    "wrong": ("≠", "runs, and some result differs"),
    "failed": ("✗", "no export, or it does not run"),
    "refused": ("–", "refused, with the reason"),
    "repeats itself": ("?", "the model's own text repeats itself, so that it shows little"),
}


def page() -> str:
    """Generated; nothing on it is written by hand."""
    results = [results_of(column) for column in COLUMNS]
    kinds = kinds_of()
    families = list(dict.fromkeys([*kinds, *(family for column in results for family in column)]))
    text = (
        "# Coverage at a glance\n\nMade of the tables of the pages named below, which say how each was measured; "
        "an empty field: no run. A field's text says family and result.\n\n| | |\n|---|---|\n"
    )
    text += "".join(f"| {sign} | {name}: {what} |\n" for name, (sign, what) in RESULTS.items())
    text += "\n| column | families | ok | from |\n|---|---|---|---|\n"
    for column, found in zip(COLUMNS, results, strict=True):
        at = f"{column.page}#{column.section}" if column.section else column.page
        right = sum(result == "ok" for result in found.values())
        text += f"| {column.title} | {len(found)} | {right} | [{column.page}]({at}) |\n"
    for kind in dict.fromkeys([*kinds.values(), "other"]):
        members = [family for family in families if kinds.get(family, "other") == kind]
        if members:
            text += f"\n## {kind[0].upper()}{kind[1:]}\n\n{_table(members, results)}"
    return text


def _table(families: list[str], results: list[dict[str, str]]) -> str:
    head = "".join(f"<th>{html.escape(column.title)}</th>" for column in COLUMNS)
    rows = [f"<table class='heat-map'>\n<tr><th></th>{head}</tr>"]
    for family in families:
        fields = ""
        for column, found in zip(COLUMNS, results, strict=True):
            if family in found:
                name = found[family]
                title = html.escape(f"{family}, {column.title}: {name}", quote=True)
                fields += f'<td class="{name.replace(" ", "-")}" title="{title}">{RESULTS[name][0]}</td>'
            else:
                fields += "<td></td>"
        rows.append(f"<tr><th>{html.escape(family)}</th>{fields}</tr>")
    return "\n".join([*rows, "</table>\n"])


def results_of(column: Column) -> dict[str, str]:
    """Results by family; one that has no sign is a ValueError."""
    found = {}
    for row in rows_of((COVERAGE / column.page).read_text(), column.section):
        result = row[column.result]
        if result not in RESULTS:
            raise ValueError(f"docs/coverage/{column.page}: {row['family']} is {result!r}, which has no sign in heat_map.py")
        found[row["family"]] = result
    if not found:
        raise ValueError(f"docs/coverage/{column.page} has no table of families")
    return found


def kinds_of() -> dict[str, str]:
    return {row["family"]: row["kind"] for row in rows_of((COVERAGE / "onnx.md").read_text())}


def rows_of(text: str, section: str = "") -> list[dict[str, str]]:
    """The rows of the first table of families, in a section or on the whole page."""
    if section:
        text = text.split(f"\n## {section}\n", 1)[-1].split("\n## ", 1)[0]
    rows: list[dict[str, str]] = []
    head: list[str] = []
    for line in text.splitlines():
        fields = [field.strip() for field in line.strip().strip("|").split("|")]
        if not head and line.startswith("| family | class |"):
            head = fields
        elif head and not line.startswith("|"):
            break
        elif head and not line.startswith(("| ---", "|---")):
            rows.append(dict(zip(head, fields, strict=False)))
    return rows
