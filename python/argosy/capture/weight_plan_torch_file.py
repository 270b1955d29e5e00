"""What a file of ``torch.save`` (``pytorch_model.bin``) holds: names, dtypes and shapes of a state dict.

Its pickle is read as data, op by op, and never given to Python's unpickler: only what state dicts consist of is known here, and
whatever else a pickle asks for is refused by name. ``src/io/torch_pickle.cpp`` does the same, and looks at the bytes of storages.
"""

from __future__ import annotations

import pickletools
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError

#: More than any state dict needs; pickles are read whole.
_MAX_PICKLE = 64 << 20
_MAX_OBJECTS = 1 << 22

_STORAGES = {
    "FloatStorage": torch.float32,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "DoubleStorage": torch.float64,
    "ByteStorage": torch.uint8,
    "CharStorage": torch.int8,
    "ShortStorage": torch.int16,
    "IntStorage": torch.int32,
    "LongStorage": torch.int64,
    "BoolStorage": torch.bool,
    "ComplexFloatStorage": torch.complex64,
}
#: Tensors of these lie in storages of bytes.
_LATER_DTYPES = ("uint16", "uint32", "uint64", "float8_e4m3fn", "float8_e5m2", "float8_e8m0fnu")


@dataclass(frozen=True)
class _Global:
    module: str
    name: str


@dataclass(frozen=True)
class _Storage:
    dtype: torch.dtype | None  # none: bytes


@dataclass(frozen=True)
class _Tensor:
    dtype: torch.dtype
    shape: tuple[int, ...]


class _Mark:
    pass


@dataclass
class _Pairs:
    """A dict, of which no key is looked up here."""

    items: list[tuple[Any, Any]] = field(default_factory=list)


_ORDERED_DICT = _Global("collections", "OrderedDict")
_TENSOR = _Global("torch._utils", "_rebuild_tensor_v2")
_TENSOR_OF_DTYPE = _Global("torch._utils", "_rebuild_tensor_v3")
_PARAMETER = _Global("torch._utils", "_rebuild_parameter")
_PARAMETER_WITH_STATE = _Global("torch._utils", "_rebuild_parameter_with_state")
_BYTES = _Global("torch.storage", "UntypedStorage")
_KNOWN = {
    _ORDERED_DICT, _TENSOR, _TENSOR_OF_DTYPE, _PARAMETER, _PARAMETER_WITH_STATE, _BYTES,
    *(_Global("torch", name) for name in (*_STORAGES, *_LATER_DTYPES)),
}  # fmt: skip


def read_torch_file(path: Path) -> Iterator[tuple[str, torch.dtype, tuple[int, ...]]]:
    """Name, dtype and shape of each tensor."""
    seen: set[str] = set()
    root = _Machine(path).run(_pickle_of(path))
    if not isinstance(root, _Pairs):
        raise _refused(path, f"it holds {_kind(root)} where a dict of tensors is expected")
    for name, value in root.items:
        if not isinstance(name, str):
            raise _refused(path, f"a key of its dict is {_kind(name)}")
        if not isinstance(value, _Tensor):
            raise _refused(path, f"{name!r} is {_kind(value)} where a tensor is expected")
        if name in seen:
            raise _corrupt(path, f"it has tensor {name!r} twice")
        seen.add(name)
        yield name, value.dtype, value.shape


def _pickle_of(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            start = file.read(2)
        if start[:1] == b"\x80":
            raise ExportError(
                f"{path} has the format that PyTorch wrote before version 1.6, which is not read",
                code="unsupported-feature",
                hint="load it with torch.load(…, weights_only=True) and write it again with torch.save",
            )
        with zipfile.ZipFile(path) as archive:
            names = [info for info in archive.infolist() if info.filename.count("/") == 1 and info.filename.endswith("/data.pkl")]
            if len(names) != 1 or names[0].compress_type != zipfile.ZIP_STORED or names[0].file_size > _MAX_PICKLE:
                raise _corrupt(path, "it has no data.pkl, or one that is not read")
            return archive.read(names[0])
    except OSError as error:
        raise ExportError(f"cannot read {path}: {error.strerror}", code="io", hint="check the path") from error
    # What zipfile says to archives that are damaged, of an unknown kind, encrypted, or cut off.
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError) as error:
        raise _corrupt(path, str(error)) from error


class _Machine:
    """A stack and numbered objects, as for any pickle; but what it makes is the classes above."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._objects = 0

    def run(self, pickle: bytes) -> Any:
        try:
            for op, argument, position in pickletools.genops(pickle):
                if op.name == "STOP":
                    return self._stack.pop()
                self._run(op.name, argument, position)
                self._objects += 1
                if self._objects > 16 * _MAX_OBJECTS or len(self._stack) > _MAX_OBJECTS:
                    raise _corrupt(self._path, "it holds more objects than a state dict has")
        except (ValueError, IndexError, KeyError, TypeError, OverflowError) as error:
            raise _corrupt(self._path, f"its pickle contradicts itself ({error})") from error
        raise _corrupt(self._path, "its pickle ends early")

    def _run(self, op: str, argument: Any, position: int | None) -> None:
        stack = self._stack
        if op in ("PROTO", "FRAME"):
            return
        if op in ("BININT", "BININT1", "BININT2", "LONG1", "BINUNICODE", "SHORT_BINUNICODE", "BINFLOAT"):
            stack.append(argument)
        elif op in _CONSTANTS:
            stack.append(_CONSTANTS[op]())
        elif op in ("TUPLE1", "TUPLE2", "TUPLE3"):
            stack.append(tuple(self._last(int(op[-1]))))
        elif op == "TUPLE":
            stack.append(tuple(self._to_mark()))
        elif op in ("APPEND", "APPENDS"):
            values = self._last(1) if op == "APPEND" else self._to_mark()
            self._top(list).extend(values)
        elif op in ("SETITEM", "SETITEMS"):
            values = self._last(2) if op == "SETITEM" else self._to_mark()
            self._top(_Pairs).items.extend(zip(values[::2], values[1::2], strict=True))
        elif op in ("BINPUT", "LONG_BINPUT", "MEMOIZE"):
            self._memo[len(self._memo) if op == "MEMOIZE" else argument] = stack[-1]
        elif op in ("BINGET", "LONG_BINGET"):
            stack.append(self._memo[argument])
        elif op == "GLOBAL":
            stack.append(self._global(*argument.split(" ", 1)))
        elif op == "STACK_GLOBAL":
            stack.append(self._global(*self._last(2)))
        elif op == "BINPERSID":
            stack.append(self._storage(*self._last(1)))
        elif op == "REDUCE":
            stack.append(self._call(*self._last(2)))
        elif op == "BUILD":  # attributes of a dict, such as the versions of modules: no weights among them
            self._last(1)
            self._top(_Pairs)
        else:
            raise _refused(self._path, f"byte {position} of its pickle is the op {op}, which no state dict needs")

    def _last(self, count: int) -> list[Any]:
        if len(self._stack) < count or any(isinstance(value, _Mark) for value in self._stack[-count:]):
            raise ValueError("it takes what it has not made")
        taken = self._stack[-count:]
        del self._stack[-count:]
        return taken

    def _to_mark(self) -> list[Any]:
        at = len(self._stack) - 1
        while not isinstance(self._stack[at], _Mark):
            at -= 1
            if at < 0:
                raise ValueError("it takes what it has not made")
        taken = self._stack[at + 1 :]
        del self._stack[at:]
        return taken

    def _top(self, kind: type) -> Any:
        if not self._stack or not isinstance(self._stack[-1], kind):
            raise ValueError("it fills what is no container")
        return self._stack[-1]

    def _global(self, module: Any, name: Any) -> _Global:
        found = _Global(str(module), str(name))
        if found not in _KNOWN:
            raise _refused(self._path, f"it asks for '{module}.{name}', which no state dict of plain tensors needs")
        return found

    def _storage(self, parts: Any) -> _Storage:
        if not isinstance(parts, tuple) or len(parts) != 5 or parts[0] != "storage" or not isinstance(parts[1], _Global):
            raise ValueError("it refers to something outside that is no storage")
        return _Storage(None if parts[1] == _BYTES else _STORAGES[parts[1].name])

    def _call(self, function: Any, arguments: Any) -> Any:
        if isinstance(arguments, tuple) and function == _ORDERED_DICT and not arguments:
            return _Pairs()
        is_parameter = function in (_PARAMETER, _PARAMETER_WITH_STATE)  # a state has attributes, of which none is a weight
        if isinstance(arguments, tuple) and is_parameter and isinstance(arguments[0], _Tensor):
            return arguments[0]
        if isinstance(arguments, tuple) and function in (_TENSOR, _TENSOR_OF_DTYPE) and isinstance(arguments[0], _Storage):
            dtype, shape = arguments[0].dtype, arguments[2]
            if function == _TENSOR_OF_DTYPE:
                dtype = getattr(torch, arguments[6].name) if arguments[6].name in _LATER_DTYPES else None
            if dtype is not None and isinstance(shape, tuple) and all(type(dim) is int and dim >= 0 for dim in shape):
                return _Tensor(dtype, shape)
        raise ValueError("a call has other arguments than torch.save writes")


_CONSTANTS: dict[str, Any] = {
    "MARK": _Mark,
    "NONE": lambda: None,
    "NEWTRUE": lambda: True,
    "NEWFALSE": lambda: False,
    "EMPTY_TUPLE": tuple,
    "EMPTY_LIST": list,
    "EMPTY_DICT": _Pairs,
}


def _kind(value: Any) -> str:
    return "a dict" if isinstance(value, _Pairs) else f"a {type(value).__name__.strip('_').lower()}"


def _corrupt(path: Path, why: str) -> ExportError:
    return ExportError(f"{path} is not a usable file of torch.save: {why}", code="corrupt-file", hint="download the file again")


def _refused(path: Path, why: str) -> ExportError:
    return ExportError(
        f"{path} is not read: {why}",
        code="unsupported-feature",
        hint="if you trust where it comes from, load it with PyTorch and save its tensors with safetensors",
    )
