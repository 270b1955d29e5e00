"""Rows of the op tests: an op, what it is called with, and at which sizes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

#: Sizes of dims that vary, by letter: as traced, at another shape, and at the edge.
SIZES = {"b": (3, 5, 1), "s": (4, 7, 1), "t": (6, 2, 1), "n": (5, 8, 1), "z": (3, 0, 1), "m": (4, 6, 2)}
SHAPES = ("traced", "other", "edge")

#: Numbers that kernels like to get wrong.
SPECIAL = (0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3.0, -7.0, 1e-4, 88.0, -88.0, float("inf"), float("-inf"), float("nan"))


@dataclass(frozen=True)
class T:
    """A tensor that a row is called with. `dims` are numbers or letters of SIZES; `values` says which numbers it has."""

    dtype: torch.dtype
    dims: tuple[int | str, ...]
    values: str | Callable[..., torch.Tensor] = "normal"

    def sizes(self, shape: int) -> list[int]:
        return [SIZES[dim][shape] if isinstance(dim, str) else dim for dim in self.dims]

    def dynamic(self) -> dict[int, Any] | None:
        axes = {axis: torch.export.Dim.DYNAMIC for axis, dim in enumerate(self.dims) if isinstance(dim, str)}
        return axes or None

    def make(self, shape: int, generator: torch.Generator) -> torch.Tensor:
        sizes = self.sizes(shape)
        if callable(self.values):
            return self.values(sizes, generator).to(self.dtype)
        if self.dtype == torch.bool:
            return torch.randint(0, 2, sizes, generator=generator).bool()
        if self.dtype.is_complex:
            return torch.complex(torch.randn(sizes, generator=generator), torch.randn(sizes, generator=generator))
        if self.dtype.is_floating_point:
            return _floats(self.values, sizes, generator).to(self.dtype)
        return _integers(self.values, sizes, generator, self.dtype)


def _floats(values: str, sizes: list[int], generator: torch.Generator) -> torch.Tensor:
    normal = torch.randn(sizes, generator=generator)
    if values == "normal":
        return normal * 2
    if values == "small":
        return normal * 0.3
    if values == "positive":
        return normal.abs() + 0.1
    if values == "unit":
        return normal.tanh() * 0.95
    if values == "probability":
        return torch.rand(sizes, generator=generator)
    if values == "whole":
        return (normal * 4).round()
    if values == "nonzero":
        return torch.where(normal.abs() < 0.2, torch.full_like(normal, 1.5), normal)
    if values == "distinct":
        return torch.randperm(normal.numel(), generator=generator).reshape(sizes).float() - normal.numel() // 2
    if values == "special":
        flat = torch.tensor([SPECIAL[i % len(SPECIAL)] for i in range(normal.numel())])
        return flat.reshape(sizes)
    if values == "zeros":
        return torch.zeros(sizes)
    raise KeyError(values)


def _integers(values: str, sizes: list[int], generator: torch.Generator, dtype: torch.dtype) -> torch.Tensor:
    low = 0 if dtype == torch.uint8 else -7
    made = torch.randint(low, 8, sizes, generator=generator)
    if values in ("normal", "small"):
        return made.to(dtype)
    if values == "positive":
        return (made.abs() + 1).to(dtype)
    if values == "nonzero":
        return torch.where(made == 0, torch.full_like(made, 3), made).to(dtype)
    if values == "distinct":
        return torch.randperm(made.numel(), generator=generator).reshape(sizes).to(dtype)
    if values == "ones":
        return torch.ones(sizes, dtype=dtype)
    raise KeyError(values)


def below(limit: int, *, negative: bool = False) -> Callable[..., torch.Tensor]:
    """Indices into a dim of a fixed size."""

    def make(sizes: list[int], generator: torch.Generator) -> torch.Tensor:
        return torch.randint(-limit if negative else 0, limit, sizes, generator=generator)

    return make


def exactly(*values: Any) -> Callable[..., torch.Tensor]:
    """These numbers, over and over."""

    def make(sizes: list[int], generator: torch.Generator) -> torch.Tensor:
        count = torch.Size(sizes).numel()
        return torch.tensor([values[i % len(values)] for i in range(count)]).reshape(sizes)

    return make


def f32(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.float32, dims, v)


def f16(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.float16, dims, v)


def f64(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.float64, dims, v)


def i64(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.int64, dims, v)


def i32(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.int32, dims, v)


def u8(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.uint8, dims, v)


def i8(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.int8, dims, v)


def b8(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.bool, dims, v)


def c64(*dims: int | str, v: Any = "normal") -> T:
    return T(torch.complex64, dims, v)


@dataclass(frozen=True)
class Case:
    """One row. `function` gets the tensors of `inputs` in order."""

    family: str
    op: str
    function: Callable[..., Any]
    inputs: tuple[T, ...]
    name: str
    #: further ops that the exported graph must have
    also: tuple[str, ...] = ()
    #: largest difference, of the output's scale
    tolerance: float | None = None
    #: only the dtype and shape of outputs are compared: they are random or not set
    only_shapes: bool = False
    #: a module with weights, made when the row is run, in place of the function
    module: Callable[[], torch.nn.Module] | None = None
    #: changes the exported program, as exporters do
    after: Callable[[torch.export.ExportedProgram], None] | None = None

    @property
    def id(self) -> str:
        return f"{self.family}-{self.name}"

    def make_inputs(self, shape: int) -> list[torch.Tensor]:
        generator = torch.Generator().manual_seed(zlib.crc32(self.id.encode()) + shape)
        return [each.make(shape, generator) for each in self.inputs]

    @property
    def shapes(self) -> range:
        """Of SHAPES, those that differ."""
        return range(len(SHAPES)) if any(each.dynamic() for each in self.inputs) else range(1)


class Rows:
    """The rows of one family, in order. Names are made unique by what a row is called with."""

    def __init__(self, family: str) -> None:
        self.family = family
        self.cases: list[Case] = []

    def op(self, op: str, *args: Any, label: str = "", also: tuple[str, ...] = (), tolerance: float | None = None,
           only_shapes: bool = False, **kwargs: Any) -> None:  # fmt: skip
        """A call of the op itself; tensors may also be in lists, or given by name."""
        inputs: list[T] = []

        def place(value: Any) -> Callable[[tuple], Any]:
            if isinstance(value, T):
                index = len(inputs)
                inputs.append(value)
                return lambda given: given[index]
            if isinstance(value, list):
                parts = [place(part) for part in value]
                return lambda given: [part(given) for part in parts]
            return lambda given: value

        places = [place(value) for value in args]
        named = {key: place(value) for key, value in kwargs.items()}

        def function(*given: torch.Tensor) -> Any:
            return overload(op)(*(each(given) for each in places), **{k: each(given) for k, each in named.items()})

        text = label or ",".join(_text(value) for value in args) + "".join(f",{k}={_text(v)}" for k, v in kwargs.items())
        self._add(Case(self.family, op, function, tuple(inputs), self._name(op, text), also, tolerance, only_shapes))

    def fn(self, op: str, label: str, function: Callable[..., Any], *inputs: T, also: tuple[str, ...] = (),
           tolerance: float | None = None, only_shapes: bool = False,
           after: Callable[[torch.export.ExportedProgram], None] | None = None) -> None:  # fmt: skip
        """A function around the op."""
        name = self._name(op, label)
        self._add(Case(self.family, op, function, inputs, name, also, tolerance, only_shapes, after=after))

    def module(self, op: str, label: str, make: Callable[[], torch.nn.Module], *inputs: T,
               tolerance: float | None = None) -> None:  # fmt: skip
        """A module with weights that calls the op."""
        case = Case(self.family, op, lambda: None, inputs, self._name(op, label), tolerance=tolerance, module=make)
        self._add(case)

    def _name(self, op: str, text: str) -> str:
        return f"{op.removeprefix('aten.')}({text})" if text else op.removeprefix("aten.")

    def _add(self, case: Case) -> None:
        assert all(case.name != other.name for other in self.cases), f"two rows {case.name}"
        self.cases.append(case)


_SHORT = {
    torch.float32: "f32", torch.float16: "f16", torch.float64: "f64", torch.int64: "i64", torch.int32: "i32",
    torch.uint8: "u8", torch.int8: "i8", torch.bool: "bool", torch.complex64: "c64",
}  # fmt: skip


def _text(value: Any) -> str:
    if isinstance(value, T):
        kind = value.values if isinstance(value.values, str) and value.values != "normal" else ""
        return f"{_SHORT[value.dtype]}[{'x'.join(map(str, value.dims))}]{kind}"
    if isinstance(value, list):
        return f"({' '.join(_text(part) for part in value)})"
    return str(value).removeprefix("torch.")


def overload(name: str) -> Any:
    """``aten.add.Tensor`` as torch has it."""
    found = torch.ops
    for part in name.split("."):
        found = getattr(found, part)
    return found
