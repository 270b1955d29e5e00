"""Code blocks of documents that others wrote, and what has to be replaced in them before they run.

A document has fences, or it is the text of a page without them: then a block is as many lines as are Python together, or a
command.
"""

from __future__ import annotations

import ast
import builtins
import re
import textwrap
from dataclasses import dataclass, field

_FENCE = re.compile(r"^(`{3,}) *([\w+-]*) *$")
_BEGINS = re.compile(r"^(>>> |from [\w.]+ import |import \w|@\w|(with|for) .*:$|[A-Za-z_]\w* = |pip install |grep -)")
_COMMAND = re.compile(r"^(pip|grep|optimum-cli|argosy|--)\b|^--")
#: The longest block of a page without fences.
_LONGEST = 80

#: What is called otherwise here: a pattern, what stands for it, how the report says so.
RENAMED = (
    (r"\btransformers\.exporters\b", "argosy.exporters", "transformers.exporters → argosy.exporters"),
    (r"^optimum-cli\b", "argosy", "optimum-cli → argosy"),
    (r"\bsrc/transformers/exporters/", "python/argosy/exporters/", "src/transformers → python/argosy"),
)
#: What pages have that no machine can run, in the same form.
REPAIRED = (
    (r"\\\n +\.\.\.etc\.\.\.", "", "“...etc...” left out"),
    (r"\n +\.\.\.etc\.\.\.", "", "“...etc...” left out"),
    (r"<model-id>", "google/gemma-3-1b-it", "<model-id> → the page's first model"),
    (r'"image-text", Loading\.\.\.', '"image-text-to-text",', "a menu that covers a word of the screenshot"),
    (r"\bfilename=(\w+),", r"f=\1,", "filename → f, as torch.onnx.export calls it"),
    (r'device="cuda"', 'device="cpu"', "cuda → cpu"),
    (r' *device_map="auto",\n', "", 'device_map="auto" left out: it asks for accelerate'),
)


#: Names that no document defines and that are made from others, by these.
DERIVED = {"kwargs": "observer", "dynamic_shapes": "observer"}


@dataclass
class Block:
    #: of its first line in the document, from 1
    line: int
    #: python, shell, diff or text
    kind: str
    text: str
    #: what follows it up to the next block: it may say what comes out
    after: str = ""
    #: what was replaced
    changes: list[str] = field(default_factory=list)
    #: whether it is an example with prompts, which stands alone
    is_prompt: bool = False

    def __post_init__(self) -> None:
        for pattern, replacement, note in (*RENAMED, *REPAIRED):
            changed = re.sub(pattern, replacement, self.text, flags=re.MULTILINE)
            if changed != self.text:
                self.text, self.changes = changed, list(dict.fromkeys([*self.changes, note]))
        lines = self.text.splitlines()
        if any(line.startswith(">>> ") for line in lines):
            self.is_prompt, self.kind = True, "python"
            self.text = "\n".join(line[4:] for line in lines if line.startswith((">>> ", "... "))) + "\n"
        if self.kind == "":
            self.kind = self._kind()

    def _kind(self) -> str:
        if _COMMAND.match(self.text):
            return "shell"
        if re.search(r"^[-+] ", self.text, re.MULTILINE):
            return "diff"
        if parses(self.text):
            return "python"
        if closed := _closed(self.text):
            self.text = closed
            self.changes.append("brackets closed that the page cuts off")
            return "python"
        return "text"

    @property
    def bound(self) -> set[str]:
        """Names that it defines for those after it."""
        return _names(ast.parse(self.text))[0] if self.kind == "python" else set()

    @property
    def missing(self) -> list[str]:
        """Names that it uses and does not define, in order."""
        if self.kind != "python":
            return []
        bound, used = _names(ast.parse(self.text))
        used += [DERIVED[name] for name in used if name in DERIVED]
        return [name for name in used if name not in bound and not hasattr(builtins, name)]


def find_blocks(text: str) -> list[Block]:
    lines = text.splitlines()
    spans = _fenced(lines) if any(_FENCE.match(line) for line in lines) else _unfenced(lines)
    blocks = []
    for i, (first, last, language) in enumerate(spans):
        code = textwrap.dedent("\n".join(lines[first:last])) + "\n"
        kind = {"python": "python", "bash": "shell", "sh": "shell"}.get(language, "")
        end = spans[i + 1][0] if i + 1 < len(spans) else len(lines)
        blocks.append(Block(first + 1, kind, code, "\n".join(lines[last:end])))
    return blocks


def _fenced(lines: list[str]) -> list[tuple[int, int, str]]:
    marks = [(i, found[2]) for i, line in enumerate(lines) if (found := _FENCE.match(line))]
    return [(start + 1, end, language) for (start, language), (end, _) in zip(marks[::2], marks[1::2], strict=True)]


def _unfenced(lines: list[str]) -> list[tuple[int, int, str]]:
    found: list[tuple[int, int, str]] = []
    i = 0
    while i < len(lines):
        end = i
        if _COMMAND.match(lines[i]):
            end, language = i + 1, "bash"
        elif lines[i].startswith(">>> "):
            inside = range(i, min(i + _LONGEST, len(lines)))
            stop = next((k for k in inside if lines[k] and not lines[k].startswith((">>> ", "... "))), len(lines))
            end, language = stop, "python"
        elif _BEGINS.match(lines[i]):
            parts = range(i + 1, min(i + _LONGEST, len(lines)) + 1)
            end = max((k for k in parts if _is_code("\n".join(lines[i:k]))), default=i)
            language = "python"
        if end > i:
            found.append((i, end, language))
        i = max(end, i + 1)
    return found


def _is_code(text: str) -> bool:
    """Whether it is Python, and not words that happen to be."""
    if not parses(text):
        return False
    statements = ast.parse(text).body
    words = [each for each in statements if isinstance(each, ast.Expr) and not isinstance(each.value, ast.Call)]
    return bool(statements) and not words and text == text.rstrip()


def parses(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def _closed(text: str) -> str:
    """``text`` with the brackets closed that are open at its end; "" if that does not make Python of it."""
    closed = text
    for _ in range(4):
        closed = closed.rstrip().rstrip("`")
        for bracket in ")]}":
            if parses(closed + bracket):
                return closed + bracket + "\n"
        closed += ")"
    return ""


def _names(tree: ast.AST) -> tuple[set[str], list[str]]:
    """Names that code binds, and those that it reads."""
    bound: set[str] = set()
    used: list[str] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            (used.append if isinstance(node.ctx, ast.Load) else bound.add)(node.id)
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            bound |= {(each.asname or each.name).split(".")[0] for each in node.names}
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            bound.add(node.name)
        elif isinstance(node, ast.arg):
            bound.add(node.arg)
    return bound, list(dict.fromkeys(used))
