"""Symbolic sizes as they are: torch gives each input axis a symbol of its own, and writes down what held while it traced
(a batch of at least two, lengths that are equal only by a guard). What was observed replaces that, with those guards that
the graph does need."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from .writer import GraphEntry


def substituted(text: str, graph: GraphEntry) -> str:
    """A serialised graph in which axes of one name have one symbol, and sums are written as sums."""
    replaced = _replacements(graph)
    if not replaced:
        return text

    def replace(match: re.Match) -> str:
        return replaced.get(match.group(1), match.group(0))

    return re.sub(r"Symbol\('(\w+)'[^()]*\)", replace, text)


def set_ranges(document: dict, graph: GraphEntry) -> None:
    """True ranges for the symbols that are left, and the guards that were kept."""
    symbols = _symbols_by_name(graph)
    replaced = _replacements(graph)
    ranges = {
        name: value
        for name, value in document["range_constraints"].items()
        # Ranges of sums ("s1 + s2") are those of the trace too; they follow from their parts.
        if name.isidentifier() and (name not in replaced or f"'{name}'" in replaced[name])
    }
    for name, (low, high) in graph.ranges.items():
        for symbol in symbols.get(name, [])[:1]:
            if symbol in ranges:
                ranges[symbol] = {**ranges[symbol], "min_val": low, "max_val": high}
    document["range_constraints"] = ranges
    document["guards_code"] = [guard.code for guard in graph.guards]


def _symbols_by_name(graph: GraphEntry) -> dict[str, list[str]]:
    """Symbols of the input axes that have a name, where such an axis is a symbol and nothing more; in order of inputs."""
    values = {node.name: node.meta.get("val") for node in graph.program.graph.nodes if node.op == "placeholder"}
    found: dict[str, list[str]] = {}
    for name, axes in graph.dim_names.items():
        for axis, dim in axes.items():
            if not isinstance(values.get(name), torch.Tensor):
                continue
            size = values[name].shape[axis]
            if isinstance(size, torch.SymInt) and size.node.expr.is_symbol:
                symbol = str(size.node.expr)
                if symbol not in found.setdefault(dim, []):
                    found[dim].append(symbol)
    return found


def _replacements(graph: GraphEntry) -> dict[str, str]:
    """Symbol to the text that takes its place."""
    symbols = _symbols_by_name(graph)
    taken = {symbol for group in symbols.values() for symbol in group[:1]}
    texts = {group[0]: _symbol(group[0], graph.ranges.get(name, (1, None))[0]) for name, group in symbols.items()}
    result = dict(texts)
    for name, group in symbols.items():
        sums = graph.sums.get(name, ())
        parts = [symbols[part][0] for part in sums if part in symbols]
        if parts and len(parts) == len(sums):
            text = f"Add({', '.join(texts[part] for part in parts)})"
            result.update((symbol, text) for symbol in group if symbol not in parts)
        else:
            result.update((symbol, texts[group[0]]) for symbol in group[1:] if symbol not in taken)
    return result


def _symbol(name: str, low: int | None) -> str:
    sign = "positive" if low else "nonnegative"
    return f"Symbol('{name}', {sign}=True, integer=True)"
