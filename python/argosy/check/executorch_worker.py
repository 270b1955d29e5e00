"""Opens programs of ExecuTorch in its runtime. Part of the worker's process: imports nothing of this package."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import io
import json
import os
import struct
import sys
import tempfile
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO

#: Under which a program has its manifest among its data.
MANIFEST = "argosy.json"
#: Dtypes of manifests, as torch calls them.
_FLOATS = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16"}
#: What registers kernels that the runtime lacks by itself, by how their names begin: libraries, by where the package has them.
_LIBRARIES = {
    "llama::": "extension/llm/custom_ops/*custom_ops_aot_lib.*",
    "quantized_decomposed::": "kernels/quantized/*quantized_ops_aot_lib.*",
}


# ---- what a file says of itself ----


class _Table:
    """A table of a flatbuffer. Fields are numbered as in the schema."""

    def __init__(self, data: bytes, at: int) -> None:
        self.data, self.at = data, at
        self.layout = at - struct.unpack_from("<i", data, at)[0]
        self.layout_bytes = struct.unpack_from("<H", data, self.layout)[0]

    def _field(self, number: int) -> int:
        """Where a field is; 0: it is not there."""
        entry = 4 + 2 * number
        offset = struct.unpack_from("<H", self.data, self.layout + entry)[0] if entry < self.layout_bytes else 0
        return self.at + offset if offset else 0

    def number(self, field: int, code: str) -> int:
        at = self._field(field)
        return struct.unpack_from(code, self.data, at)[0] if at else 0

    def _target(self, at: int) -> int:
        return at + struct.unpack_from("<I", self.data, at)[0]

    def text(self, field: int) -> str:
        at = self._field(field)
        if not at:
            return ""
        at = self._target(at)
        size = struct.unpack_from("<I", self.data, at)[0]
        return self.data[at + 4 : at + 4 + size].decode("utf-8", "replace")

    def tables(self, field: int) -> list[_Table]:
        at = self._field(field)
        if not at:
            return []
        at = self._target(at)
        count = struct.unpack_from("<I", self.data, at)[0]
        if count > len(self.data):
            raise ValueError("a list is longer than the file")
        return [_Table(self.data, self._target(at + 4 + 4 * i)) for i in range(count)]


#: By a file's identifier: what its second header begins with, the numbers of that (eight bytes each, from the ninth on) that
#: say how much of the file describes the rest and where the rest begins, and the fields of the root that list the pieces and
#: their names. Programs (.pte), and data beside them (.ptd).
_KINDS = {b"ET12": (b"eh00", (0,), 1, 4, 7), b"FT01": (b"FH01", (0, 1), 2, 1, 2)}


def _root(file: BinaryIO) -> tuple[_Table, tuple[Any, ...], tuple[int, ...]]:
    """What describes a file, its kind and the numbers of its header. Raises ``ValueError`` for a file that is none."""
    head = file.read(48)
    kind = _KINDS.get(head[4:8])
    if kind is None or len(head) < 48 or head[8:12] != kind[0]:
        raise ValueError("it is no program of ExecuTorch")
    numbers = struct.unpack_from("<4Q", head, 16)
    file.seek(0)
    data = file.read(sum(numbers[i] for i in kind[1]))
    return _Table(data, struct.unpack_from("<I", data, 0)[0]), kind, numbers


def named_data(path: str | Path, key: str) -> bytes | None:
    """The bytes that a file has under that name; None: it has none."""
    with open(path, "rb") as file:
        try:
            root, (_, _, start, segments_field, names_field), numbers = _root(file)
            segments = root.tables(segments_field)
            for each in root.tables(names_field):
                if each.text(0) == key:
                    segment = segments[each.number(1, "<I")]
                    file.seek(numbers[start] + segment.number(0, "<Q"))
                    return file.read(segment.number(1, "<Q"))
        except (struct.error, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error
    return None


#: Of ``Program``, ``ExecutionPlan`` and ``Operator``.
_METHODS, _OPERATORS, _NAME = 1, 6, 0


def kernels(path: str | Path) -> set[str]:
    """The names of all kernels that a program calls, without their overloads: ``llama::custom_sdpa``."""
    with open(path, "rb") as file:
        try:
            root, _, _ = _root(file)
            return {each.text(_NAME) for method in root.tables(_METHODS) for each in method.tables(_OPERATORS)}
        except (struct.error, IndexError) as error:
            raise ValueError(f"{path} is damaged: {error}") from error


def read_manifest(path: str) -> dict[str, Any]:
    """What a program says of itself, or the data beside it. Dims have the bounds that memory is reserved for."""
    for file in (Path(path), Path(path).with_suffix(".ptd")):
        text = named_data(file, MANIFEST) if file.exists() else None
        if text is not None:
            return _bounded(json.loads(text))
    raise ValueError(f"{path} does not say what it is: argosy export executorch did not write it")


def _bounded(manifest: dict[str, Any]) -> dict[str, Any]:
    for component in manifest["components"]:
        graph = _graph_of(manifest, component["name"])
        largest = dict(zip(graph.get("inputs", ()), graph.get("largest", ()), strict=False))
        dims = component.setdefault("dims", {})
        for item in component["inputs"]:
            for dim, bound in zip(item["dims"], largest.get(item["name"], ()), strict=False):
                if isinstance(dim, str):
                    limits = dims.setdefault(dim, {"min": None, "max": None})
                    limits["max"] = bound if limits.get("max") is None else min(limits["max"], bound)
    return manifest


def _graph_of(manifest: Mapping[str, Any], component: str) -> dict[str, Any]:
    return next((each for each in manifest.get("graphs", ()) if each["component"] == component), {})


def has_components(manifest: Mapping[str, Any]) -> bool:
    """Whether methods take and return what components do, and keep no state: not so if they were made for a task."""
    for component in manifest["components"]:
        graph = _graph_of(manifest, component["name"])
        if graph.get("inputs") != [item["name"] for item in component["inputs"]]:
            return False
    return True


def dtype_of_executorch(path: str) -> str:
    """The dtype of most weights, as ``float32``; they are packed for kernels, so the program says it."""
    return _FLOATS.get(read_manifest(path).get("dtype", ""), "float32")


# ---- the runtime ----


def open_executorch(path: str) -> dict[str, Callable[[dict[str, Any]], dict[str, Any]]]:
    """The components that a program has methods of. Each keeps what it is called with in mind only where it has states."""
    manifest = read_manifest(path)
    program = open_program(path)
    components = {each["name"]: each for each in manifest["components"]}
    return {each["component"]: _runner(program, each, components[each["component"]]) for each in manifest["graphs"]}


def _runner(
    program: Any, graph: Mapping[str, Any], component: Mapping[str, Any]
) -> Callable[[dict[str, Any]], dict[str, Any]]:
    call = open_method(program, graph["method"])
    dims = {item["name"]: item["dims"] for item in component["inputs"] if item["name"] in graph["inputs"]}

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        if missing := [name for name in graph["inputs"] if name not in inputs]:
            raise ValueError(f"the method also takes {', '.join(missing)}")
        check_sizes({name: inputs[name] for name in graph["inputs"]}, dims, component.get("sums", {}))
        outputs = call([inputs[name] for name in graph["inputs"]])
        return dict(zip(graph["outputs"], outputs, strict=True))

    return run


def check_sizes(
    inputs: Mapping[str, Any], dims: Mapping[str, Sequence[int | str | None]], sums: Mapping[str, Sequence[str]] | None = None
) -> None:
    """Raises ``ValueError`` for inputs that differ in a dim that they share, or where one dim is not the sum of others.
    The runtime looks at inputs one by one, and kernels that cannot go on with two of them may end the process."""
    found: dict[str, tuple[int, str]] = {}
    for name, names in dims.items():
        sizes = tuple(getattr(inputs.get(name), "shape", ()))
        if name not in inputs or not hasattr(inputs[name], "shape"):
            continue
        if len(sizes) != len(names):
            raise ValueError(f"{name} has {len(sizes)} dims, the program takes {len(names)}")
        for dim, size in zip(names, sizes, strict=True):
            if not isinstance(dim, str):
                continue
            first, owner = found.setdefault(dim, (size, name))
            if size != first:
                raise ValueError(f"{owner} and {name} differ in {dim}: {first} and {size}")
    for dim, parts in (sums or {}).items():
        if dim in found and all(part in found for part in parts):
            total = sum(found[part][0] for part in parts)
            if found[dim][0] != total:
                raise ValueError(f"{found[dim][1]} has {found[dim][0]} of {dim}, which is {' + '.join(parts)}: {total}")


def import_runtime() -> types.ModuleType:
    """``executorch.runtime``, without the exporter: the package's own import of one class brings all of it along, which
    takes seconds."""
    if "executorch.exir" not in sys.modules and (found := importlib.util.find_spec("executorch")) is not None:
        folders = [str(Path(folder) / "exir") for folder in found.submodule_search_locations or ()]
        stub = types.ModuleType("executorch.exir")
        stub.__path__ = folders  # its other modules are found
        sys.modules["executorch.exir"] = stub
        try:
            return importlib.import_module("executorch.runtime")
        finally:
            del sys.modules["executorch.exir"]
    return importlib.import_module("executorch.runtime")


def load_libraries(path: str | Path) -> None:
    """Registers the kernels that a program calls and the runtime lacks by itself."""
    import torch

    used = kernels(path)
    folders = [Path(folder) for folder in importlib.import_module("executorch").__path__]
    for start, pattern in _LIBRARIES.items():
        if any(name.startswith(start) for name in used):
            for library in sorted(file for folder in folders for file in folder.glob(pattern)):
                torch.ops.load_library(str(library))


def open_program(path: str | Path) -> Any:
    """A program, with the .ptd file beside it, if there is one."""
    runtime = import_runtime()
    load_libraries(path)
    data = Path(path).with_suffix(".ptd")
    with explained():
        return runtime.Runtime.get().load_program(
            path,
            verification=runtime.Verification.InternalConsistency,
            data_path=data if data.exists() else None,
        )


def open_method(program: Any, name: str) -> Callable[[Sequence[Any]], list[Any]]:
    """Inputs in order to outputs in order."""
    with explained():
        method = program.load_method(name)

    def call(inputs: Sequence[Any]) -> list[Any]:
        import torch

        given = [each.detach().contiguous() if isinstance(each, torch.Tensor) else each for each in inputs]
        with explained():
            # Outputs are views of the program's memory only until the next call.
            return [each.clone() if isinstance(each, torch.Tensor) else each for each in method.execute(given)]

    return call


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Adds what the runtime logs to an error: the error itself has a number only."""
    sys.stderr.flush()
    kept = os.dup(2)
    # It logs through Python's stderr where it can.
    with tempfile.TemporaryFile() as log, contextlib.redirect_stderr(io.StringIO()) as told:
        os.dup2(log.fileno(), 2)
        try:
            yield
        except RuntimeError as error:
            log.seek(0)
            text = log.read().decode("utf-8", "replace") + told.getvalue()
            lines = [_plain(line) for line in text.splitlines()]
            said = [line for line in lines if line and "cpuinfo" not in line and "with type id" not in line]
            raise RuntimeError(f"{error}: {'; '.join(said[-2:])}" if said else str(error)) from error
        finally:
            os.dup2(kept, 2)
            os.close(kept)


def _plain(line: str) -> str:
    """``[method.cpp:12] text`` without where it was said."""
    return line.split("] ", 1)[-1].strip() if line.startswith("[") else line.strip()
