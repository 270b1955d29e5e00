"""What torch's serialised graph drops and lowering needs: who shares memory with whom, and where each node comes from."""

from __future__ import annotations

from typing import Any

import torch
from torch.export import ExportedProgram


def companion(program: ExportedProgram) -> dict[str, Any]:
    """The companion of a graph, as docs/capture-format.md describes it."""
    builder = _Builder()
    result = builder.describe(program.graph_module)
    result["storage_count"] = len(builder.storages)
    result["locations"] = [
        {"file": file, "line": line, "module": module, "class": kind, "call": call}
        for file, line, module, kind, call in builder.locations
    ]
    return result


class _Builder:
    def __init__(self) -> None:
        self.storages: dict[int, int] = {}
        self.keep_alive: list = []  # ids of storages stay unique while their tensors live
        self.locations: dict[tuple, int] = {}
        self.frames: dict[str, tuple[str, int]] = {}

    def storage_of(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        self.keep_alive.append(storage)
        return self.storages.setdefault(storage._cdata, len(self.storages))

    def location_of(self, node: torch.fx.Node) -> int:
        trace = node.meta.get("stack_trace") or ""
        if trace not in self.frames:
            self.frames[trace] = last_model_frame(trace)
        file, line = self.frames[trace]
        module, kind, call = "", "", 0
        for key, (path, type_name) in (node.meta.get("nn_module_stack") or {}).items():
            module, kind = path, str(type_name).rsplit(".", 1)[-1]
            call = int(key.rsplit("@", 1)[1]) if "@" in key else 0
        if not file and not module and not kind:
            return -1
        return self.locations.setdefault((file, line, module, kind, call), len(self.locations))

    def describe(self, module: torch.fx.GraphModule) -> dict:
        result: dict[str, Any] = {"storages": {}, "nodes": [], "subgraphs": {}}
        for node in module.graph.nodes:
            value = node.meta.get("val")
            if isinstance(value, torch.Tensor):
                result["storages"][node.name] = self.storage_of(value)
            elif node.op == "get_attr" and isinstance(child := getattr(module, node.target), torch.fx.GraphModule):
                result["subgraphs"][node.target] = self.describe(child)
            if node.op == "call_function" and node.target.__name__ != "getitem":
                result["nodes"].append(self.location_of(node))
        return result


def last_model_frame(trace: str) -> tuple[str, int]:
    """The innermost line of a stack trace that is neither torch's nor this package's; paths are relative to the packages."""
    frames = []
    for line in trace.splitlines():
        if not line.strip().startswith('File "'):
            continue
        path, rest = line.strip()[len('File "') :].split('"', 1)
        frames.append((portable_path(path), int(rest.split(",")[1].removeprefix(" line "))))
    own = [frame for frame in frames if not frame[0].startswith(("torch/", "argosy/"))]
    return (own or frames or [("", 0)])[-1]


def portable_path(path: str) -> str:
    """A source file without folders of this machine."""
    return path.rsplit("site-packages/", 1)[1] if "site-packages/" in path else path.rsplit("/", 1)[-1]
