"""Writes `.capture` files (docs/capture-format.md) from torch.export.ExportedProgram, for tests.

The same programs give the same bytes. Parameters and persistent buffers are left out: they are what a checkpoint holds.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._export.serde.serialize import serialize
from torch.export import ExportedProgram

ALIGNMENT = 64
PADDING_FIELD = 0x4246
DTYPES = {
    torch.bool: ("bool", "BOOL"), torch.uint8: ("u8", "U8"), torch.int8: ("i8", "I8"), torch.int16: ("i16", "I16"),
    torch.int32: ("i32", "I32"), torch.int64: ("i64", "I64"), torch.float16: ("f16", "F16"),
    torch.bfloat16: ("bf16", "BF16"), torch.float32: ("f32", "F32"), torch.float64: ("f64", "F64"),
    torch.complex64: ("c64", "C64"),
}  # fmt: skip


@dataclass
class Component:
    name: str
    program: ExportedProgram
    #: names of dims by input: {"input_ids": {0: "batch", 1: "sequence"}}
    dim_names: dict[str, dict[int, str]] = field(default_factory=dict)
    #: ranges of named dims: {"batch": (1, None)}
    ranges: dict[str, tuple[int | None, int | None]] = field(default_factory=dict)
    output_names: list[str] = field(default_factory=list)
    cache: Any = None
    specialized: list[dict] = field(default_factory=list)


def to_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True).encode()


class Companion:
    """Collects what torch's JSON drops: who shares memory, and where nodes come from."""

    def __init__(self, program: ExportedProgram) -> None:
        self.storages: dict[int, int] = {}
        self.keep_alive: list = []  # ids of storages stay unique while their tensors live
        self.locations: dict[tuple, int] = {}
        self.result = self.describe(program.graph_module)
        self.result["storage_count"] = len(self.storages)
        self.result["locations"] = [
            {"file": file, "line": line, "module": module, "class": kind, "call": call}
            for file, line, module, kind, call in self.locations
        ]

    def storage_of(self, tensor: torch.Tensor) -> int:
        storage = tensor.untyped_storage()
        self.keep_alive.append(storage)
        return self.storages.setdefault(storage._cdata, len(self.storages))

    def location_of(self, node: torch.fx.Node) -> int:
        file, line = last_model_frame(node.meta.get("stack_trace") or "")
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
    frames = [line.strip() for line in trace.splitlines() if line.strip().startswith('File "')]
    parsed = []
    for frame in frames:
        path, rest = frame[len('File "') :].split('"', 1)
        path = path.rsplit("site-packages/", 1)[1] if "site-packages/" in path else path.rsplit("/", 1)[-1]
        parsed.append((path, int(rest.split(",")[1].removeprefix(" line "))))
    own = [frame for frame in parsed if not frame[0].startswith("torch/")]
    return (own or parsed or [("", 0)])[-1]


def reduced_graph(program: ExportedProgram) -> bytes:
    """torch's JSON without what the companion holds."""
    text = serialize(program, serialize_state_dict=False, serialize_constants=False).exported_program
    document = json.loads(text)

    def reduce(graph: dict) -> None:
        for node in graph["nodes"]:
            node["metadata"] = {}
            for argument in node["inputs"]:
                if "as_graph" in argument["arg"]:
                    reduce(argument["arg"]["as_graph"]["graph"])

    reduce(document["graph_module"]["graph"])
    # The order of keys is torch's; sorting would lose that of inputs in value tables, which nothing reads.
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode()


def schemas_of(programs: list[ExportedProgram]) -> list[str]:
    """Schemas of all ops, and of overloads that take a Scalar where a graph passes a number for a tensor."""
    packets: dict[str, Any] = {}
    for program in programs:
        for module in program.graph_module.modules():
            if not isinstance(module, torch.fx.GraphModule):
                continue
            for node in module.graph.nodes:
                if isinstance(node.target, torch._ops.OpOverload):
                    packets[str(node.target.overloadpacket)] = node.target.overloadpacket
    schemas = set()
    for packet in packets.values():
        for overload in packet.overloads():
            schemas.add(str(getattr(packet, overload)._schema))
    return sorted(schemas)


def interface_of(component: Component) -> dict:
    program = component.program
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}

    def describe(name: str, value: Any, names: dict[int, str]) -> dict:
        if not isinstance(value, torch.Tensor):
            return {"name": name, "dtype": type(value).__name__, "dims": []}
        dims = [names.get(i, size if isinstance(size, int) else None) for i, size in enumerate(value.shape)]
        return {"name": name, "dtype": DTYPES[value.dtype][0], "dims": dims}

    inputs = [describe(name, values[name], component.dim_names.get(name, {}))
              for name in program.graph_signature.user_inputs if isinstance(name, str) and name in values]  # fmt: skip
    outputs = []
    for i, name in enumerate(program.graph_signature.user_outputs):
        output = component.output_names[i] if i < len(component.output_names) else f"output_{i}"
        outputs.append(describe(output, values.get(name), {}))
    ranges = {name: {"min": low, "max": high} for name, (low, high) in component.ranges.items()}
    return {"inputs": inputs, "outputs": outputs, "dims": ranges}


def safetensors_bytes(tensors: dict[str, torch.Tensor]) -> bytes:
    header, data = {}, b""
    for name, tensor in sorted(tensors.items()):
        raw = tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes() if tensor.numel() else b""
        header[name] = {"dtype": DTYPES[tensor.dtype][1], "shape": list(tensor.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}  # fmt: skip
        data += raw
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + data


def constants_of(components: list[Component]) -> dict[str, torch.Tensor]:
    constants: dict[str, torch.Tensor] = {}
    for component in components:
        for name, tensor in component.program.constants.items():
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(f"{name} is not a tensor")
            if name in constants and not torch.equal(constants[name], tensor):
                name = f"{component.name}/{name}"
            constants[name] = tensor
    return constants


def write_zip(path: Path, entries: list[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.create_system = 3
            data_offset = archive.fp.tell() + 30 + len(name.encode()) + 4
            padding = -data_offset % ALIGNMENT
            info.extra = struct.pack("<HH", PADDING_FIELD, padding) + b"Z" * padding
            archive.writestr(info, data)


def write_capture(path: Path, components: list[Component], *, model_class: str = "", task: str = "",
                  configuration: dict | None = None, wiring: list[dict] | None = None) -> None:  # fmt: skip
    configuration = configuration or {}
    entries = []
    described = []
    for component in components:
        graph, companion = f"graphs/{component.name}.json", f"graphs/{component.name}.companion.json"
        entries.append((graph, reduced_graph(component.program)))
        entries.append((companion, to_json(Companion(component.program).result)))
        described.append({"name": component.name, "graph": graph, "companion": companion, "cache": component.cache,
                          "specialized": component.specialized, **interface_of(component)})  # fmt: skip
    manifest = {
        "format": "argosy-capture",
        "version": 1,
        "versions": {"argosy": "test", "torch": torch.__version__},
        "model_class": model_class,
        "task": task,
        "configuration": configuration,
        "configuration_hash": hashlib.sha256(to_json(configuration)).hexdigest(),
        "components": described,
        "wiring": wiring or [],
        "schemas": schemas_of([component.program for component in components]),
    }
    entries.insert(0, ("capture.json", to_json(manifest)))
    if constants := constants_of(components):
        entries.append(("constants.safetensors", safetensors_bytes(constants)))
    write_zip(path, entries)
