"""A trace with as many axes free as the model's code allows: what fails is tried again with less."""

from __future__ import annotations

import contextlib
import functools
import logging
import operator
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import torch

from .guards import sizes_made_numbers
from .patches.sizes import ShortFormulas, sizes_as_symbols
from .swap import replaced
from .trace import fixed_size

logger = logging.getLogger(__name__)
Traced = TypeVar("Traced")
#: Sides of pictures by graph input: {"pixel_values": [2, 3]}.
Sides = dict[str, list[int]]


def freest(
    model: torch.nn.Module, trace: Callable[[bool], Traced], sides: Sides | None = None, *, single: bool = False
) -> tuple[Traced, bool]:
    """What ``trace`` gives, a program or what has one as ``program``, and whether all ``sides`` are fixed in it.

    ``trace(False)`` lets all axes vary. Where pictures have ``sides`` that may, numbers that the model's code makes of sizes are
    symbols; if it fixes one of them all the same, or refuses symbols, ``trace(True)`` fixes all of them. Elsewhere code runs as
    it is, and with symbols only if it fails or makes such numbers. ``single``: a batch of 1 is no special case, if that can be.
    """
    symbols = functools.partial(sizes_as_symbols, model)
    ways: list[Callable[[], contextlib.AbstractContextManager[Any]]] = [symbols] if sides else [contextlib.nullcontext, symbols]
    if single:
        ways.insert(0, functools.partial(_single_sizes, ways[0]))
    reasons = []
    for way in ways:
        try:
            with way(), _short_formulas(model) if sides else contextlib.nullcontext():
                traced = trace(False)
        except Exception as failed:  # noqa: BLE001 - code that refuses symbols does so in ways of its own
            logger.debug("traced again: %s", failed)
            reasons.append(failed)
            continue
        if not sides:
            return traced if way is symbols else _without_numbers(traced, symbols, trace), False
        if _vary(_program(traced), sides):
            return traced, False
    if not sides:
        raise reasons[-2]  # that of the code as it is
    return trace(True), True


def _without_numbers(traced: Traced, symbols: Callable[[], contextlib.AbstractContextManager], trace: Callable[[bool], Traced]) -> Traced:
    """Where the model's code made numbers of sizes: a trace with symbols in their place, if one can be had that fixes fewer."""
    count = sizes_made_numbers(_program(traced))
    if not count:
        return traced
    try:
        with symbols():
            again = trace(False)
    except Exception as failed:  # noqa: BLE001 - code that refuses symbols does so in ways of its own
        logger.debug("keeps the numbers of its trace: %s", failed)
        return traced
    # Roots of sizes are numbers that not every engine has.
    has_roots = any(node.target is operator.pow for node in _program(again).graph.nodes)
    return again if sizes_made_numbers(_program(again)) < count and not has_roots else traced


def _program(traced: Any) -> torch.export.ExportedProgram:
    return getattr(traced, "program", traced)


def _vary(program: torch.export.ExportedProgram, sides: Sides) -> bool:
    sizes = {node.name: node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder" and node.name in sides}
    return all(fixed_size(shape[axis]) is None for name, shape in sizes.items() for axis in sides[name])


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
