"""How two captures differ, of which one may be stamped: all but names inside graphs and where sizes are computed is compared."""

from __future__ import annotations

import re
from collections import Counter

import torch

from ..errors import ExportError
from .writer import Content, sample_values, to_json

#: Numbers in the model's code that a trace made tensors of.
LIFTED = re.compile(r"lifted_tensor_\d+$")


def difference(one: Content, other: Content) -> str:
    """How two captures differ; empty if only in names inside graphs and in where sizes are computed."""
    from .. import _core

    a, b = dict(one.document), dict(other.document)
    parts = list(zip(a.pop("components"), b.pop("components"), strict=True))
    for name in a:
        if to_json(a[name]) != to_json(b.get(name)):
            return f"{name} of the capture"
    for x, y in parts:
        for name in x:
            if to_json(x[name]) != to_json(y.get(name)):
                return f"{name} of {x['name']}"
        texts = [(each.entries[x["graph"]].decode(), each.entries[x["companion"]].decode(),
                  to_json({"inputs": z["inputs"], "outputs": z["outputs"]}).decode()) for each, z in ((one, x), (other, y))]  # fmt: skip
        try:
            found = _core.graph_difference(*texts)
        except ExportError as error:
            return error.message
        if found:
            return f"{x['name']}: {found}"
        if not _same_tensors(_renumbered(one.constants[x["name"]]), _renumbered(other.constants[x["name"]])):
            return f"constants of {x['name']}"
    if not _same_tensors(sample_values(one.samples), sample_values(other.samples)):
        return "samples"
    return ""


def _renumbered(constants: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """Names without the numbers that torch counts over all modules; each module counts its own."""
    found: dict[str, torch.Tensor] = {}
    counts: Counter[str] = Counter()
    for name in sorted(constants, key=lambda each: (LIFTED.sub("", each), len(each), each)):
        module = LIFTED.sub("", name)
        if module != name:
            counts[module] += 1
        found[f"{module}#{counts[module]}" if module != name else name] = constants[name]
    return found


def _same_tensors(one: dict[str, torch.Tensor], other: dict[str, torch.Tensor]) -> bool:
    return one.keys() == other.keys() and all(
        each.dtype == other[name].dtype and torch.equal(each, other[name]) for name, each in one.items()
    )
