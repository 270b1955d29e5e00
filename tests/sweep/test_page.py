"""What the table and the page say of results."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from argosy.sweep.jobs import parse_job
from argosy.sweep.markdown import sweep_table
from argosy.sweep.page import sweep_page
from argosy.sweep.results import Results, collect, without_names

#: Elements that have no end.
_ALONE = {"meta", "input", "br"}


def line(name: str, status: str, **fields: Any) -> dict[str, Any]:
    usual = {"job": name, "key": name, "name": name, "family": "bert", "target": "onnx", "status": status, "reason": "", "ended": 1.0,
             "seconds": 2.0, "cpu_seconds": 1.5, "peak_bytes": 3_000_000, "disk_bytes": 4_000}  # fmt: skip
    return usual | fields


RESULTS = Results(
    [
        line("a", "right"),
        line("b", "wrong", reason="wrong in 3 of 7 calls", seconds=200.0),
        line("c", "wrong", reason="wrong in 4 of 9 calls", target="pt2"),
        line("d", "written", family="<script>alert(1)</script>", reason="not checked: 1 < 2 & so on"),
        line("e", "not ended", family="vit", target="executorch"),
    ],
    {"a": line("a", "failed"), "b": line("b", "right"), "d": line("d", "written", seconds=4.0)},
)


class Page(HTMLParser):
    """Elements with their attributes, and whether all end where they should."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: dict[tuple[str, str], dict[str, str | None]] = {}
        self.outside: list[str] = []
        self.rows = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.outside += [str(values[name]) for name in ("src", "href") if name in values]
        if tag == "td" and "data-share" in values:
            self.cells[str(values["data-family"]), str(values["data-target"])] = values
        self.rows += tag == "tr" and "data-family" in values
        if tag not in _ALONE:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"{tag} ends where it should not"


def test_the_page_is_whole_and_asks_nothing_of_a_network() -> None:
    text = sweep_page(RESULTS, "all models")
    page = Page(text)
    assert not page.open and not page.outside
    assert not re.search(r"https?:|@import|url\(", text)
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text
    assert page.rows == 5


def test_the_map_has_a_cell_for_each_family_and_target_that_has_jobs() -> None:
    cells = Page(sweep_page(RESULTS)).cells
    assert {key: float(values["data-share"] or "nan") for key, values in cells.items()} == {
        ("bert", "onnx"): 0.5, ("bert", "pt2"): 0.0, ("<script>alert(1)</script>", "onnx"): 1.0, ("vit", "executorch"): 0.0,
    }  # fmt: skip
    assert cells["bert", "onnx"]["title"] == "1 right, 1 wrong; half of them within 3 min, at most 3 MB"


def test_reasons_that_differ_in_numbers_are_one() -> None:
    assert [(reason, len(lines)) for reason, lines in RESULTS.reasons()] == [("wrong: wrong in N of N calls", 2)]
    assert without_names('no "x" in /a/b-1/c, `y` took 1.5e-3') == "no … in …, … took N"


def test_what_is_different_since_the_last_run_is_said() -> None:
    text = sweep_page(RESULTS)
    assert "1 better, 1 worse, 0 otherwise different." in text
    assert "The 1 jobs that ended well both times took 4 s then and 2 s now." in text
    assert "Since the last run" not in sweep_page(Results(RESULTS.lines))


def test_the_table_says_nothing_of_times_and_order() -> None:
    other = [{**each, "seconds": 77.0, "ended": 9.0} for each in RESULTS.lines]
    assert sweep_table(RESULTS) == sweep_table(Results(other, RESULTS.before))
    text = sweep_table(RESULTS)
    assert text.startswith("# Sweep\n\n5 jobs: 1 right, 1 written, 2 wrong, 1 not ended.\n")
    assert "| bert |  | 1/2 | 0/1 |" in text and "| 2 | wrong: wrong in N of N calls |" in text
    assert "| a | onnx | failed | right |  |" in text


def test_the_last_line_of_a_job_counts_and_the_one_before_is_the_run_before(tmp_path: Path) -> None:
    job = parse_job('{"model": "org/a"}', "")
    other = parse_job('{"model": "org/b"}', "")
    lines = [line("a", "failed", job=job.id, ended=1.0), line("a", "right", job=job.id, ended=3.0), line("a", "wrong", job=job.id, ended=2.0)]
    for i, each in enumerate(lines):
        (tmp_path / f"results-{i}-of-3.jsonl").write_text(json.dumps(each) + "\nno line\n" + json.dumps(line("x", "right")) + "\n")
    results = collect([job, other], [tmp_path])
    assert [each["status"] for each in results.lines] == ["right", "not ended"]
    assert results.before[job.id]["status"] == "wrong"
    earlier = tmp_path / "earlier"
    earlier.mkdir()
    (earlier / "results.jsonl").write_text(json.dumps(line("a", "killed", job=job.id)) + "\n")
    assert collect([job], [tmp_path], earlier).before[job.id]["status"] == "killed"
