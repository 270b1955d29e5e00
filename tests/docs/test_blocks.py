"""Every code block of README, docs and examples runs, or says why it does not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

import pytest
from blocks import Block, find_blocks, pages
from node_modules import node, node_modules
from page_run import PROGRAM, REPOSITORY, BlockFailed, PageRun
from prepared import prepare

needs_torch = pytest.mark.skipif(find_spec("torch") is None, reason="most blocks need what captures models")

PAGES = {page.as_posix(): find_blocks(page, (REPOSITORY / page).read_text()) for page in pages(REPOSITORY)}
RUN = [name for name, blocks in PAGES.items() if any(not block.reason for block in blocks)]
COMMANDS = ("", "export onnx", "export executorch", "export pt2", "inspect", "explain", "opt", "replay", "capture", "weights", "cache ls", "cache prune",
            "cache import", "cache export", "cache keygen", "cache push", "cache pull", "cache serve", "check",
            "run", "push", "sweep", "lint", "doctor")  # fmt: skip
_FLAG = re.compile(r"(?<![\w-])--[a-z][a-z0-9-]*")


@needs_torch
@pytest.mark.parametrize("name", RUN)
def test_the_blocks_of_a_page_run(
    name: str, environment: dict[str, str], prefix: Callable[[], Path], tmp_path: Path
) -> None:
    prepare(Path(name), tmp_path, environment)
    run = PageRun(tmp_path, environment, prefix, node(), node_modules())
    try:
        for block in PAGES[name]:
            if not block.reason:
                run.run(block)
    finally:
        run.close()


def forms() -> list[tuple[Block, str]]:
    """Commands of the program in blocks that are not run."""
    blocks = [block for found in PAGES.values() for block in found if block.reason or block.lines_not_run]
    lines = [(block, line) for block in blocks for line in block.text.splitlines()]
    return [(block, line.removeprefix("$ ")) for block, line in lines if re.match(r"(\$ )?argosy [a-z]", line)]


@pytest.mark.parametrize(("block", "line"), forms(), ids=str)
def test_commands_that_are_not_run_name_flags_that_there_are(block: Block, line: str) -> None:
    words = [word for word in line.split()[1:3] if re.fullmatch(r"[a-z0-9]+", word)]
    missing = set(_FLAG.findall(line)) - flags_of(*words)
    assert not missing, f"{block}: {' '.join(words)} has no {sorted(missing)}"


@cache
def flags_of(*words: str) -> frozenset[str]:
    """What the program's own help lists; empty if there is no such command."""
    done = subprocess.run([PROGRAM, *words, "--help"], capture_output=True, text=True)
    return frozenset(_FLAG.findall(done.stdout)) if done.returncode == 0 else frozenset()


#: Quotes other exporters' documents, with their flags.
_QUOTES = "docs/coverage/blocks.md"


@pytest.mark.parametrize("name", [name for name in PAGES if name == "README.md" or "/" in name and name != _QUOTES])
def test_flags_that_a_page_names_are_flags_of_some_command(name: str) -> None:
    known = set().union(*(flags_of(*command.split()) for command in COMMANDS))
    text = (REPOSITORY / name).read_text()
    # `--flag …` and `argosy … --flag`. Flags in a paragraph on `python -m argosy.…` are those of that module.
    paragraphs = [part for part in re.split(r"\n\s*\n", text) if "`python -m argosy." not in part]
    spans = [span for part in paragraphs for span in re.findall(r"`([^`\n]+)`", part)]
    spans = [span for span in spans if span.startswith(("--", "argosy "))]
    missing = {flag for span in spans for flag in _FLAG.findall(span)} - known
    assert not missing, f"{name} names {sorted(missing)}"


def test_what_is_not_run_is_counted(record_property: Callable[[str, object], None]) -> None:
    """`pytest -s` prints the list."""
    blocks = [block for found in PAGES.values() for block in found]
    marked = [block for block in blocks if block.reason]
    lines = [(block, line, reason) for block in blocks for line, reason in block.lines_not_run.items()]
    record_property("blocks_not_run", len(marked))
    print(f"\n{len(blocks)} blocks on {len(PAGES)} pages: {len(marked)} not run, and {len(lines)} lines of others")
    for block in marked:
        print(f"  {block}: {block.reason}")
    for block, line, reason in lines:
        print(f"  {block}, line {line}: {reason}")
    # More of them need a look: is there really no way to run the block?
    assert len(marked) <= 20


PAGE = """# A page

Text

    argosy doctor

- an item

    that goes on

<!-- not run: takes long -->
```
make
```

<!-- not run, line 2: is not there -->
```sh
$ true
$ false
what it says
```

```text
neither
```
"""


def test_blocks_are_found() -> None:
    first, long, prompts, unknown = find_blocks(Path("a.md"), PAGE)
    assert first.commands() == "argosy doctor\n" and first.line == 5 and not first.reason
    assert long.reason == "takes long"
    assert prompts.commands() == "true\n" and prompts.lines_not_run == {2: "is not there"}
    assert unknown.language == "text"


def test_a_block_that_fails_or_that_nothing_runs_is_a_failure(tmp_path: Path) -> None:
    run = PageRun(tmp_path, {"PATH": "/usr/bin:/bin"}, lambda: tmp_path)
    *_, prompts, unknown = find_blocks(Path("a.md"), PAGE)
    run.run(prompts)
    with pytest.raises(BlockFailed, match="nothing runs text; a marker before it says why"):
        run.run(unknown)
    for language, text in {"": "true\nfalse\n", "json": "{", "python": "undefined", "cpp": "int main() {"}.items():
        with pytest.raises(BlockFailed, match="a.md:1"):
            run.run(Block(Path("a.md"), 1, language, text))
    run.run(Block(Path("a.md"), 1, "python", "x = 1\n"))
    run.run(Block(Path("a.md"), 2, "python", "assert x == 1\n"))
    run.close()


@pytest.mark.parametrize(
    "text",
    ["<!-- not run: -->\n```\nx\n```\n", "<!-- not run: x -->\nText\n", "<!-- not run, line 3: x -->\n```\nx\n```\n", "```\nx\n"],
)
def test_rejects_markers_that_mark_nothing(text: str) -> None:
    with pytest.raises(ValueError, match="a.md"):
        find_blocks(Path("a.md"), text)
