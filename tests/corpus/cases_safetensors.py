"""Safetensors files that lie."""

from __future__ import annotations

import json
import struct
from pathlib import Path

from case import Case, write_bytes

MAX_HEADER = 100_000_000


def file(header: bytes | str | dict, data: int = 0, length: int | None = None) -> bytes:
    """A file of this header and so many bytes of data; `length` overrides the recorded length of the header."""
    if isinstance(header, dict):
        header = json.dumps(header, separators=(",", ":"))
    if isinstance(header, str):
        header = header.encode()
    return struct.pack("<Q", len(header) if length is None else length) + header + bytes(data)


def tensor(dtype="U8", shape=(4,), begin=0, end=4, **more) -> dict:
    return {"dtype": dtype, "shape": list(shape), "data_offsets": [begin, end], **more}


def many_values(path: Path) -> None:
    with open(path, "wb") as out:
        text = b'{"w":{"shape":[' + b"0," * (30 << 20) + b"0]}}"
        out.write(struct.pack("<Q", len(text)) + text)


def long_header(path: Path) -> None:
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", MAX_HEADER + 1) + b"{")
        out.truncate(8 + MAX_HEADER + 1)


def header_of_zeros(path: Path) -> None:
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", MAX_HEADER - 1) + b"{")
        out.truncate(8 + MAX_HEADER - 1)


def cases() -> list[Case]:
    corrupt = "corrupt-file"
    rows = [
        ("empty", "it has only 0 bytes", b""),
        ("no_length", "it has only 5 bytes", b"\x01\0\0\0\0"),
        ("length_of_all_ones", "header of 18446744073709551615 bytes", file("{}", length=2**64 - 1)),
        ("length_beyond_end", "its header alone takes 1000 bytes, but the file ends after 2", file("{}", length=1000)),
        ("empty_header", "is empty", file("")),
        ("array_header", "does not begin with a brace", file("[]")),
        ("not_utf8", "it is not valid UTF-8 (at byte 2)", file(b'{"\xff\xfe":{}}')),
        ("deep", "nested more than 1024 levels deep (at byte 1028)",
         file('{"a":' + "[" * 100_000 + "]" * 100_000 + "}")),
        ("deep_objects", "nested more than 1024 levels deep (at byte 5120)",
         file('{"a":' * 100_000 + "1" + "}" * 100_000)),
        ("trailing_comma", "missing or misplaced (at byte 48)",
         file('{"w":{"dtype":"U8","shape":[],"data_offsets":[0,}}')),
        ("open_string", "a string is not closed (at byte 4)", file('{"ab')),
        ("two_documents", "missing or misplaced (at byte 2)", file("{}{}")),
        ("control_character", "unescaped control character (at byte 3)", file('{"a\nb":{}}')),
        ("lone_surrogate", "malformed escape", file('{"\\ud800":{}}')),
        ("number_as_tensor", 'tensor "n" is not described by an object', file({"n": 7})),
        ("no_dtype", 'tensor "w" has no dtype', file({"w": {"shape": [], "data_offsets": [0, 0]}})),
        ("no_shape", 'tensor "w" has no shape', file({"w": {"dtype": "U8", "data_offsets": [0, 0]}})),
        ("negative_dim", 'has the negative dim -4', file({"w": tensor(shape=[-4])}, 4)),
        ("float_dim", 'tensor "fraction" has a dim that is not an integer', file({"fraction": tensor(shape=[4.5])}, 4)),
        ("huge_dim", 'tensor "huge" has a dim that is not an integer', file({"huge": tensor(shape=[2**63])}, 4)),
        ("elements_overflow", 'tensor "product" has a shape whose size overflows',
         file({"product": tensor(shape=[2**32, 2**32])}, 4)),
        ("bytes_overflow", 'tensor "bytes" has a shape whose size overflows',
         file({"bytes": tensor("F64", [2**61], 0, 0)})),
        ("overflow_behind_zero", 'tensor "zero" has a shape whose size overflows',
         file({"zero": tensor("U8", [0, 2**40, 2**40], 0, 0)})),
        ("half_a_byte", "has 3 elements of 4 bits", file({"w": tensor("F4", [3], 0, 2)}, 2)),
        ("one_offset", "has no data_offsets of two numbers",
         file({"w": {"dtype": "U8", "shape": [4], "data_offsets": [4]}}, 4)),
        ("negative_offset", "data_offsets that are not unsigned", file({"w": tensor(begin=-4, end=0)}, 4)),
        ("reversed_offsets", "ends at byte 0, before it begins at byte 4", file({"w": tensor(begin=4, end=0)}, 4)),
        ("offsets_of_all_ones", "takes 4 bytes by its dtype and shape, but 18446744073709551615",
         file({"w": tensor(end=2**64 - 1)}, 4)),
        ("size_mismatch", "takes 32 bytes by its dtype and shape, but 4", file({"w": tensor("F64")}, 4)),
        ("overlap", "begins at byte 2, inside the tensor before it", file({"a": tensor(), "b": tensor(begin=2, end=6)}, 6)),
        ("same_bytes_twice", "begins at byte 0, inside the tensor before it", file({"a": tensor(), "b": tensor()}, 4)),
        ("hole", "begins at byte 6, but the tensor before it ends at byte 4",
         file({"a": tensor(), "b": tensor(begin=6, end=10)}, 10)),
        ("hole_at_start", "begins at byte 3, but the tensor before it ends at byte 0",
         file({"a": tensor(begin=3, end=7)}, 7)),
        ("truncated", "is truncated: its tensors take 4 bytes, of which 3 are missing", file({"w": tensor()}, 1)),
        ("claims_much", "is truncated: its tensors take 10000000000000 bytes",
         file({"w": tensor(shape=[10**13], end=10**13)}, 4)),
        ("too_long", "5 bytes follow its last tensor", file({"w": tensor()}, 9)),
        ("duplicate_name", 'it has tensor "w" twice',
         file('{"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]},"w":{"dtype":"U8","shape":[0],"data_offsets":[0,0]}}')),
        ("empty_name", "a tensor has an empty name", file({"": tensor()}, 4)),
        ("duplicate_field", 'tensor "w" has shape twice',
         file('{"w":{"dtype":"U8","shape":[0],"shape":[1],"data_offsets":[0,0]}}')),
        ("metadata_list", "its __metadata__ is not an object", file({"__metadata__": []})),
        ("metadata_number", 'the value of "k" in its __metadata__ is not text', file({"__metadata__": {"k": 1}})),
        ("metadata_twice", "it has __metadata__ twice", file('{"__metadata__":{},"__metadata__":{}}')),
        ("metadata_key_twice", '__metadata__ has "k" twice', file('{"__metadata__":{"k":"1","k":"2"}}')),
    ]
    result = [Case(f"safetensors/{name}.safetensors", corrupt, message, write_bytes(data))
              for name, message, data in rows]
    result += [
        Case("safetensors/unknown_dtype.safetensors", "unsupported-feature", 'the unknown dtype "F128"',
             write_bytes(file({"w": tensor("F128")}, 4))),
        Case("safetensors/many_values.safetensors", corrupt, "it may hold 31457", many_values),
        Case("safetensors/long_header.safetensors", corrupt, "header of 100000001 bytes", long_header),
        Case("safetensors/header_of_zeros.safetensors", corrupt, "missing or misplaced (at byte 1)", header_of_zeros),
    ]
    return result
