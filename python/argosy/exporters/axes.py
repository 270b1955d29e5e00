"""Which axes of a live model's inputs may vary."""

from __future__ import annotations

import contextlib
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..capture.attempts import Sides, freest
from ..capture.keeping import unchanged
from ..capture.multimodal_geometry import is_geometry
from ..structures import flatten
from ..observer.calls import copy_value

logger = logging.getLogger(__name__)
#: Axes of pictures, and of stacks of them, before their height and width.
_BEFORE_SIDES = 2
#: Attributes of caches that hold what became of all tokens so far, however many these were.
_STATES = re.compile(r"(conv|ssm|recurrent)_states?")
#: Errors of code that looks at values, which a run without any cannot follow.
_UNKNOWN = (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode)


def trace_freest(model: torch.nn.Module, inputs: Mapping[str, Any], trace: Callable[[bool], Any]) -> tuple[Any, list[str]]:
    """What ``trace`` gives, which lets all axes vary, or all but those of pictures (``trace(True)``); and notes on what is fixed."""
    sides = {name: axes for name, axes in _sides(inputs).items() if name.startswith("pixel")}
    refused = bool(sides) and not _takes_other_sizes(model, inputs, sides)
    single = any(tensor.shape[:1] == (1,) for _, tensor in flatten(dict(inputs))[0])
    try:
        traced, fixed = freest(model, (lambda _: trace(True)) if refused else trace, {} if refused else sides, single=single)
    except Exception:
        if sides or not pictures(inputs):
            raise
        traced, fixed = trace(True), True
    if not fixed and not refused:
        return traced, []
    return traced, [f"height and width of {', '.join(pictures(inputs))} are those of the sample: the model's code takes no others"]


def pictures(inputs: Mapping[str, Any]) -> list[str]:
    """Inputs that have a height and a width."""
    return [name for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > _BEFORE_SIDES + 1]  # fmt: skip


def _sides(inputs: Mapping[str, Any]) -> Sides:
    """Height and width of pictures, and of their masks."""
    sizes = {inputs[name].shape[-2:] for name in pictures(inputs)}
    masks = [name for name, value in inputs.items() if name.endswith("pixel_mask") and value.shape[-2:] in sizes]
    return {name: [inputs[name].dim() - 2, inputs[name].dim() - 1] for name in [*pictures(inputs), *masks]}


def _takes_other_sizes(model: torch.nn.Module, inputs: Mapping[str, Any], sides: Sides) -> bool:
    """Whether the model's code runs on pictures of other sizes, by shapes alone. Trying it is the only way to know: some vision
    transformers fit their positions to the picture, others refuse it."""
    mode = detect_fake_mode(list(model.parameters())) or FakeTensorMode(allow_non_fake_inputs=True)
    for numerator, denominator in ((2, 1), (1, 2)):
        given = copy_value(dict(inputs))
        try:
            with unchanged(model), torch.no_grad(), mode, _quiet("torch._subclasses.fake_tensor"):
                for name, axes in sides.items():
                    shape = [size * numerator // denominator if axis in axes else size for axis, size in enumerate(given[name].shape)]
                    given[name] = torch.ones(shape, dtype=given[name].dtype)
                model(**given)
        except _UNKNOWN:
            return True
        except Exception as error:  # noqa: BLE001 - models refuse pictures in ways of their own
            logger.debug("%s takes no pictures of another size: %s", type(model).__name__, error)
            return False
    return True


@contextlib.contextmanager
def _quiet(name: str) -> Iterator[None]:
    """A logger says nothing of errors that are expected."""
    disabled = logging.getLogger(name).disabled
    logging.getLogger(name).disabled = True
    try:
        yield
    finally:
        logging.getLogger(name).disabled = disabled


def free_axes(inputs: Mapping[str, Any], fixed: bool = False) -> Callable[[torch.Tensor], dict[int, Any]]:
    """Which axes of a tensor in ``inputs`` vary: all that may. With ``fixed`` the sides of pictures do not; the width of patches in a
    row never does, nor do states of a cache but for their rows. An axis of size 1 is one for which code has a way of its own (a
    single new token), unless it is the first."""
    fixed_from = {id(inputs[name]): axes[0] for name, axes in _sides(inputs).items() if fixed}
    if any(map(is_geometry, inputs)):
        fixed_from |= {id(value): 1 for value in inputs.values() if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() == 2}
    fixed_from |= {id(tensor): 1 for path, tensor in flatten(dict(inputs))[0] if any(map(_STATES.fullmatch, path))}

    def axes(tensor: torch.Tensor) -> dict[int, Any]:
        count = fixed_from.get(id(tensor), tensor.dim())
        return {axis: torch.export.Dim.AUTO for axis in range(count) if axis == 0 or tensor.shape[axis] != 1}

    return axes

