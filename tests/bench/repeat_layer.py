"""Writes the program of a decoder (IR text, one component) with one of its layers so many times more: what a very deep one is.

    argosy export onnx … --dump-ir FOLDER; python tests/bench/repeat_layer.py FOLDER/05_bind-graphs.ir 1700 DEEP.ir
    argosy opt DEEP.ir --passes recognise,… --time-passes -o OUT.ir

The layer is the second; its nodes are those whose module is `model.layers.1` or below.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

LAYER = 1
STORAGE = re.compile(r" storage \d+")


def repeated(lines: list[str], count: int) -> list[str]:
    """What each line becomes: itself, and after the layer's (or beside its inputs, outputs and weights) the copies."""
    node = re.compile(rf'loc\("model\.layers\.{LAYER}[."]')
    inside = [i for i, line in enumerate(lines) if node.search(line)]
    made = {name for i in inside for name in re.findall(r"%(\w+): ", lines[i].split(" = ")[0])}
    last = re.findall(r"%(\w+): ", lines[inside[-1]])[0]
    # What comes in is what the layer before gives: the first operand of the first node.
    first = re.findall(r"%(\w+)", lines[inside[0]].split(" = ")[1])[0]
    returned = next(i for i, line in enumerate(lines) if line.startswith("    return "))
    outputs = [name for name in re.findall(r"%(\w+)", lines[returned]) if name in made]

    def copy(line: str, number: int) -> str:
        def renamed(match: re.Match[str]) -> str:
            name = match[1]
            if name == first:
                return f"%{last}_r{number - 1}" if number else f"%{last}"
            return f"%{name}_r{number}" if name in made else match[0]

        own = f"{number + 1000}"
        line = re.sub(r"%(\w+)", renamed, STORAGE.sub("", line))
        line = line.replace(f"layers.{LAYER}.", f"layers.{own}.").replace(f'layers.{LAYER}"', f'layers.{own}"')
        line = line.replace(f"layers_{LAYER}_", f"layers_{own}_").replace(f"present.{LAYER}.", f"present.{own}.")
        return re.sub(rf"past_key_values([._]){LAYER}([._])", rf"past_key_values\g<1>{own}\2", line)

    found: list[str] = []
    for i, line in enumerate(lines):
        if i == returned:
            more = "".join(f", %{name}_r{number}" for number in range(count) for name in outputs)
            found.append(line + more)
            continue
        if i > inside[-1]:  # those that follow read the last copy
            line = re.sub(rf"%{last}\b", f"%{last}_r{count - 1}", line)
        found.append(line)
        if i == inside[-1]:
            found += [copy(lines[j], number) for number in range(count) for j in inside]
        declares = re.match(r"weight @|  input |  output |      %", line) is not None
        value = f"_{LAYER}_value" in line or f".{LAYER}.value" in line
        if declares and (re.search(rf"layers[._]{LAYER}[._]", line)):
            found += [copy(line, number) for number in range(count)]
        elif declares and value:  # keys and values are in turn
            found += [copy(lines[j], number) for number in range(count) for j in (i - 1, i)]
    return found


def main() -> int:
    source, count, target = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    lines = Path(source).read_text().split("\n")
    lines = [line for line in lines if not line.lstrip().startswith("attribute ")]
    Path(target).write_text("\n".join(repeated(lines, count)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
