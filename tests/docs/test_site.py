"""The site of the documentation: nothing on it is broken or comes from elsewhere, and it has every public name."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
from blocks import find_blocks, pages
from page_run import PROGRAM, REPOSITORY

sys.path.insert(0, str(REPOSITORY / "tools/site"))

import heat_map  # noqa: E402
import links  # noqa: E402
import reference_cpp  # noqa: E402
import reference_python  # noqa: E402

needs_mkdocs = pytest.mark.skipif(
    find_spec("mkdocs") is None and not (REPOSITORY / "build/docs").exists(),
    reason="MkDocs is not installed; tools/setup does it, and tools/build_docs",
)


class Page(HTMLParser):
    """What a browser loads by itself for a page, and the text of its paragraphs."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loaded: list[str] = []
        self.paragraphs = ""
        self._in_paragraph = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._in_paragraph |= tag == "p"
        for name, value in attrs:
            if value and (name == "src" or name == "srcset" or (tag == "link" and name == "href")):
                self.loaded.append(value)

    def handle_endtag(self, tag: str) -> None:
        self._in_paragraph &= tag != "p"

    def handle_data(self, data: str) -> None:
        if self._in_paragraph:
            self.paragraphs += data


def build(repository: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "ARGOSY_BIN": str(PROGRAM)}
    command = [str(repository / "tools/build_docs"), str(folder)]
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = build(REPOSITORY, folder)
    assert done.returncode == 0, done.stdout
    return folder


@needs_mkdocs
def test_no_link_is_broken_and_nothing_comes_from_elsewhere(site: Path) -> None:
    made = sorted(site.rglob("*.html"))
    assert len(made) > 100
    for page in made:
        found = Page(page.read_text())
        missing = [each for each in found.loaded if not (page.parent / each.split("?")[0]).exists() and page.name != "404.html"]
        assert not missing, f"{page.relative_to(site)} loads {missing}"
        assert not [each for each in found.loaded if re.match(r"\w+:|//", each)], page
        # A list or a table that became a paragraph.
        assert not re.search(r"^(- \w|\d+\. \w|\| ?-{3})", found.paragraphs, re.MULTILINE), page.relative_to(site)
    for css in site.rglob("*.css"):
        assert not re.search(r"@import|url\(['\"]?(\w+:)?//", css.read_text()), css


@needs_mkdocs
def test_the_site_has_what_readers_look_for(site: Path) -> None:
    def text_of(page: str) -> str:
        return (site / page).read_text()

    assert 'href="how-to/bundles.html"' in text_of("index.html")
    assert 'href="../contributing.html#how-to-add"' in text_of("errors/unsupported-op.html")
    assert 'href="../source/examples/cpp/export_onnx.cpp.html"' in text_of("how-to/export-onnx.html")
    assert "argosy::Capture::open(arguments[1])" in plain(text_of("source/examples/cpp.html"))
    assert 'id="argosy-export-onnx"' in text_of("reference/commands.html")
    assert "--weights" in plain(text_of("reference/commands.html"))
    for name in reference_python.public_names():
        assert f'id="{name.lower()}"' in text_of("reference/python.html"), name
    for name in ("Capture", "Checkpoint", "OnnxExporter", "OnnxExportOptions", "ExecutorchExporter", "Pt2Exporter", "open_cached", "inspect_file", "read_bundle", "lint_bundle", "Result"):
        assert f'id="{name.lower()}"' in text_of("reference/cpp.html"), name
    assert "shared_ptr" not in text_of("reference/cpp.html")


@needs_mkdocs
def test_blocks_and_tables_of_all_pages_are_such_on_the_site(site: Path) -> None:
    for page in pages(REPOSITORY):
        text = (REPOSITORY / page).read_text()
        made = (site / links.place_of(page.as_posix())).with_suffix(".html").read_text()
        assert len(re.findall(r"<pre[ >]", made)) == len(find_blocks(page, text)), page
        lines = text.split("\n")
        code = links.code_lines(lines)
        tables = [line for line, is_code in zip(lines, code, strict=True) if re.match(r" *\|[-| :]*-[-| :]*\|$", line) and not is_code]
        assert made.count("<table") == len(tables), page


def plain(page: str) -> str:
    return re.sub(r"<[^>]+>", "", page)


BROKEN = """# A page

[a](../nothing.md) [b](../cache.md#nowhere) `[c](x.md)` [`d`](../../tests/none.py) `e`
"""


@needs_mkdocs
def test_broken_links_are_errors(tmp_path: Path) -> None:
    for name in ("README.md", "CONTRIBUTING.md", "LICENSE", "examples", "include", "src", "python", "tests"):
        (tmp_path / name).symlink_to(REPOSITORY / name)
    if (REPOSITORY / "build/docs").exists():
        (tmp_path / "build").mkdir()
        (tmp_path / "build/docs").symlink_to(REPOSITORY / "build/docs")
    for name in ("docs", "tools"):
        shutil.copytree(REPOSITORY / name, tmp_path / name)
    (tmp_path / "docs/how-to/broken.md").write_text(BROKEN)
    done = build(tmp_path, tmp_path / "site")
    assert done.returncode != 0
    assert "'../nothing.md'" in done.stdout and "'../cache.md#nowhere'" in done.stdout and "tests/none.py" in done.stdout
    assert done.stdout.count("WARNING") == 3, done.stdout


@needs_mkdocs
def test_lists_are_lists_on_the_site() -> None:
    program = "import sys, hooks; print(hooks.mend_lists(sys.stdin.read()), end='')"
    python = sys.executable if find_spec("mkdocs") else REPOSITORY / "build/docs/bin/python"
    text = "Text\n- a\n  more\n\n  part\n- b\n\n1. one\n   - two\n\n```\n- code\n```\n"
    done = subprocess.run(
        [python, "-c", program], input=text, capture_output=True, text=True, cwd=REPOSITORY / "tools/site", check=True
    )
    assert done.stdout == "Text\n\n- a\n    more\n\n    part\n\n- b\n\n1. one\n    - two\n\n```\n- code\n```\n"


def test_links_lead_to_pages_of_the_site() -> None:
    text = "[a](../../README.md#install) [`b`](../cache.md) and `[c](../x.md)`, [d](https://example.org/x.md)\n\n    [e](f.md)\n```\n[g](h.md)\n```"
    found = links.on_site(text, "docs/how-to/page.md", "how-to/page.md")
    assert found == text.replace("../../README.md#install", "../index.md#install")
    assert links.on_site("[a](docs/errors/) [b](docs/images/text-on-webgpu.png)", "README.md", "index.md") == (
        "[a](errors/index.md) [b](images/text-on-webgpu.png)"
    )
    text = "[a](../../examples/executorch) [b](../../examples/cpp) [c](../../src/nothing.cpp) [d](../../../x)"
    assert links.on_site(text, "docs/how-to/page.md", "how-to/page.md") == (
        "[a](../examples/executorch.md) [b](../source/examples/cpp.md) [c](../../src/nothing.cpp) [d](../../../x)"
    )


@pytest.mark.skipif(not PROGRAM.exists(), reason="the types of the extension are made with the program")
def test_every_public_name_says_what_it_is() -> None:
    silent, names = [], reference_python.public_names()
    for each in reference_python.definitions():
        methods = [member for member in each.members if "def " in member.code]
        silent += [each.name] if not each.doc else []
        if names[each.name] == "argosy._core":
            continue  # what its properties are is plain
        silent += [f"{each.name}.{method.name}" for method in methods if not method.doc]
    assert not silent


def test_signatures_are_as_they_are_written() -> None:
    found = reference_python.find("export", "argosy.command")
    assert "    *,\n    progress: Callable[[dict[str, Any]], None] | None = None,\n    inputs: SampleInputs | Sequence[SampleInputs] | None = None,\n    **options: Any,\n) -> Path" in found.code
    found = reference_python.find("patch_attribute", "argosy.exporters.utils")
    assert found.code.startswith("@contextlib.contextmanager\ndef patch_attribute(owner: Any,")
    with pytest.raises(LookupError, match="command.py does not define nothing"):
        reference_python.find("nothing", "argosy.command")


def test_headers_are_cut_at_what_is_private() -> None:
    text = "/// A thing.\nclass Thing {\n public:\n  int size() const;\n\n private:\n  int size_;\n};\n"
    found = reference_cpp.shown(text)
    assert found == "\n### Thing\n\nA thing.\n\n~~~~~~cpp\nclass Thing {\n public:\n  int size() const;\n};\n~~~~~~\n"


TABLES = """# Results

| kind | families |
|---|---|
| causal LM | 2 |

## genai

| family | class | kind | ours |
| --- | --- | --- | --- |
| llama | Llama | causal LM | ok |
| bert | Bert | encoder | {} |

## optimum

| family | class | kind | ours |
| --- | --- | --- | --- |
| t5 | T5 | seq2seq | failed |
"""


def test_the_heat_map_is_made_of_tables(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    columns = (heat_map.Column("A", "onnx.md", "ours"), heat_map.Column("B", "onnx.md", "ours", "optimum"))
    monkeypatch.setattr(heat_map, "COVERAGE", tmp_path)
    monkeypatch.setattr(heat_map, "COLUMNS", columns)
    (tmp_path / "onnx.md").write_text(TABLES.format("wrong"))
    page = heat_map.page()
    assert '<tr><th>bert</th><td class="wrong" title="bert, A: wrong">≠</td><td></td></tr>' in page
    assert '<tr><th>t5</th><td></td><td class="failed" title="t5, B: failed">✗</td></tr>' in page
    assert "| A | 2 | 1 | [onnx.md](onnx.md) |" in page and "| B | 1 | 0 |" in page
    assert page.index("## Causal LM") < page.index("## Encoder") < page.index("## Other")
    (tmp_path / "onnx.md").write_text(TABLES.format("marvellous"))
    with pytest.raises(ValueError, match="onnx.md: bert is 'marvellous', which has no sign"):
        heat_map.page()
    with pytest.raises(ValueError, match="has no table of families"):
        (tmp_path / "onnx.md").write_text("# Nothing\n")
        heat_map.page()


def test_the_heat_map_has_the_families_of_all_columns() -> None:
    for column in heat_map.COLUMNS:
        found = heat_map.results_of(column)
        assert len(found) > 60, column
        # The page counts them itself.
        text = (heat_map.COVERAGE / column.page).read_text()
        if total := re.search(r"^\| total \| (\d+) \|", text, re.MULTILINE):
            assert len(found) == int(total[1]), column
