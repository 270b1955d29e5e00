"""ONNX models that lie. Written field by field, so that no package is needed."""

from __future__ import annotations

from case import Case, write_bytes


def varint(value: int) -> bytes:
    out = b""
    value &= 2**64 - 1
    while value > 127:
        out += bytes([value & 127 | 128])
        value >>= 7
    return out + bytes([value])


def number(field: int, value: int) -> bytes:
    return varint(field << 3) + varint(value)


def block(field: int, data: bytes) -> bytes:
    return varint(field << 3 | 2) + varint(len(data)) + data


def model(graph: bytes) -> bytes:
    return number(1, 10) + block(7, graph) + block(8, number(2, 21))


def tensor(dims: list[int], raw: bytes = b"", external: dict[str, str] | None = None) -> bytes:
    out = b"".join(number(1, dim) for dim in dims) + number(2, 1) + block(8, b"w")
    if external is None:
        return block(5, out + block(9, raw))
    entries = b"".join(block(13, block(1, key.encode()) + block(2, text.encode())) for key, text in external.items())
    return block(5, out + entries + number(14, 1))


def nested_graphs(depth: int) -> bytes:
    graph = b""
    for _ in range(depth):
        graph = block(1, block(4, b"If") + block(5, block(6, graph)))
    return graph


def nested_types(depth: int) -> bytes:
    kind = b""
    for _ in range(depth):
        kind = block(4, block(1, kind))
    return block(11, block(1, b"x") + block(2, kind))


def cases() -> list[Case]:
    rows = [
        ("empty", "it has no IR version", b""),
        ("no_graph", "it has no graph", number(1, 10)),
        ("two_graphs", "it has two graphs", model(b"") + model(b"")),
        ("truncated", "its protobuf is malformed (end of buffer exception)", model(tensor([1], b"1234"))[:-20]),
        ("endless_varint", "its protobuf is malformed (varint too long exception)", b"\x08" + b"\xff" * 20),
        ("deep_graphs", "sub-graphs are nested more than 64", model(nested_graphs(5_000))),
        ("deep_types", "types are nested more than 64", model(nested_types(5_000))),
        ("many_dims", "a tensor has more than 1024 dims", model(tensor([1] * 5_000))),
        ("negative_dim", 'the shape of tensor "w" is negative or overflows', model(tensor([-1]))),
        ("size_mismatch", "takes 40 bytes by its type and shape, but holds 4", model(tensor([10], b"1234"))),
        ("external_parent", 'is said to be in "../w.data"', model(tensor([1], external={"location": "../w.data"}))),
        ("external_absolute", 'is said to be in "/etc/passwd"', model(tensor([1], external={"location": "/etc/passwd"}))),
        ("external_offset", "lies beyond all files",
         model(tensor([1], external={"location": "w", "offset": str(2**64 - 1)}))),
        ("external_length", "but 3 in its external file", model(tensor([1], external={"location": "w", "length": "3"}))),
        ("external_text", 'the offset of the external data of tensor "w" is "1e3"',
         model(tensor([1], external={"location": "w", "offset": "1e3"}))),
        ("many_initializers", "more than 1048576 items of one kind", model(block(5, b"") * (1 << 21))),
        ("not_utf8", "is not UTF-8", model(block(2, b"\xff\xfe"))),
    ]
    return [Case(f"onnx/{name}.onnx", "corrupt-file", message, write_bytes(data)) for name, message, data in rows]
