"""Tells whether two .pt2 archives hold the same program: same results, bit by bit, on the same inputs.

A worker of worker_pool.py. A request is {"original", "written", "inputs"}, three paths; the answer says what was
compared, or "error" with the first difference.
"""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import torch
import transformers
from archive import read_program
from models.pytrees import register_containers_of
from torch.utils._pytree import tree_flatten, tree_unflatten
from worker_pool import serve


class Difference(Exception):
    pass


class LoadedArchive:
    def __init__(self, path: Path) -> None:
        register_containers_of(path)
        self.json = read_program(path)
        self.program = torch.export.load(path)
        self.module = self.program.module()

    def run(self, flat_inputs: list) -> tuple[Any, dict[str, Any]]:
        """The structure of the output, and by name everything that a call gives or changes."""
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in flat_inputs]
        args, kwargs = tree_unflatten(list(given), self.program.call_spec.in_spec)
        torch.manual_seed(0)
        with torch.no_grad():
            leaves, structure = tree_flatten(self.module(*args, **kwargs))
        values = {f"output {i}": value for i, value in enumerate(leaves)}
        values.update({f"input {i} after the call": value for i, value in enumerate(given)})
        values.update({f"buffer {name} after the call": value for name, value in self.module.named_buffers()})
        return structure, values


def check_same_value(what: str, a: Any, b: Any) -> None:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        if type(a) is not type(b) or a != b:
            raise Difference(f"{what}: {a!r} became {b!r}")
        return
    if (a.dtype, a.shape) != (b.dtype, b.shape):
        raise Difference(f"{what}: {a.dtype} {list(a.shape)} became {b.dtype} {list(b.shape)}")
    # As bytes: NaN equals itself, and 0.0 differs from -0.0.
    bytes_a, bytes_b = (t.detach().contiguous().reshape(-1).view(torch.uint8) for t in (a, b))
    if not torch.equal(bytes_a, bytes_b):
        different = int((bytes_a != bytes_b).sum())
        raise Difference(f"{what}: {different} of {bytes_a.numel()} bytes differ ({a.dtype} {list(a.shape)})")


def check_same_values(where: str, a: dict[str, Any], b: dict[str, Any]) -> None:
    if list(a) != list(b):
        raise Difference(f"{where}: values {sorted(set(a) ^ set(b)) or 'in another order'}")
    for name in a:
        check_same_value(f"{where}, {name}", a[name], b[name])


def bounded_ranges(program: dict) -> dict:
    """The ranges of symbols; a bound beyond 64 bits, which torch writes for products of unbounded sizes, bounds nothing."""
    return {
        symbol: {key: bound if bound is None or abs(bound) < 2**63 else None for key, bound in bounds.items()}
        for symbol, bounds in program["range_constraints"].items()
    }


def compare(original: Path, written: Path, inputs: Path) -> dict:
    first, second = LoadedArchive(original), LoadedArchive(written)
    if first.json["guards_code"] != second.json["guards_code"]:
        raise Difference(f"guards_code: {first.json['guards_code']} became {second.json['guards_code']}")
    ranges, written_ranges = bounded_ranges(first.json), bounded_ranges(second.json)
    if ranges != written_ranges:
        raise Difference(f"range_constraints: {ranges} became {written_ranges}")
    # Tied weights may be stored in another order.
    check_same_values("weights", dict(sorted(first.program.state_dict.items())), dict(sorted(second.program.state_dict.items())))
    values = 0
    for which, flat_inputs in torch.load(inputs).items():
        structure_a, values_a = first.run(flat_inputs)
        structure_b, values_b = second.run(flat_inputs)
        if structure_a != structure_b:
            raise Difference(f"{which} inputs: output {structure_a} became {structure_b}")
        check_same_values(f"{which} inputs", values_a, values_b)
        values += len(values_a)
    return {"values": values}


def handle(request: dict[str, str]) -> dict:
    try:
        return compare(Path(request["original"]), Path(request["written"]), Path(request["inputs"]))
    except Difference as difference:
        return {"error": str(difference)}


if __name__ == "__main__":
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    transformers.logging.set_verbosity_error()
    serve(handle)
