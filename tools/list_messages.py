#!/usr/bin/env python3
"""Lists the texts that users may read as errors, hints, warnings and stages, one message a line, sorted by file.

    tools/list_messages.py            writes tests/golden/messages.txt
    tools/list_messages.py --print    prints the list

In C++: what stands in one bracket with an ErrorCode, what is handed to a function that makes an Error, and what is printed
or noted (`REPORTERS`). In Python: what is raised, and what is logged as a warning. Arguments are separated by " | ", texts of
one argument by " / "; names of constants are replaced by their texts.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[1]
GOLDEN = REPOSITORY / "tests/golden/messages.txt"
#: Functions of C++ whose texts are shown.
REPORTERS = {"print_error", "begin_stage", "end_stage", "on_warning", "ValidationError", "RequiredError"}
_TOKEN = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?\*/|\#[^\n]*)|R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"|"(?P<text>(?:[^"\\\n]|\\.)*)"'
    r"|'(?:[^'\\\n]|\\.)*'|(?P<word>\w+)|(?P<sign>::|.)",
    re.DOTALL,
)
_MAKER = re.compile(r"^\s*(?:static |inline )?(?:tl::unexpected<Error>|Error) (\w+)\(", re.MULTILINE)
_ESCAPES = {"n": "\\n", "t": "\\t", '"': '"', "\\": "\\"}
_CLOSING = {"(": ")", "{": "}", "[": "]"}


def list_messages(repository: Path = REPOSITORY) -> list[str]:
    sources = {
        path: path.read_text(encoding="utf-8")
        for folder in ("apps", "src")
        for path in sorted((repository / folder).rglob("*"))
        if path.suffix in (".cpp", ".h") and not path.stem.endswith("_test")
    }
    makers = {name for text in sources.values() for name in _MAKER.findall(text)}
    lines = {f"{path.relative_to(repository)}: {each}" for path, text in sources.items() for each in of_cpp(text, makers)}
    for path in sorted((repository / "python/argosy").rglob("*.py")):
        lines |= {f"{path.relative_to(repository)}: {each}" for each in of_python(path.read_text(encoding="utf-8"))}
    return sorted(lines)


def of_cpp(source: str, makers: set[str]) -> Iterator[str]:
    if not re.search("ErrorCode::|kWarn|notes|warnings|found|" + "|".join(sorted(REPORTERS | makers)), source):
        return
    tokens = list(_tokens(source))
    constants = {}
    for i in range(len(tokens) - 3):  # kName = "…" "…";
        if tokens[i][0] == "word" and tokens[i + 1] == ("sign", "=") and tokens[i + 2][0] == "text":
            texts = _arguments([token for token in _until_semicolon(tokens, i + 2)])
            constants[tokens[i][1]] = texts[0] if texts else ""
    i = 0
    while i < len(tokens):
        if (end := _end_of_message(tokens, i, makers)) is None:
            i += 1
            continue
        inside = [("text", constants[value]) if kind == "word" and value in constants else (kind, value)
                  for kind, value in tokens[i + 1 : end]]  # fmt: skip
        message = " | ".join(_arguments(inside))
        if re.search(r"\w", message):
            yield message
        i = end


def _end_of_message(tokens: list[tuple[str, str]], i: int, makers: set[str]) -> int | None:
    """Where the bracket at `i` ends, if texts in it are shown."""
    if tokens[i][1] not in ("(", "{") or tokens[i][0] != "sign" or i + 2 >= len(tokens):
        return None
    before = tokens[i - 1][1] if i and tokens[i - 1][0] == "word" else ""
    words = [value for _, value in tokens[i + 1 : i + 4]]
    shown = (
        words[:2] == ["ErrorCode", "::"]
        or (words == ["LogLevel", "::", "kWarn"])
        or before in REPORTERS
        or (before in makers and tokens[i][1] == "(")
        or (before == "push_back" and i > 2 and tokens[i - 3][1] in ("notes", "warnings"))
        or (before == "add" and i > 2 and tokens[i - 3][1] == "found")
    )
    return _end(tokens, i) if shown else None


def _end(tokens: list[tuple[str, str]], i: int) -> int:
    depth = 0
    for j in range(i, len(tokens)):
        if tokens[j][0] == "sign":
            depth += (tokens[j][1] in _CLOSING) - (tokens[j][1] in _CLOSING.values())
            if depth == 0:
                return j
    return len(tokens)


def _until_semicolon(tokens: list[tuple[str, str]], i: int) -> Iterator[tuple[str, str]]:
    while i < len(tokens) and tokens[i] != ("sign", ";"):
        yield tokens[i]
        i += 1


def _arguments(tokens: list[tuple[str, str]]) -> list[str]:
    """The texts of each argument that has any. Literals that stand side by side are one."""
    arguments: list[list[str]] = [[]]
    depth, joins = 0, False
    for kind, value in tokens:
        if kind == "text":
            if joins:
                arguments[-1][-1] += value
            else:
                arguments[-1].append(value)
        elif kind == "sign":
            depth += (value in _CLOSING) - (value in _CLOSING.values())
            if value == "," and depth == 0:
                arguments.append([])
        joins = kind == "text"
    return [text for each in arguments if (text := " / ".join(part for part in each if part.strip()))]


def _tokens(source: str) -> Iterator[tuple[str, str]]:
    for found in _TOKEN.finditer(source):
        if found["raw"] is not None:
            yield "text", found["raw"].replace("\n", "\\n")
        elif found["text"] is not None:
            yield "text", re.sub(r"\\(.)", lambda each: _ESCAPES.get(each[1], each[0]), found["text"])
        elif found["word"] is not None:
            yield "word", found["word"]
        elif found["sign"] is not None:
            yield "sign", found["sign"]


def of_python(source: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(source)):
        call = node.exc if isinstance(node, ast.Raise) else node
        if not isinstance(call, ast.Call):
            continue
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if isinstance(node, ast.Raise) or name in ("warning", "warn", "_failed") or ast.unparse(call.func) == "parser.error":
            values = [*call.args, *(each.value for each in call.keywords if each.arg != "code")]
            texts = [text for value in values if (text := " / ".join(_texts(value)))]
            if any(re.search(r"\w", text) for text in texts):
                yield " | ".join(texts)


def _texts(node: ast.AST) -> Iterator[str]:
    """Texts in an expression; values in them are {}."""
    if isinstance(node, ast.Constant):
        if isinstance(node.value, str) and node.value.strip():
            yield node.value.replace("\n", "\\n")
    elif isinstance(node, ast.JoinedStr):
        yield "".join(str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values).replace("\n", "\\n")
    else:
        for child in ast.iter_child_nodes(node):
            yield from _texts(child)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--print", action="store_true", help="print the list, write nothing")
    options = parser.parse_args()
    text = "\n".join(list_messages()) + "\n"
    if options.print:
        sys.stdout.write(text)
    else:
        GOLDEN.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
