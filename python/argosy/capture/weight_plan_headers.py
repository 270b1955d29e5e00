"""What a checkpoint holds, from the headers of its files: names, dtypes and shapes, never tensors."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch

from ..errors import ExportError
from .weight_plan_gguf_file import read_gguf
from .weight_plan_torch_file import read_torch_file

#: The safetensors name of a dtype, torch's, and the one that plans and captures use.
_DTYPES = (
    ("BOOL", torch.bool, "bool"),
    ("U8", torch.uint8, "u8"),
    ("I8", torch.int8, "i8"),
    ("U16", torch.uint16, "u16"),
    ("I16", torch.int16, "i16"),
    ("U32", torch.uint32, "u32"),
    ("I32", torch.int32, "i32"),
    ("U64", torch.uint64, "u64"),
    ("I64", torch.int64, "i64"),
    ("F16", torch.float16, "f16"),
    ("BF16", torch.bfloat16, "bf16"),
    ("F32", torch.float32, "f32"),
    ("F64", torch.float64, "f64"),
    ("C64", torch.complex64, "c64"),
    ("F8_E4M3", torch.float8_e4m3fn, "f8e4m3fn"),
    ("F8_E5M2", torch.float8_e5m2, "f8e5m2"),
    ("F8_E8M0", torch.float8_e8m0fnu, "f8e8m0fnu"),
)
_BY_SAFETENSORS_NAME = {name: dtype for name, dtype, _ in _DTYPES}
_TEXTS = {dtype: text for _, dtype, text in _DTYPES}

#: The format's own limit of a header.
_MAX_HEADER = 100_000_000
#: Of a tensor whose bytes are settings.
_MAX_SETTING = 64 << 10


@dataclass(frozen=True)
class HeaderTensor:
    """One tensor of a checkpoint, as its header states it."""

    name: str
    dtype: torch.dtype
    shape: tuple[int, ...]
    #: The bytes of a tensor that holds settings on which plans depend (``is_setting``); of a GGUF file, the name of its blocks.
    content: bytes | None = None


def is_setting(name: str, dtype: torch.dtype, size: int) -> bool:
    """Whether a tensor's bytes are settings: bitsandbytes' ``quant_state`` in JSON, or its ``weight_format``, a number."""
    is_named_so = ".quant_state.bitsandbytes__" in name or name.endswith(".weight_format")
    return is_named_so and dtype == torch.uint8 and size <= _MAX_SETTING


def dtype_text(dtype: torch.dtype) -> str:
    """``"bf16"`` and the like: how plans name dtypes."""
    if dtype not in _TEXTS:
        raise ExportError(f"no name for the dtype {dtype}", code="unsupported-feature", hint="convert the tensor first")
    return _TEXTS[dtype]


def dtype_of_text(text: str) -> torch.dtype:
    """The dtype that plans name so."""
    return next(dtype for _, dtype, name in _DTYPES if name == text)


def checkpoint_files(folder: Path) -> list[Path]:
    """The files of the checkpoint in a folder."""
    return _files(folder)


def read_checkpoint_headers(folder: Path) -> list[HeaderTensor]:
    """The tensors of the checkpoint in a folder, sorted by the bytes of their names.

    Files are chosen as C++ and transformers choose them: ``model.safetensors``, else the shards of the only index, else
    the only ``*.safetensors``, else ``pytorch_model.bin`` or the shards of its index, else the
    only ``*.gguf``.
    """
    tensors: dict[str, HeaderTensor] = {}
    for path in _files(folder):
        for tensor in _read_header(path):
            if tensor.name in tensors:
                raise _corrupt(path, f"tensor {tensor.name!r} is in an earlier file too")
            tensors[tensor.name] = tensor
    return [tensors[name] for name in sorted(tensors, key=str.encode)]


def read_headers(path: Path) -> list[HeaderTensor]:
    """The tensors of one file, sorted the same way."""
    return sorted(_read_header(path), key=lambda each: each.name.encode())


def headers_hash(tensors: Sequence[HeaderTensor]) -> str:
    """SHA-256 (hex) of names, dtypes and shapes, and of what is_setting(): which checkpoints a plan is for."""

    def settings(tensor: HeaderTensor) -> str:
        return "" if tensor.content is None else "\t" + hashlib.sha256(tensor.content).hexdigest()

    lines = (f"{t.name}\t{dtype_text(t.dtype)}\t{','.join(map(str, t.shape))}{settings(t)}\n" for t in tensors)
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def _files(folder: Path) -> list[Path]:
    single = folder / "model.safetensors"
    if single.exists():
        return [single]
    indices = sorted(folder.glob("*.safetensors.index.json"))
    if len(indices) == 1:
        return _shards(indices[0])
    files = sorted(folder.glob("*.safetensors"))
    if not indices and len(files) == 1:
        return files
    if indices or files:
        raise ExportError(
            f"{folder} holds several checkpoints: {', '.join(p.name for p in indices or files)}",
            code="invalid-input",
            hint="keep one of them in the folder",
        )
    single, index = folder / "pytorch_model.bin", folder / "pytorch_model.bin.index.json"
    if single.exists():
        return [single]
    if index.exists():
        return _shards(index)
    ggufs = sorted(folder.glob("*.gguf"))
    if len(ggufs) == 1:
        return ggufs
    if ggufs:
        raise ExportError(
            f"{folder} holds several GGUF files: {', '.join(p.name for p in ggufs)}",
            code="invalid-input",
            hint="keep one of them in the folder; files in several parts are not read",
        )
    raise ExportError(
        f"there is no checkpoint in {folder}",
        code="not-found",
        hint="give a folder with model.safetensors or pytorch_model.bin, or with shards and their index",
    )


def _shards(index: Path) -> list[Path]:
    try:
        shards = sorted(set(json.loads(index.read_text())["weight_map"].values()))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise _corrupt(index, f"not an index of shards ({error})") from error
    for shard in shards:
        if not isinstance(shard, str) or Path(shard).is_absolute() or ".." in Path(shard).parts:
            raise _corrupt(index, f"{shard!r} is not a file of this folder")
    return [index.parent / shard for shard in shards]


def _read_header(path: Path) -> Iterator[HeaderTensor]:
    if path.suffix == ".bin":
        for name, dtype, shape in read_torch_file(path):
            yield HeaderTensor(name, dtype, shape)
        return
    if path.suffix == ".gguf":
        for tensor in read_gguf(path).tensors:
            yield HeaderTensor(tensor.name, tensor.dtype, tensor.shape, tensor.kind.encode() if tensor.is_blocks else None)
        return
    settings: dict[str, bytes] = {}
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            if length > _MAX_HEADER:
                raise _corrupt(path, f"a header of {length} bytes")
            header = json.loads(file.read(length))
            settings = dict(_read_settings(file, header, 8 + length))
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}", code="io", hint="check the path") from error
    except ValueError as error:
        raise _corrupt(path, f"the header is not JSON ({error})") from error
    for name, fields in header.items():
        if name == "__metadata__":
            continue
        try:
            dtype, shape = fields["dtype"], tuple(int(dim) for dim in fields["shape"])
        except (KeyError, TypeError, ValueError) as error:
            raise _corrupt(path, f"tensor {name!r} has no dtype or shape") from error
        if dtype not in _BY_SAFETENSORS_NAME:
            raise ExportError(f"{path}: tensor {name!r} has dtype {dtype}", code="unsupported-feature")
        yield HeaderTensor(name, _BY_SAFETENSORS_NAME[dtype], shape, settings.get(name))


def _read_settings(file: BinaryIO, header: dict[str, Any], start: int) -> Iterator[tuple[str, bytes]]:
    for name, fields in header.items():
        if not isinstance(fields, dict) or fields.get("dtype") != "U8" or len(fields.get("data_offsets", ())) != 2:
            continue
        begin, end = map(int, fields["data_offsets"])
        if 0 <= begin <= end and is_setting(name, torch.uint8, end - begin):
            file.seek(start + begin)
            yield name, file.read(end - begin)


def _corrupt(path: Path, what: str) -> ExportError:
    return ExportError(f"{path}: {what}", code="corrupt-file", hint="download the file again")
