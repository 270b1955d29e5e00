"""``python tests/sweeps blocks DOCUMENT... [--table docs/coverage/blocks.md]``: runs every code block of documents of other
exporters with the names changed, and says of each whether it ran, differs on purpose, or failed.

Models are small stand-ins with random weights under the same ids, on a Hub of this machine. A block differs on purpose if a table
of docs/python.md whose heading begins with "What differs" has a name of it in its first column.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from . import ROOT
from .block_text import Block, find_blocks

# A reader's machine, as the tests of our own pages have it.
sys.path += [str(ROOT / "tests" / name) for name in ("docs", "e2e")]

from hub_server import HubServer, hub_server  # noqa: E402
from page_run import PROGRAM, package_folder, reader_environment  # noqa: E402

#: What stands for each model: a twin of its type.
MODELS = {
    "Qwen/Qwen3-0.6B": "qwen3",
    "Qwen/Qwen2-VL-2B-Instruct": "qwen2_vl",
    "microsoft/phi-4": "phi3",
    "google/gemma-3-270m-it": "gemma3_text",
    "google/gemma-3-1b-it": "gemma3_text",
    "tiny-random/gemma-3": "gemma3",
    "arnir0/Tiny-LLM": "llama",
    "openai/whisper-tiny": "whisper",
    "mistralai/Voxtral-Mini-3B-2507": "voxtral",
    "google-t5/t5-small": "t5",
    "google/vit-base-patch16-224": "vit",
}
_PICTURE = re.compile(r"https://huggingface\.co(/[^\"\s]+\.(?:jpe?g|png))", re.IGNORECASE)
_TIMEOUT = 600


@dataclass
class Outcome:
    block: Block
    state: str = "ran"
    #: why it failed or differs
    reason: str = ""
    #: the row of "What differs" that says so
    row: str = ""
    changes: list[str] = field(default_factory=list)


# ---- what differs on purpose ----


def rows_that_differ(page: str) -> list[tuple[str, list[set[str]]]]:
    """The first cell of each row below a heading "What differs …", with the identifiers of each piece of code in it."""
    found = []
    for section in re.split(r"^#+ ", page, flags=re.MULTILINE):
        for line in section.splitlines() if section.startswith("What differs") else ():
            if line.startswith("|") and (spans := re.findall(r"`([^`]+)`", line.split("|")[1])):
                found.append((line.split("|")[1].strip(), [set(re.findall(r"[A-Za-z_]\w*", span)) for span in spans]))
    return found


def row_of(text: str, rows: list[tuple[str, list[set[str]]]]) -> str:
    """The row that has a piece of code of which every name is in ``text``."""
    words = set(re.findall(r"[A-Za-z_]\w*", text))
    return next((cell for cell, spans in rows if any(span and span <= words for span in spans)), "")


# ---- one document ----


class Document:
    """Blocks run in order in one process. One that needs what only a later block defines waits for that; one with prompts stands
    alone and takes what it lacks from the first block that has it."""

    def __init__(self, blocks: list[Block], environment: dict[str, str], folder: Path, log: Path) -> None:
        self.blocks, self.environment, self.folder = blocks, environment, folder
        with log.open("w") as file:
            self.python = subprocess.Popen([sys.executable, Path(__file__).parent / "workers/block_worker.py"], cwd=folder, env=environment, text=True,
                                           stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=file)  # fmt: skip

    def run(self) -> list[Outcome]:
        outcomes = {id(block): Outcome(block, changes=list(block.changes)) for block in self.blocks}
        waiting: list[Block] = []
        for i, block in enumerate(self.blocks):
            if self._later(block, i) is not None:
                waiting.append(block)
                continue
            self._run(outcomes[id(block)])
            for other in [each for each in waiting if self._later(each, self.blocks.index(each)) is block]:
                waiting.remove(other)
                outcomes[id(other)].changes.append(f"run after line {block.line}, which defines what it uses")
                self._run(outcomes[id(other)])
        self.python.stdin.close()
        self.python.wait()
        return [outcomes[id(block)] for block in self.blocks]

    def _later(self, block: Block, i: int) -> Block | None:
        """The block that defines names which none before does."""
        earlier = {name for each in self.blocks[:i] for name in each.bound}
        for name in block.missing:
            if name not in earlier:
                for each in self.blocks[i + 1 :]:
                    if name in each.bound and name not in each.missing:
                        return each
        return None

    def _run(self, outcome: Outcome) -> None:
        block = outcome.block
        if block.kind == "python":
            outcome.reason = self._ask(outcome)
        elif block.kind == "shell":
            outcome.reason = self._command(outcome)
        else:
            outcome.reason = "a change of a library's code" if block.kind == "diff" else "a piece of code that the page cuts off"
        outcome.state = "failed" if outcome.reason else "ran"

    def _ask(self, outcome: Outcome) -> str:
        block = outcome.block
        request = {"name": f"line {block.line}", "code": block.text, "alone": block.is_prompt, "missing": block.missing, "bound": sorted(block.bound)}
        try:
            self.python.stdin.write(json.dumps(request) + "\n")
            self.python.stdin.flush()
        except BrokenPipeError:
            return "Python ended before"
        for line in self.python.stdout:
            if line.startswith('{"failure"'):  # what C++ prints comes in between
                answer = json.loads(line)
                outcome.changes += answer["changes"]
                return answer["failure"]
        return f"Python ended with {self.python.wait()}"

    def _command(self, outcome: Outcome) -> str:
        block = outcome.block
        words = block.text.replace("\\\n", " ").split()
        if words[0] == "pip":
            names = [re.match(r"[\w-]+", word.strip('"'))[0] for word in words[2:]]
            outcome.changes.append("looked for, not installed: " + ", ".join(f"{name} {_version(name)}" for name in names))
            return "; ".join(f"{name} is not installed" for name in names if not _version(name))
        if words[0].startswith("--"):
            outcome.changes.append("flags alone: looked for in the command's help")
            known = self._start([PROGRAM, "export", "executorch", "--help"]).stdout
            return "; ".join(f"no {word}" for word in words if word.startswith("--") and word.replace("_", "-") not in known)
        is_ours = words[0] == "argosy"
        done = self._start(["bash", "-euc", block.text], None if is_ours else ROOT)
        if done.returncode:
            return f"exit code {done.returncode} {done.stderr.strip()[-300:]}".strip()
        return self._methods(words[words.index("--model") + 1], block.after) if is_ours else ""

    def _methods(self, model: str, text: str) -> str:
        """What the file lacks of the methods that the text below the block lists."""
        file = self.folder / f"{model.split('/')[-1]}-pte/model.pte"
        shown = self._start([PROGRAM, "inspect", "--json", file])
        if shown.returncode:
            return f"{file.name}: {shown.stderr.strip()[-300:]}"
        methods = {each["name"] for each in json.loads(shown.stdout)["methods"]}
        text = text.split("\n#")[0]
        lines = text.partition("following methods:")[2].splitlines()
        listed = [set(re.findall(r"`(\w+)`", line.split(":")[0])) for line in lines if line.startswith("- `")]
        if "single forward method" in text:
            listed.append({"forward"})
        return "; ".join(f"no method {' or '.join(sorted(names))}" for names in listed if not names & methods)

    def _start(self, command: list[object], folder: Path | None = None) -> subprocess.CompletedProcess:
        return subprocess.run([str(part) for part in command], cwd=folder or self.folder, env=self.environment, text=True,
                              timeout=_TIMEOUT, stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return ""


def judge(outcomes: list[Outcome], rows: list[tuple[str, list[set[str]]]]) -> None:
    """What did not run differs on purpose if the page has it, or a block that it takes names from."""
    origin: dict[str, Block] = {}
    for outcome in outcomes:
        block = outcome.block
        if outcome.state != "ran":
            sources = [block, *(origin[name] for name in block.missing if name in origin)]
            outcome.row = next((row for each in sources if (row := row_of(each.text, rows))), "")
            outcome.state = "differs" if outcome.row else "failed"
        origin |= dict.fromkeys(block.bound, block)


# ---- the machine ----


@contextmanager
def machine(texts: list[str], folder: Path) -> Iterator[tuple[HubServer, dict[str, str]]]:
    """A Hub with stand-ins for all models and pictures that the texts name, and a reader's environment."""
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import build, save, shrink
    from argosy.check.media_runs import write_picture

    named = [name for name in MODELS if any(name in text for text in texts)]
    with hub_server() as hub:
        for name in named:
            twin = save(build(shrink(CONFIG_MAPPING[MODELS[name]]())), folder / "models" / name.replace("/", "--"))
            _name_pictures(twin)
            hub.add(name, twin)
        for text in texts:
            for path in _PICTURE.findall(text):
                hub.pages[path] = ("image/png", write_picture(folder / "picture.png", 20, 12).read_bytes())
        yield hub, reader_environment(package_folder(folder / "package"), folder / "cache", folder / "programs", **hub.environment(folder / "home"))


def _name_pictures(twin: Path) -> None:
    """Processors of models with a token before each picture look for that one in the text of a chat."""
    template, tokenizer = twin / "chat_template.jinja", twin / "tokenizer_config.json"
    if template.exists() and '"boi_token"' in tokenizer.read_text():
        template.write_text(template.read_text().replace("'<' + part['type'] + '>'", "'<boi>'"))


def run_documents(texts: list[str], folder: Path, page: str) -> list[list[Outcome]]:
    results = []
    with machine(texts, folder) as (hub, environment):
        for number, text in enumerate(texts, 1):
            blocks = find_blocks(text)
            for block in blocks:
                if _PICTURE.search(block.text):
                    block.text = _PICTURE.sub(lambda found: hub.url + found[1], block.text)
                    block.changes.append("the picture comes from the local Hub")
            place = folder / f"document{number}"
            place.mkdir()
            outcomes = Document(blocks, environment, place, folder / f"document{number}.log").run()
            judge(outcomes, rows_that_differ(page))
            results.append(outcomes)
    return results


# ---- the report ----


def title(text: str) -> str:
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[0][2:] if lines[0].startswith("# ") else " ".join(lines[:2])


def render(texts: list[str], results: list[list[Outcome]]) -> str:
    versions = ", ".join(f"{name} {_version(name)}" for name in ("torch", "transformers"))
    lines = ["# Code blocks of other exporters' documents", "",
             f"Written by `python tests/sweeps blocks DOCUMENT... --table docs/coverage/blocks.md` with {versions}; not edited by hand.", "",
             "Every block is run in the order of its document, against small models with random weights under the same ids. What a block exports is run beside"
             " the model, and what comments and text say of results has to be so; what torch's own exporter makes is compared where the block does so. Packages to"
             " install are looked for, and flags that stand alone looked up in the command's help. *Differs*: on purpose, see [What differs](../python.md#what-differs-from-transformersexporters).", "",
             "| document | blocks | ran | differ | failed |", "| --- | --- | --- | --- | --- |"]  # fmt: skip
    counts = [[sum(each.state == state for each in outcomes) for state in ("ran", "differs", "failed")] for outcomes in results]
    for text, outcomes, count in zip(texts, results, counts, strict=True):
        lines.append(f"| {title(text)} | {len(outcomes)} | " + " | ".join(map(str, count)) + " |")
    for text, outcomes in zip(texts, results, strict=True):
        lines += ["", f"## {title(text)}", "", "| line | block | result | changed |", "| --- | --- | --- | --- |"]
        for each in outcomes:
            result = {"ran": "ran", "differs": f"differs: {each.row}", "failed": "failed"}[each.state]
            reason = f" ({_cell(each.reason)})" if each.reason else ""
            lines.append(f"| {each.block.line} | `{_cell(_gist(each.block.text))}` | {result}{reason} | {_cell('; '.join(each.changes))} |")
    return "\n".join(lines) + "\n"


def _gist(text: str) -> str:
    """The line that says most: the one that exports, or the first."""
    lines = [line.strip(" \\") for line in text.splitlines() if line.strip()]
    return next((line for line in lines if re.search(r"\.export\w*\(|^class ", line)), lines[0]).replace("`", "")[:70]


def _cell(text: str) -> str:
    text = re.sub(r"\x1b\[\d*m", "", text)
    text = re.sub(r"(/[\w.-]+){3,}", lambda found: "…/" + found[0].split("/")[-1], text)
    return " ".join(text.split()).replace("|", "\\|")[:200]


def main(arguments: list[str] | None = None) -> int:
    sys.stdout.reconfigure(line_buffering=True)
    parser = argparse.ArgumentParser(prog="python tests/sweeps blocks", description=__doc__.split(":", 1)[1].strip())
    parser.add_argument("documents", nargs="+", type=Path)
    parser.add_argument("--table", type=Path, help="where the report goes")
    parser.add_argument("--keep", type=Path, help="a new folder for models, outputs and logs; left out: a temporary one")
    options = parser.parse_args(arguments)
    texts = [path.read_text(encoding="utf-8") for path in options.documents]
    page = (ROOT / "docs/python.md").read_text(encoding="utf-8")
    with tempfile.TemporaryDirectory() as scratch:
        folder = (options.keep or Path(scratch)).absolute()
        folder.mkdir(parents=True, exist_ok=True)
        results = run_documents(texts, folder, page)
    if options.table:
        options.table.write_text(render(texts, results), encoding="utf-8")
    for path, outcomes in zip(options.documents, results, strict=True):
        for each in outcomes:
            print(f"{path.name}:{each.block.line}: {each.state}{f': {each.reason[:300]}' if each.reason else ''}{f' [{each.row}]' if each.row else ''}")
    return int(any(each.state == "failed" for outcomes in results for each in outcomes))
