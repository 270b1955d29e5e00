"""Files of a model's inputs, ``.safetensors`` or ``.npz``: tensors by the names of parameters of ``forward``. They come from users, so
nothing in them is trusted: no pickles, no sizes beyond the file's own."""

from __future__ import annotations

import math
import zipfile
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError

#: Bytes of one file, and tensors in it.
MAX_BYTES = 1 << 30
MAX_TENSORS = 1 << 10
_MAX_DIMS = 16
DTYPES = (torch.float64, torch.float32, torch.float16, torch.bfloat16, torch.int64, torch.int32, torch.int8, torch.uint8,
          torch.bool)  # fmt: skip
_WAYS = "write it by safetensors.torch.save_file or numpy.savez"


def read_inputs(file: Path) -> dict[str, torch.Tensor]:
    """The tensors of one file, which has at least one."""
    readers = {".safetensors": _read_safetensors, ".npz": _read_npz}
    reader = readers.get(file.suffix)
    if reader is None:
        raise ExportError(f"inputs are read from .safetensors and .npz, {file} is neither", code="invalid-input", hint=_WAYS)
    if not file.is_file():
        raise ExportError(f"{file} is no file", code="not-found", hint="give a file of sample inputs")
    if file.stat().st_size > MAX_BYTES:
        raise _bad(file, f"it has more than {MAX_BYTES >> 20} MB", "give smaller samples: their values do not matter")
    try:
        tensors = reader(file)
    except ExportError:
        raise
    except Exception as error:  # noqa: BLE001 - the libraries that read files have errors of their own
        raise _bad(file, str(error).splitlines()[0] if str(error) else type(error).__name__) from error
    if not 0 < len(tensors) <= MAX_TENSORS:
        raise _bad(file, f"it has {len(tensors)} tensors", f"give 1 to {MAX_TENSORS}")
    for name, tensor in tensors.items():
        if tensor.dtype not in DTYPES:
            raise _bad(file, f"{name} is {_short(tensor.dtype)}", f"give one of {', '.join(map(_short, DTYPES))}")
        if tensor.dim() > _MAX_DIMS or not tensor.numel():
            raise _bad(file, f"{name} has the shape {list(tensor.shape)}", f"give up to {_MAX_DIMS} dims, none of them empty")
    return tensors


def _bad(file: Path, why: str, hint: str = _WAYS) -> ExportError:
    return ExportError(f"{file} cannot be read as inputs: {why}", code="corrupt-file", hint=hint)


def _short(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _read_safetensors(file: Path) -> dict[str, torch.Tensor]:
    from safetensors.torch import load_file

    return load_file(str(file))


def _read_npz(file: Path) -> dict[str, torch.Tensor]:
    """Headers are compared with the sizes of entries before there is memory for what they promise."""
    found: dict[str, torch.Tensor] = {}
    with zipfile.ZipFile(file) as archive:
        entries = archive.infolist()
        if len(entries) > MAX_TENSORS or sum(entry.file_size for entry in entries) > MAX_BYTES:
            raise _bad(file, "it is too large once unpacked", "give smaller samples: their values do not matter")
        for entry in entries:
            name = entry.filename.removesuffix(".npy")
            if name == entry.filename or name in found:
                raise _bad(file, f"its entry {entry.filename!r} is {'there twice' if name in found else 'no array'}")
            found[name] = _read_array(archive, entry)
    return found


def _read_array(archive: zipfile.ZipFile, entry: zipfile.ZipInfo) -> torch.Tensor:
    import numpy as np

    headers: dict[tuple[int, int], Any] = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    with archive.open(entry) as stream:
        version = np.lib.format.read_magic(stream)
        if version not in headers:
            raise ValueError(f"{entry.filename} is of version {version}")
        shape, by_columns, dtype = headers[version](stream)
        if dtype.hasobject or dtype.names is not None or dtype.kind not in "fiub":
            raise ValueError(f"{entry.filename} has the dtype {dtype}, which is no number's")
        data = stream.read(MAX_BYTES)
    count = math.prod(shape)
    if min(shape, default=0) < 0 or count * dtype.itemsize != len(data):
        raise ValueError(f"{entry.filename} has {len(data)} bytes, its header says {count * dtype.itemsize}")
    array = np.frombuffer(data, dtype).reshape(shape, order="F" if by_columns else "C")
    return torch.from_numpy(np.array(array, dtype=dtype.newbyteorder("="), order="C"))
