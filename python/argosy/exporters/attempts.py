"""A trace with as many axes free as the model's code allows: what fails is tried again with less."""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import torch

from ..capture.guards import sizes_made_numbers
from ..capture.multimodal_geometry import is_geometry
from ..capture.patches.sizes import ShortFormulas, sizes_as_symbols
from ..capture.structures import flatten
from ..capture.swap import replaced

logger = logging.getLogger(__name__)
Traced = TypeVar("Traced")
#: Axes of pictures, and of stacks of them, before their height and width.
_BEFORE_SIDES = 2


def freest(model: torch.nn.Module, inputs: Mapping[str, Any], trace: Callable[[bool], Traced]) -> tuple[Traced, list[str]]:
    """What ``trace`` gives, which lets all axes vary, or all but those of pictures (``trace(True)``); and notes on what is fixed."""
    plain, symbols = contextlib.nullcontext, functools.partial(sizes_as_symbols, model)
    ways = [symbols, plain] if pictures(inputs) else [plain, symbols]
    if any(tensor.shape[:1] == (1,) for _, tensor in flatten(dict(inputs))[0]):
        ways.insert(0, functools.partial(_single_sizes, ways[0]))
    reason: Exception | None = None
    for way in ways:
        try:
            with way(), _short_formulas(model):
                traced = trace(False)
            return traced if way is symbols else _without_numbers(traced, symbols, trace), []
        except Exception as failed:  # noqa: BLE001 - code that refuses symbols does so in ways of its own
            logger.debug("traced again: %s", failed)
            reason = failed if way is plain else reason
    assert reason is not None
    if not pictures(inputs):
        raise reason
    try:
        return trace(True), [f"height and width of {', '.join(pictures(inputs))} are those of the sample: the model's code takes no others"]
    except Exception:
        raise reason from None


def _without_numbers(traced: Traced, symbols: Callable[[], contextlib.AbstractContextManager], trace: Callable[[bool], Traced]) -> Traced:
    """Where the model's code made numbers of sizes: a trace with symbols in their place, if one can be had that fixes fewer."""
    count = sizes_made_numbers(getattr(traced, "program", traced))
    if not count:
        return traced
    try:
        with symbols():
            again = trace(False)
    except Exception as failed:  # noqa: BLE001 - code that refuses symbols does so in ways of its own
        logger.debug("keeps the numbers of its trace: %s", failed)
        return traced
    program = getattr(again, "program", again)
    # Roots of sizes are numbers that not every engine has.
    has_roots = any(node.target is operator.pow for node in program.graph.nodes)
    return again if sizes_made_numbers(program) < count and not has_roots else traced


def pictures(inputs: Mapping[str, Any]) -> list[str]:
    """Inputs that have a height and a width."""
    return [name for name, value in inputs.items()
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() > _BEFORE_SIDES + 1]  # fmt: skip


def free_axes(inputs: Mapping[str, Any], fixed: bool = False) -> Callable[[torch.Tensor], dict[int, Any]]:
    """Which axes of a tensor in ``inputs`` vary: all that may. With ``fixed`` the sides of pictures do not; the width of patches in a
    row never does. An axis of size 1 is one for which code has a way of its own (a single new token), unless it is the first."""
    sides = {id(inputs[name]): 2 for name in pictures(inputs) if fixed}
    if any(map(is_geometry, inputs)):
        sides |= {id(value): 1 for value in inputs.values() if isinstance(value, torch.Tensor) and value.is_floating_point() and value.dim() == 2}

    def axes(tensor: torch.Tensor) -> dict[int, Any]:
        count = tensor.dim() - sides.get(id(tensor), 0)
        return {axis: torch.export.Dim.AUTO for axis in range(count) if axis == 0 or tensor.shape[axis] != 1}

    return axes


@contextlib.contextmanager
def _single_sizes(way: Callable[[], contextlib.AbstractContextManager]) -> Iterator[None]:
    """A batch of 1 in the sample is no special case. Code that makes one of it is traced as it is then."""
    import torch.fx.experimental._config

    with torch.fx.experimental._config.patch(backed_size_oblivious=True), way():
        yield


@contextlib.contextmanager
def _short_formulas(model: torch.nn.Module) -> Iterator[None]:
    original = model.forward

    @functools.wraps(original)
    def forward(*args: Any, **kwargs: Any) -> Any:
        with ShortFormulas():
            return original(*args, **kwargs)

    with replaced(model, "forward", forward):
        yield
