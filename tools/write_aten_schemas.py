#!/usr/bin/env python3
"""Rewrites src/passes/aten_schemas.h, the schemas of ops that rules add, from the installed torch.

The header is its own list of ops: each constant's text is written anew, and its name follows from the op's. New ones
are named on the command line: tools/write_aten_schemas.py aten::add.Tensor aten::relu
--check changes nothing and exits 1 if the header is not what would be written.
"""

from __future__ import annotations

import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
HEADER = ROOT / "src" / "passes" / "aten_schemas.h"
WIDTH = 120

OPENING = """\
#pragma once

#include <string_view>

// Written by tools/write_aten_schemas.py, which also adds ops.

/// Schemas of ops that rules add, as torch has them.
namespace argosy::aten {

"""
CLOSING = "\n}  // namespace argosy::aten\n"


def constant_name(op: str) -> str:
    """aten::index_put_.hacked_twin -> kIndexPutInPlaceHackedTwin, aten::_grouped_mm -> kInternalGroupedMm"""
    name, _, overload = op.removeprefix("aten::").partition(".")
    parts = ["internal"] if name.startswith("_") else []
    parts += name.split("_") + (["in", "place"] if name.endswith("_") else []) + overload.split("_")
    return "k" + "".join(part[:1].upper() + part[1:] for part in parts)


def definition(name: str, text: str) -> str:
    """One constant, broken into lines as clang-format does it."""
    text = text.replace('"', '\\"')
    start = f"inline constexpr std::string_view {name} ="
    if len(f'{start} "{text}";') <= WIDTH:
        return f'{start} "{text}";\n'
    pieces, words = [""], re.findall(r"\S+ ?", text)
    for index, word in enumerate(words):
        end = 2 if index + 1 == len(words) else 1  # what follows the word: a quote, and at last a semicolon
        if len(f'    "{pieces[-1]}{word}') + end > WIDTH:
            pieces.append("")
        pieces[-1] += word
    return start + "".join(f'\n    "{piece}"' for piece in pieces) + ";\n"


def listed_ops(header: str) -> set[str]:
    return set(re.findall(r'"(aten::[\w.]+)\(', header))


def header_of(ops: set[str]) -> str:
    sys.path.insert(0, str(ROOT / "python"))
    from argosy.schemas import collect

    texts = {text[: text.index("(")]: text for text in collect()}
    if unknown := sorted(ops - texts.keys()):
        sys.exit(f"the installed torch has no op {', '.join(unknown)}")
    names: dict[str, str] = {}
    for op in sorted(ops):
        if other := names.get(constant_name(op)):
            sys.exit(f"{op} and {other} have one name, {constant_name(op)}")
        names[constant_name(op)] = op
    return OPENING + "".join(definition(name, texts[names[name]]) for name in sorted(names)) + CLOSING


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("op", nargs="*", help="ops that the header is to have too")
    parser.add_argument("--check", action="store_true", help="whether the header is as it would be written")
    parser.add_argument("--header", type=Path, default=HEADER)
    arguments = parser.parse_args()
    old = arguments.header.read_text()
    new = header_of(listed_ops(old) | set(arguments.op))
    if arguments.check:
        if new != old:
            print(f"{arguments.header} is not what tools/write_aten_schemas.py writes", file=sys.stderr)
        return int(new != old)
    arguments.header.write_text(new)
    return 0


if __name__ == "__main__":
    sys.exit(main())
