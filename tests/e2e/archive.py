"""What the tests need to know of a .pt2 archive without torch: its graph as JSON."""

from __future__ import annotations

import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path


def read_program(archive: Path) -> dict:
    with zipfile.ZipFile(archive) as file:
        name = next(entry for entry in file.namelist() if entry.endswith("/models/model.json"))
        return json.loads(file.read(name))


def all_nodes(graph: dict) -> Iterator[dict]:
    """Nodes of the graph and of its sub-graphs."""
    for node in graph["nodes"]:
        yield node
        for argument in node["inputs"]:
            if subgraph := argument["arg"].get("as_graph"):
                yield from all_nodes(subgraph["graph"])


def count_ops(program: dict) -> Counter[str]:
    return Counter(node["target"] for node in all_nodes(program["graph_module"]["graph"]))
