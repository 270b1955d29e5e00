"""Captures with sample inputs of the user's: ``forward`` as it is called with them becomes one graph. So any module can be captured,
whatever the rules for inputs know of it."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .components import Component, Inputs, Shape, call_flags, output_dict, parameters_of
from .dims import Dims, infer_dims
from .input_files import read_inputs

logger = logging.getLogger(__name__)

#: Sets of inputs that are taken.
_MOST_SETS = 8
#: Weights of a model that is tried at its full size where its twin does not take the inputs.
_MOST_WEIGHTS = 1 << 27
_TEXT = ("input_ids", "attention_mask", "token_type_ids", "position_ids")
#: Tokens that a set is made longer by, to see whether lengths may vary.
_MORE_TOKENS = 3


@dataclass
class Given:
    """What was found of a model with given inputs."""

    component: Component
    dims: Dims
    #: the small model, or the model at its full size, that takes the inputs; None: neither does
    twin: torch.nn.Module | None
    #: why there is no twin
    refusal: str = ""


def read_sets(files: Sequence[Path], model_class: type) -> list[Inputs]:
    """The inputs of each file, which all have the same names, dtypes and numbers of dims, and names that ``forward`` of the class
    knows."""
    if len(files) > _MOST_SETS:
        raise ExportError(f"{len(files)} files of inputs were given", code="invalid-input", hint=f"give up to {_MOST_SETS}")
    sets: list[Inputs] = [dict(read_inputs(file)) for file in files]
    known = [name for name in parameters_of(model_class.forward) if name != "self"]  # type: ignore[attr-defined]
    for file, inputs in zip(files, sets, strict=True):
        unknown = [name for name in inputs if name not in known]
        if unknown:
            raise ExportError(
                f"{file} has {', '.join(map(repr, unknown[:4]))}, which forward of {model_class.__name__} does not take",
                code="invalid-input", hint=f"it takes {', '.join(known)}",
            )  # fmt: skip
        if inputs.keys() != sets[0].keys():
            raise ExportError(f"{file} and {files[0]} have inputs of other names", code="invalid-input",
                              hint="all files of inputs have the same ones")  # fmt: skip
        for name, tensor in inputs.items():
            other = sets[0][name]
            if tensor.dtype != other.dtype or tensor.dim() != other.dim():
                raise ExportError(f"{name} in {file} is {_kind(tensor)}, in {files[0]} {_kind(other)}", code="invalid-input",
                                  hint="samples differ in sizes alone")  # fmt: skip
    # All in one order: that of forward, which graphs have too.
    return [{name: inputs[name] for name in known if name in inputs} for inputs in sets]


def _kind(tensor: torch.Tensor) -> str:
    return f"{str(tensor.dtype).removeprefix('torch.')} of {tensor.dim()} dims"


def find_given(files: Sequence[Path], config: Any, task: str | None, reach: int) -> Given:
    """The component, with the dims that vary from set to set. Of a single set the rows are varied, and the lengths of texts, where
    the twin takes that; the other axes are fixed."""
    from .twin import model_class

    cls = model_class(config, task)
    sets = read_sets(files, cls)
    twin, refusal = _twin(config, cls, task, reach, sets)
    is_single = len(sets) == 1
    if is_single and twin is not None:
        sets += _varied(twin, sets[0])
    dims = _observe(sets)
    # The last one is traced: that with most in it, but sizes of one are special cases of code.
    sets.sort(key=lambda inputs: (-_ones(inputs, dims), sum(tensor.numel() for tensor in inputs.values())))
    component = replace(_component(sets, dims), fixed=_fixed(sets[0], dims) if is_single else ())
    return Given(component, dims, twin, refusal)


def _component(sets: list[Inputs], dims: Dims) -> Component:
    shapes = tuple(replace(_shape(inputs), media=number) for number, inputs in enumerate(sets))

    def chosen(shape: Shape) -> Inputs:
        return sets[min(max(shape.media, 0), len(sets) - 1)]

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        dtype = model.dtype
        return {name: tensor.to(dtype) if tensor.is_floating_point() else tensor for name, tensor in chosen(shape).items()}

    def run(model: torch.nn.Module, forward: Any, inputs: Inputs) -> dict[str, Any]:
        return output_dict(forward(**inputs, **call_flags(forward, use_cache=False, return_dict=True)))

    def symbols(shape: Shape) -> dict[str, int]:
        leaves = chosen(shape)
        return {dim: leaves[name].shape[axis] for name, axes in dims.names.items() for axis, dim in axes.items()}

    return Component("model", inputs, run, symbols=symbols, shapes=shapes, traced_media=len(sets) - 1, given=True)


def _shape(inputs: Inputs) -> Shape:
    first = _main(inputs)
    return Shape(first.shape[0] if first.dim() else 1, first.shape[1] if first.dim() > 1 else 1, 0, 0)


def _main(inputs: Inputs) -> torch.Tensor:
    return inputs.get("input_ids", next(iter(inputs.values())))


def _observe(sets: list[Inputs]) -> Dims:
    symbols = []
    for inputs in sets:
        shape = _shape(inputs)
        symbols.append({"batch": shape.batch} | ({"sequence": shape.sequence} if _has_text(inputs) else {}))
    return infer_dims([{name: tuple(tensor.shape) for name, tensor in inputs.items()} for inputs in sets], symbols)


def _has_text(inputs: Inputs) -> bool:
    return "input_ids" in inputs and inputs["input_ids"].dim() == 2


def _ones(inputs: Inputs, dims: Dims) -> int:
    """How many of the axes that vary have one size here that a trace would fix."""
    return sum(inputs[name].shape[axis] == 1 for name, axes in dims.names.items() for axis in axes)


def _fixed(inputs: Inputs, dims: Dims) -> tuple[dict[str, Any], ...]:
    reason = "one set of inputs was given; give --inputs again with another size and it may vary"
    return tuple({"input": name, "dim": axis, "value": size, "reason": reason}
                 for name, tensor in inputs.items() for axis, size in enumerate(tensor.shape)
                 if axis not in dims.names.get(name, {}))  # fmt: skip


# ---- a model that takes them ---------------------------------------------------------------------------------------


def _twin(config: Any, cls: Any, task: str | None, reach: int, sets: list[Inputs]) -> tuple[torch.nn.Module | None, str]:
    """A small model, or one of full size if it is not large, that runs on the inputs; else why none does."""
    from .twin import build
    from .twin.build import narrowed
    from .weightless import build_on_meta

    refusal = ""
    for whole in (False, True):
        try:
            if whole:
                weights = sum(each.numel() for each in build_on_meta(cls, narrowed(config, cls)).parameters())
                if weights > _MOST_WEIGHTS:
                    break
            twin = build(config, task=task, reach=reach, whole=whole)
            for inputs in sets:
                _call(twin, inputs)
            return twin, ""
        except Exception as error:  # noqa: BLE001 - code of the model's own
            logger.debug("%s of the configuration does not take the inputs: %s", "a model" if whole else "the twin", error)
            said = str(error).strip().splitlines() or [type(error).__name__]
            refusal = refusal or f"a small model of this kind does not take the inputs ({said[0].rstrip('.')})"
    return None, refusal


def _call(model: torch.nn.Module, inputs: Inputs) -> dict[str, Any]:
    component = _component([inputs], Dims())
    with torch.no_grad():
        return component.run(model, model.forward, component.inputs(model, Shape()))


def _varied(twin: torch.nn.Module, inputs: Inputs) -> list[Inputs]:
    """The inputs with more rows and longer texts, or with as much of that as the twin takes."""
    rows, longer = _more_rows(inputs), _longer(inputs)
    for made in (_longer(rows), rows, longer):
        try:
            if _sizes(made) != _sizes(inputs) and _call(twin, inputs).keys() == _call(twin, made).keys():
                return [made]
        except Exception as error:  # noqa: BLE001 - code of the model's own
            logger.debug("other sizes of inputs are not taken: %s", error)
    return []


def _sizes(inputs: Inputs) -> list[torch.Size]:
    return [tensor.shape for tensor in inputs.values()]


def _more_rows(inputs: Inputs) -> Inputs:
    main = _main(inputs)

    def more(tensor: torch.Tensor) -> torch.Tensor:
        is_row = tensor.dim() > 0 and main.dim() > 0 and tensor.shape[0] == main.shape[0]
        return torch.cat([tensor, tensor[:1], tensor[:1]]) if is_row else tensor

    return {name: more(tensor) for name, tensor in inputs.items()}


def _longer(inputs: Inputs) -> Inputs:
    if not _has_text(inputs):
        return inputs
    tokens = _shape(inputs).sequence

    def longer(name: str, tensor: torch.Tensor) -> torch.Tensor:
        if name not in _TEXT or tensor.dim() != 2 or tensor.shape[1] != tokens:
            return tensor
        return torch.cat([tensor, *[tensor[:, -1:]] * _MORE_TOKENS], dim=1)

    return {name: longer(name, tensor) for name, tensor in inputs.items()}
