"""Recipes of weights, and the tensors that write them.

A ``RecipeTensor`` has a dtype and a shape but no data; each operation on it gives another one that remembers how it was
made. So transformers' own loading code, run on such tensors, writes down what it does to a checkpoint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch

from ..errors import ExportError
from .weight_plan_headers import dtype_text

aten = torch.ops.aten


@dataclass(frozen=True, eq=False)
class Recipe:
    """How a tensor is made: a tensor of the checkpoint (``op`` is ``"source"``), or a step on other recipes."""

    op: str
    inputs: tuple[Recipe, ...]
    parameters: dict[str, Any]
    dtype: torch.dtype
    shape: tuple[int, ...]


def source(name: str, dtype: torch.dtype, shape: Sequence[int]) -> RecipeTensor:
    """The tensor of that name in the checkpoint."""
    return RecipeTensor(Recipe("source", (), {"name": name}, dtype, tuple(shape)))


class RecipeTensor(torch.Tensor):
    """A tensor without data that knows its recipe. Pretends to be on the CPU, where loaders put what they load."""

    recipe: Recipe

    @staticmethod
    def __new__(cls, recipe: Recipe) -> RecipeTensor:
        tensor = torch.Tensor._make_wrapper_subclass(cls, recipe.shape, dtype=recipe.dtype, device="cpu")
        tensor.recipe = recipe
        return tensor

    def __init__(self, recipe: Recipe) -> None:
        super().__init__()

    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return f"RecipeTensor({self.recipe.op}, {self.recipe.dtype}, {self.recipe.shape})"

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Sequence[Any] = (), kwargs: Any = None) -> Any:
        handler = _HANDLERS.get(func)
        if handler is None:
            raise ExportError(
                f"a checkpoint conversion uses {func}, which weight plans cannot express",
                code="unsupported-op",
                hint="save the model with this version of transformers and plan from that checkpoint",
            )
        return handler(*args, **(kwargs or {}))


# ---- steps: what a plan can say; each leaves out what changes nothing ----


def _cast(recipe: Recipe, dtype: torch.dtype | None) -> Recipe:
    if dtype is None or dtype == recipe.dtype:
        return recipe
    if recipe.op in _COMPUTED and dtype.is_floating_point:  # it rounds once, to what is asked for
        return Recipe(recipe.op, recipe.inputs, {**recipe.parameters, "dtype": dtype_text(dtype)}, dtype, recipe.shape)
    return Recipe("cast", (recipe,), {"dtype": dtype_text(dtype)}, dtype, recipe.shape)


def _reshape(recipe: Recipe, shape: Sequence[int]) -> Recipe:
    shape = tuple(shape)
    if -1 in shape:
        known = prod(dim for dim in shape if dim != -1)
        shape = tuple(prod(recipe.shape) // known if dim == -1 else dim for dim in shape)
    while recipe.op == "reshape":
        recipe = recipe.inputs[0]
    if shape == recipe.shape:
        return recipe
    return Recipe("reshape", (recipe,), {"shape": list(shape)}, recipe.dtype, shape)


def _permute(recipe: Recipe, order: Sequence[int]) -> Recipe:
    order = [_dim(recipe, dim) for dim in order]
    if order == sorted(order):
        return recipe
    return Recipe("transpose", (recipe,), {"order": order}, recipe.dtype, tuple(recipe.shape[dim] for dim in order))


def _slice(recipe: Recipe, dim: int, start: int, length: int) -> Recipe:
    dim = _dim(recipe, dim)
    if start == 0 and length == recipe.shape[dim]:
        return recipe
    shape = (*recipe.shape[:dim], length, *recipe.shape[dim + 1 :])
    return Recipe("slice", (recipe,), {"dim": dim, "start": start, "length": length}, recipe.dtype, shape)


def _join(op: str, recipes: Sequence[Recipe], dim: int) -> Recipe:
    first = recipes[0]
    dim = dim + len(first.shape) + (op == "stack") if dim < 0 else dim
    if op == "stack":
        shape = (*first.shape[:dim], len(recipes), *first.shape[dim:])
    else:
        if len(recipes) == 1:
            return first
        total = sum(recipe.shape[dim] for recipe in recipes)
        shape = (*first.shape[:dim], total, *first.shape[dim + 1 :])
    if any(recipe.dtype != first.dtype for recipe in recipes):
        raise ExportError(f"a conversion joins tensors of several dtypes ({op})", code="unsupported-feature")
    return Recipe(op, tuple(recipes), {"dim": dim}, first.dtype, shape)


def _dim(recipe: Recipe, dim: int) -> int:
    return dim + len(recipe.shape) if dim < 0 else dim


# ---- steps that transformers' loading of floats does not take: for quantised checkpoints ----

#: Steps that compute in float32 and round the result to a dtype.
_COMPUTED = ("dequantize", "affine")
_OF_QUANTISED = (*_COMPUTED, "bitcast", "gather", "add_product")


def bitcast(tensor: RecipeTensor, dtype: torch.dtype | str, bits: int | None = None) -> RecipeTensor:
    """The same bits as another dtype; smaller elements get a dim of their own. ``dtype`` is torch's, or a plan's text for one of
    ``bits`` bits that torch has no tensors of: it is to be unpacked at once."""
    recipe = tensor.recipe
    text, kind, bits = (dtype, torch.uint8, bits or 8) if isinstance(dtype, str) else (
        dtype_text(dtype), dtype, dtype.itemsize * 8)  # fmt: skip
    parts = recipe.dtype.itemsize * 8 // bits
    shape = recipe.shape if parts == 1 else (*recipe.shape, parts)
    return RecipeTensor(Recipe("bitcast", (recipe,), {"dtype": text}, kind, shape))


def unpack(tensor: RecipeTensor, dtype: torch.dtype) -> RecipeTensor:
    """Elements of less than a byte in a byte each."""
    recipe = tensor.recipe
    return RecipeTensor(Recipe("cast", (recipe,), {"dtype": dtype_text(dtype)}, dtype, recipe.shape))


def gather(tensor: RecipeTensor, indices: RecipeTensor) -> RecipeTensor:
    """Elements of the last dim by index."""
    recipe = tensor.recipe
    shape = (*recipe.shape[:-1], indices.shape[0])
    return RecipeTensor(Recipe("gather", (recipe, indices.recipe), {}, recipe.dtype, shape))


def dequantize(
    values: RecipeTensor,
    scales: RecipeTensor,
    zeros: RecipeTensor | None = None,
    *,
    block: Sequence[int],
    dtype: torch.dtype,
    zero: int = 0,
    modulus: int = 0,
) -> RecipeTensor:
    """``(values - (zeros + zero) % modulus) * scales`` in float32, rounded once; ``block`` has how many share a scale along each
    dim."""
    inputs = tuple(tensor.recipe for tensor in (values, scales, zeros) if tensor is not None)
    parameters: dict[str, Any] = {"block": list(block), "dtype": dtype_text(dtype)}
    if zero:
        parameters["zero"] = zero
    if modulus:
        parameters["modulus"] = modulus
    return RecipeTensor(Recipe("dequantize", inputs, parameters, dtype, values.recipe.shape))


def affine(values: RecipeTensor, scale: float, offset: float, dtype: torch.dtype) -> RecipeTensor:
    """``values * scale + offset`` in float32, rounded after each of the two and once to the dtype; of float32 values."""
    parameters = {"scale": scale, "offset": offset, "dtype": dtype_text(dtype)}
    return RecipeTensor(Recipe("affine", (values.recipe,), parameters, dtype, values.recipe.shape))


def add_product(base: RecipeTensor, left: RecipeTensor, right: RecipeTensor, scale: float) -> RecipeTensor:
    """``base + scale * (left @ right)`` in float32, rounded once: a LoRA adapter merged."""
    inputs = (base.recipe, left.recipe, right.recipe)
    return RecipeTensor(Recipe("add_product", inputs, {"scale": scale}, base.recipe.dtype, base.recipe.shape))


# ---- ATen in terms of steps. Strides do not count: a recipe stands for values in row-major order. ----


def _same(x: RecipeTensor, *args: Any, **kwargs: Any) -> RecipeTensor:
    return RecipeTensor(x.recipe)


def _to_copy(x: RecipeTensor, *, dtype: torch.dtype | None = None, **kwargs: Any) -> RecipeTensor:
    return RecipeTensor(_cast(x.recipe, dtype))


def _view(x: RecipeTensor, shape: Sequence[int]) -> RecipeTensor:
    return RecipeTensor(_reshape(x.recipe, shape))


def _transpose(x: RecipeTensor, dim0: int = 0, dim1: int = 1) -> RecipeTensor:
    order = list(range(x.dim()))
    if order:
        order[dim0], order[dim1] = order[dim1], order[dim0]
    return RecipeTensor(_permute(x.recipe, order))


def _t(x: RecipeTensor) -> RecipeTensor:
    return _transpose(x, 0, 1) if x.dim() == 2 else _same(x)


def _slice_tensor(
    x: RecipeTensor, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> RecipeTensor:
    if step != 1:
        raise ExportError(f"a conversion takes every {step}th element", code="unsupported-op")
    first, last, _ = slice(start, end).indices(x.shape[dim])
    return RecipeTensor(_slice(x.recipe, dim, first, max(last - first, 0)))


def _select(x: RecipeTensor, dim: int, index: int) -> RecipeTensor:
    dim = _dim(x.recipe, dim)
    piece = _slice(x.recipe, dim, index % x.shape[dim], 1)
    return RecipeTensor(_reshape(piece, (*x.shape[:dim], *x.shape[dim + 1 :])))


def _split_with_sizes(x: RecipeTensor, sizes: Sequence[int], dim: int = 0) -> list[RecipeTensor]:
    starts = [sum(sizes[:i]) for i in range(len(sizes))]
    return [RecipeTensor(_slice(x.recipe, dim, *piece)) for piece in zip(starts, sizes, strict=True)]


def _split(x: RecipeTensor, size: int, dim: int = 0) -> list[RecipeTensor]:
    total = x.shape[dim]
    return _split_with_sizes(x, [min(size, total - start) for start in range(0, total, size)] or [0], dim)


def _unbind(x: RecipeTensor, dim: int = 0) -> list[RecipeTensor]:
    return [_select(x, dim, index) for index in range(x.shape[dim])]


def _unsqueeze(x: RecipeTensor, dim: int) -> RecipeTensor:
    dim = dim + x.dim() + 1 if dim < 0 else dim
    return _view(x, (*x.shape[:dim], 1, *x.shape[dim:]))


def _squeeze(x: RecipeTensor, dims: int | Sequence[int] | None = None) -> RecipeTensor:
    chosen = range(x.dim()) if dims is None else [dims] if isinstance(dims, int) else dims
    removed = {_dim(x.recipe, dim) for dim in chosen}
    return _view(x, [size for dim, size in enumerate(x.shape) if dim not in removed or size != 1])


def _expand(x: RecipeTensor, size: Sequence[int], **kwargs: Any) -> RecipeTensor:
    if tuple(size) != tuple(x.shape):
        raise ExportError("a conversion repeats a tensor", code="unsupported-op")
    return _same(x)


def _pad(x: RecipeTensor, pad: Sequence[int], value: float = 0) -> RecipeTensor:
    if any(pad):
        raise ExportError("a conversion pads a tensor", code="unsupported-op")
    return _same(x)


def _stack(tensors: Sequence[RecipeTensor], dim: int = 0) -> RecipeTensor:
    return RecipeTensor(_join("stack", [tensor.recipe for tensor in tensors], dim))


def _cat(tensors: Sequence[RecipeTensor], dim: int = 0) -> RecipeTensor:
    return RecipeTensor(_join("concat", [tensor.recipe for tensor in tensors], dim))


def _equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    # Asked when a checkpoint holds both of two tied weights. Values are not known here; untied, each gets its own, which
    # is right in either case.
    return False


_HANDLERS: dict[Any, Callable[..., Any]] = {
    aten.alias.default: _same,
    aten.detach.default: _same,
    aten.clone.default: _same,
    aten.contiguous.default: _same,
    aten.lift_fresh.default: _same,
    aten._to_copy.default: _to_copy,
    aten.view.default: _view,
    aten._unsafe_view.default: _view,
    aten.reshape.default: _view,
    aten.permute.default: lambda x, dims: RecipeTensor(_permute(x.recipe, dims)),
    aten.transpose.int: _transpose,
    aten.t.default: _t,
    aten.slice.Tensor: _slice_tensor,
    aten.select.int: _select,
    aten.split.Tensor: _split,
    aten.split_with_sizes.default: _split_with_sizes,
    aten.unbind.int: _unbind,
    aten.unsqueeze.default: _unsqueeze,
    aten.squeeze.default: _squeeze,
    aten.squeeze.dim: _squeeze,
    aten.squeeze.dims: _squeeze,
    aten.expand.default: _expand,
    aten.constant_pad_nd.default: _pad,
    aten.stack.default: _stack,
    aten.cat.default: _cat,
    aten.equal.default: _equal,
}


# ---- from recipes to plain steps ----


def steps_of(recipe: Recipe) -> tuple[list[str], list[dict[str, Any]]]:
    """The names of a recipe's sources, and its steps.

    Values are numbered, sources first, then the result of each step; the last one is the weight.
    """
    recipe = _with_one_cast(recipe)
    order = _in_order(recipe)
    sources: list[str] = []
    numbers: dict[int, int] = {}
    for node in order:
        if node.op == "source":
            numbers[id(node)] = len(sources)
            sources.append(node.parameters["name"])
    steps: list[dict[str, Any]] = []
    for node in order:
        if node.op != "source":
            steps.append({"op": node.op, "inputs": [numbers[id(i)] for i in node.inputs], **node.parameters})
            numbers[id(node)] = len(sources) + len(steps) - 1
    return sources, steps


def _in_order(recipe: Recipe) -> list[Recipe]:
    """Every part of a recipe once, inputs before what is made of them."""
    seen: set[int] = set()
    order: list[Recipe] = []

    def visit(node: Recipe) -> None:
        if id(node) not in seen:
            seen.add(id(node))
            for part in node.inputs:
                visit(part)
            order.append(node)

    visit(recipe)
    return order


def _with_one_cast(recipe: Recipe) -> Recipe:
    """Loaders cast each source; as every other step only moves elements, one cast at the end gives the same bytes."""
    if any(node.op in _OF_QUANTISED for node in _in_order(recipe)):
        return recipe  # these steps compute
    casts = [node for node in _in_order(recipe) if node.op == "cast"]
    sources = [node for node in _in_order(recipe) if node.op == "source"]
    is_same = all(cast.inputs[0].op == "source" and cast.dtype == recipe.dtype for cast in casts)
    if len(casts) != len(sources) or not is_same or any(node.dtype != sources[0].dtype for node in sources):
        return recipe
    rebuilt: dict[int, Recipe] = {}
    for node in _in_order(recipe):
        if node.op == "cast":
            rebuilt[id(node)] = node.inputs[0]
        elif node.op == "source":
            rebuilt[id(node)] = node
        else:
            inputs = tuple(rebuilt[id(part)] for part in node.inputs)
            rebuilt[id(node)] = Recipe(node.op, inputs, node.parameters, sources[0].dtype, node.shape)
    return _cast(rebuilt[id(recipe)], recipe.dtype)
