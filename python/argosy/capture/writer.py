"""Writes ``.capture`` files (docs/capture-format.md). The same graphs give the same bytes."""

from __future__ import annotations

import hashlib
import json
import os
import struct
import time
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch._export.serde.serialize import serialize
from torch.export import ExportedProgram

from .companion import companion
from .guards import Guard
from .own_ops import onnx_ops
from .symbols import set_ranges, substituted
from .trace import fixed_size

ALIGNMENT = 64
PADDING_FIELD = 0x4246
#: name in manifests, name in safetensors headers
DTYPES = {
    torch.bool: ("bool", "BOOL"), torch.uint8: ("u8", "U8"), torch.int8: ("i8", "I8"), torch.int16: ("i16", "I16"),
    torch.int32: ("i32", "I32"), torch.int64: ("i64", "I64"), torch.float16: ("f16", "F16"),
    torch.bfloat16: ("bf16", "BF16"), torch.float32: ("f32", "F32"), torch.float64: ("f64", "F64"),
    torch.complex64: ("c64", "C64"),
}  # fmt: skip


@dataclass
class GraphEntry:
    """One component of a capture. Parameters and persistent buffers are left out: they are what a checkpoint holds."""

    name: str
    program: ExportedProgram
    #: names of dims by input: {"input_ids": {0: "batch", 1: "sequence"}}
    dim_names: dict[str, dict[int, str]] = field(default_factory=dict)
    #: ranges of named dims: {"batch": (1, None)}
    ranges: Mapping[str, tuple[int | None, int | None]] = field(default_factory=dict)
    #: names that are sums of others: {"total_sequence": ("past_sequence", "sequence")}
    sums: dict[str, tuple[str, ...]] = field(default_factory=dict)
    output_names: list[str] = field(default_factory=list)
    #: dotted names of inputs whose names in the graph are only made from them
    input_paths: dict[str, str] = field(default_factory=dict)
    cache: Any = None
    specialized: list[dict] = field(default_factory=list)
    #: what the graph needs of sizes; bounds are in ``ranges`` too
    guards: list[Guard] = field(default_factory=list)
    #: parameters and buffers that come along all the same: a checkpoint may lack them
    computed: list[str] = field(default_factory=list)
    #: a call of the twin, by input; of floating-point tensors only the sizes are kept
    samples: dict[str, torch.Tensor] = field(default_factory=dict)


@dataclass
class Manifest:
    """What a capture says of the model as a whole."""

    model_class: str = ""
    task: str = ""
    configuration: dict = field(default_factory=dict)
    wiring: list[dict] = field(default_factory=list)
    #: weights that graphs read apart, and what each is equal to unless a checkpoint holds both
    ties: dict[str, str] = field(default_factory=dict)
    versions: dict[str, str] = field(default_factory=dict)


@dataclass
class Content:
    """What a capture holds, before it is a file."""

    #: ``capture.json``
    document: dict[str, Any]
    #: graphs and companions by the name of their entry, in order
    entries: dict[str, bytes]
    #: by component: what no checkpoint holds, by name
    constants: dict[str, dict[str, torch.Tensor]]
    #: by component: a call of the twin, by input
    samples: dict[str, dict[str, torch.Tensor]]
    #: CPU seconds that torch's serialisation took
    serialize_seconds: float = 0.0


def write_capture(
    path: str | os.PathLike, graphs: list[GraphEntry], manifest: Manifest, *, with_constants: bool = True
) -> float:
    """Writes beside ``path`` and renames at the end, so that a reader sees all of it or nothing. Returns the CPU seconds
    that torch's serialisation took. Without constants whoever reads it has to provide these as well."""
    content = capture_content(graphs, manifest)
    if not with_constants:
        content.constants = {}
    write_content(path, content)
    return content.serialize_seconds


def capture_content(graphs: list[GraphEntry], manifest: Manifest) -> Content:
    content = Content({}, {}, {}, {})
    described = []
    for graph in graphs:
        names = {"graph": f"graphs/{graph.name}.json", "companion": f"graphs/{graph.name}.companion.json"}
        start = time.process_time()
        serialized = serialize(graph.program, serialize_state_dict=False, serialize_constants=False).exported_program
        content.serialize_seconds += time.process_time() - start
        content.entries[names["graph"]] = reduced_graph(serialized, graph)
        content.entries[names["companion"]] = to_json(companion(graph.program))
        content.constants[graph.name] = own_constants(graph)
        content.samples[graph.name] = graph.samples
        described.append({"name": graph.name, **names, "cache": graph.cache, "specialized": graph.specialized,
                          "guards": [guard_entry(each) for each in graph.guards],
                          **interface(graph)})  # fmt: skip
    content.document = {
        "format": "argosy-capture",
        "version": 1,
        "versions": {"torch": torch.__version__, **manifest.versions},
        "model_class": manifest.model_class,
        "task": manifest.task,
        "components": described,
        "wiring": manifest.wiring,
        "ties": list(manifest.ties.items()),
        "schemas": schemas([graph.program for graph in graphs]),
        **configuration_keys(manifest.configuration),
    }
    if nodes := onnx_ops([graph.program for graph in graphs]):
        content.document["onnx_ops"] = nodes
    return content


def configuration_keys(configuration: dict) -> dict[str, Any]:
    return {"configuration": configuration, "configuration_hash": hashlib.sha256(to_json(configuration)).hexdigest()}


def write_content(path: str | os.PathLike, content: Content) -> None:
    """Writes beside ``path`` and renames at the end."""
    entries = [("capture.json", to_json(content.document)), *content.entries.items()]
    if tensors := constants(content.constants):
        entries.append(("constants.safetensors", safetensors_bytes(tensors)))
    if tensors := sample_values(content.samples):
        entries.append(("samples.safetensors", safetensors_bytes(tensors)))
    target = Path(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.part")
    try:
        write_zip(temporary, entries)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)


def guard_entry(guard: Guard) -> dict:
    longest = {} if guard.longest is None else {"longest": guard.longest}
    return {"condition": guard.condition, "where": guard.where, **longest}


def to_json(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False).encode()


def reduced_graph(serialized: bytes, graph: GraphEntry) -> bytes:
    """torch's JSON with the dims that were observed and the guards that the graph needs instead of all that torch wrote
    down, and without what the companion holds."""
    document = json.loads(substituted(serialized.decode(), graph))

    def reduce(part: dict) -> None:
        for node in part["nodes"]:
            node["metadata"] = {}
            for argument in node["inputs"]:
                if "as_graph" in argument["arg"]:
                    reduce(argument["arg"]["as_graph"]["graph"])

    reduce(document["graph_module"]["graph"])
    set_ranges(document, graph)
    # The order of keys is torch's; sorting would lose that of inputs in value tables, which nothing reads.
    return json.dumps(document, separators=(",", ":"), ensure_ascii=True).encode()


def schemas(programs: list[ExportedProgram]) -> list[str]:
    """Schemas of all ops, and of overloads that take a Scalar where a graph passes a number for a tensor."""
    packets: dict[str, Any] = {}
    for program in programs:
        for module in program.graph_module.modules():
            if not isinstance(module, torch.fx.GraphModule):
                continue
            for node in module.graph.nodes:
                if isinstance(node.target, torch._ops.OpOverload):
                    packets[str(node.target.overloadpacket)] = node.target.overloadpacket
    found = set()
    for packet in packets.values():
        for overload in packet.overloads():
            found.add(str(getattr(packet, overload)._schema))
    return sorted(found)


def interface(graph: GraphEntry) -> dict:
    program = graph.program
    values = {node.name: node.meta.get("val") for node in program.graph.nodes}

    def describe(name: str, value: Any, names: dict[int, str]) -> dict:
        if not isinstance(value, torch.Tensor):
            return {"name": name, "dtype": type(value).__name__, "dims": []}
        fixed = [fixed_size(size) for size in value.shape]
        dims = [names.get(i) if size is None else size for i, size in enumerate(fixed)]
        return {"name": name, "dtype": DTYPES[value.dtype][0], "dims": dims}

    inputs = []
    for name in program.graph_signature.user_inputs:
        if isinstance(name, str) and name in values:
            described = describe(name, values[name], graph.dim_names.get(name, {}))
            if graph.input_paths.get(name, name) != name:
                described["path"] = graph.input_paths[name]
            if name in graph.samples:
                described["sample"] = list(graph.samples[name].shape)
            inputs.append(described)
    outputs = []
    for i, name in enumerate(program.graph_signature.user_outputs):
        output = graph.output_names[i] if i < len(graph.output_names) else f"output_{i}"
        outputs.append(describe(output, values.get(name), {}))
    used = {dim for item in inputs for dim in item["dims"] if isinstance(dim, str)}
    ranges = {name: {"min": low, "max": high} for name, (low, high) in graph.ranges.items() if name in used}
    sums = {name: list(parts) for name, parts in graph.sums.items() if {name, *parts} <= used}
    return {"inputs": inputs, "outputs": outputs, "dims": ranges, "sums": sums}


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


def own_constants(graph: GraphEntry) -> dict[str, torch.Tensor]:
    computed = {name: graph.program.state_dict[name] for name in graph.computed if name in graph.program.state_dict}
    return {**graph.program.constants, **computed}


def constants(by_component: Mapping[str, Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    found: dict[str, torch.Tensor] = {}
    for component, tensors in by_component.items():
        for name, tensor in tensors.items():
            if not isinstance(tensor, torch.Tensor):
                raise ValueError(f"{name} is not a tensor")
            if name in found and not (found[name].shape == tensor.shape and torch.equal(found[name], tensor)):
                name = f"{component}/{name}"
            found[name] = tensor
    return found


def sample_values(by_component: Mapping[str, Mapping[str, torch.Tensor]]) -> dict[str, torch.Tensor]:
    """Values of sample inputs that are no floating-point numbers: those must fit each other (ids, masks, positions)."""
    return {
        f"{component}/{name}": tensor
        for component, tensors in by_component.items()
        for name, tensor in tensors.items()
        if not tensor.is_floating_point() and not tensor.is_complex()
    }


def write_zip(path: Path, entries: list[tuple[str, bytes]]) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, data in entries:
            info = zipfile.ZipInfo(name, date_time=(1980, 1, 1, 0, 0, 0))
            info.external_attr = 0o644 << 16
            info.create_system = 3
            assert archive.fp is not None, "it is open"
            data_offset = archive.fp.tell() + 30 + len(name.encode()) + 4
            padding = -data_offset % ALIGNMENT
            info.extra = struct.pack("<HH", PADDING_FIELD, padding) + b"Z" * padding
            archive.writestr(info, data)
