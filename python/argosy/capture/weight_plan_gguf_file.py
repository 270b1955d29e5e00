"""What a GGUF file holds: names, types and shapes of its tensors, and which architecture they are of."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ..errors import ExportError

#: By number: name and, unless it is made of blocks, dtype.
_TYPES = {
    0: ("F32", torch.float32), 1: ("F16", torch.float16), 2: ("Q4_0", None), 3: ("Q4_1", None), 6: ("Q5_0", None), 7: ("Q5_1", None),
    8: ("Q8_0", None), 12: ("Q4_K", None), 13: ("Q5_K", None), 14: ("Q6_K", None), 24: ("I8", torch.int8), 25: ("I16", torch.int16),
    26: ("I32", torch.int32), 27: ("I64", torch.int64), 28: ("F64", torch.float64), 30: ("BF16", torch.bfloat16),
}  # fmt: skip
#: Of metadata: numbers by their type, as struct has them; 8 is a text, 9 an array.
_NUMBERS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
_TEXT, _ARRAY = 8, 9
_MOST = 1 << 24


@dataclass(frozen=True)
class GgufTensor:
    name: str
    kind: str
    dtype: torch.dtype  # float32 for blocks
    shape: tuple[int, ...]
    is_blocks: bool


@dataclass(frozen=True)
class GgufHeader:
    architecture: str
    tensors: list[GgufTensor]


def read_gguf(path: Path) -> GgufHeader:
    try:
        with path.open("rb") as file:
            return _Reader(path, file).read()
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}", code="io", hint="check the path") from error


class _Reader:
    def __init__(self, path: Path, file: BinaryIO) -> None:
        self._path, self._file = path, file

    def read(self) -> GgufHeader:
        if self._bytes(4) != b"GGUF":
            raise self._corrupt("it does not begin with GGUF")
        version, tensor_count, metadata_count = self._number("I"), self._number("Q"), self._number("Q")
        if version not in (2, 3):
            raise ExportError(f"{self._path} has version {version} of GGUF", code="unsupported-version", hint="2 and 3 are read")
        if max(tensor_count, metadata_count) > _MOST:
            raise self._corrupt(f"it claims {tensor_count} tensors and {metadata_count} entries of metadata")
        architecture = ""
        for _ in range(metadata_count):
            key, kind = self._text(), self._number("I")
            if key == "general.architecture" and kind == _TEXT:
                architecture = self._text()
            else:
                self._skip(kind, 0)
        return GgufHeader(architecture, list(self._tensors(tensor_count)))

    def _tensors(self, count: int) -> Iterator[GgufTensor]:
        for _ in range(count):
            name, rank = self._text(), self._number("I")
            if rank > 8:
                raise self._corrupt(f"tensor {name!r} has {rank} dims")
            shape = tuple(self._number("Q") for _ in range(rank))[::-1]
            kind, _ = self._number("I"), self._number("Q")
            if kind not in _TYPES:
                raise ExportError(
                    f"{self._path}: tensor {name!r} has the type number {kind}, which is not read",
                    code="unsupported-feature",
                    hint=f"read are {', '.join(known for known, _ in _TYPES.values())}",
                )
            text, dtype = _TYPES[kind]
            yield GgufTensor(name, text, dtype or torch.float32, shape, dtype is None)

    def _skip(self, kind: int, nesting: int) -> None:
        if kind == _TEXT:
            self._bytes(self._number("Q"))
        elif kind in _NUMBERS:
            self._bytes(struct.calcsize("<" + _NUMBERS[kind]))
        elif kind == _ARRAY and nesting < 8:
            item, count = self._number("I"), self._number("Q")
            if count > _MOST:
                raise self._corrupt(f"an array of {count} items")
            if item in _NUMBERS:
                self._bytes(count * struct.calcsize("<" + _NUMBERS[item]))
            else:
                for _ in range(count):
                    self._skip(item, nesting + 1)
        else:
            raise self._corrupt(f"metadata of type {kind}")

    def _text(self) -> str:
        try:
            return self._bytes(self._number("Q")).decode()
        except UnicodeDecodeError as error:
            raise self._corrupt("a text is not UTF-8") from error

    def _number(self, kind: str) -> Any:
        return struct.unpack("<" + kind, self._bytes(struct.calcsize("<" + kind)))[0]

    def _bytes(self, count: int) -> bytes:
        found = self._file.read(count) if count <= 1 << 30 else b""
        if len(found) != count:
            raise self._corrupt("it ends early")
        return found

    def _corrupt(self, what: str) -> ExportError:
        return ExportError(f"{self._path} is not a usable GGUF file: {what}", code="corrupt-file", hint="download the file again")
