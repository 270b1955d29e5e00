"""The table of a check: one row for each call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from ..structures import identifier
from .calls import ExpectedCall
from ..compare import Difference, difference
from .engines import EngineError, EngineProcess
from .quality import Measure


@dataclass
class Row:
    """``ok`` is None where the call could not be made for a reason that is not the export's (``note`` says which)."""

    component: str
    origin: str
    shape: str
    ok: bool | None
    difference: Difference | None = None
    seconds_model: float | None = None
    seconds_program: float | None = None
    #: new tokens that agree, of how many
    tokens: tuple[int, int] | None = None
    note: str = ""
    #: not what eager usually says, for a reason that is the engine's; the note says which
    excused: bool = False
    #: a figure, not a verdict: the note has it
    measures: bool = False
    #: of a row that measures what an export costs in quality
    figures: dict[str, Any] | None = None

    def columns(self) -> dict[str, Any]:
        """Flat, for JSON and data frames; the names are those of ``InputObserver.check_discrepancies``."""
        found = self.difference or Difference(error="not compared")
        return {
            "component": self.component,
            "call": self.origin,
            "shape": self.shape,
            "ok": self.ok,
            **found.columns(),
            "seconds_model": self.seconds_model,
            "seconds_program": self.seconds_program,
            "worst": found.worst or None,
            "tokens": list(self.tokens) if self.tokens else None,
            "note": self.note or None,
        }


def quality_row(*measures: Measure, how: str = "") -> Row:
    """``how`` it was measured, where not by the export's own outputs."""
    figures = {name: value for each in measures for name, value in each.figures().items()}
    text = "; ".join(each.text() for each in measures)
    return Row("all", "quality", "", True, note=text + how, measures=True, figures=figures or None)


def run_call(engine: EngineProcess, call: ExpectedCall, tolerance: float, overall: float = math.inf,
             on_outputs: Callable[[dict[str, torch.Tensor]], None] = lambda outputs: None) -> Row:  # fmt: skip
    """Runs a call in the engine and judges it: by the element that is farthest off, and by all together. A file rounds in more
    places than a kernel of eager, so it may be some times as far off as eager is by rounding; beyond a quarter there is
    nothing left to compare, and what differs counts."""
    tolerance = max(tolerance, min(4 * call.rounding, 0.25))
    row = Row(call.component, call.origin, call.shape, False, seconds_model=call.seconds)
    try:
        outputs, row.seconds_program = engine.call(call.component, call.inputs)
    except EngineError as error:
        row.note = str(error)
        return row
    on_outputs(outputs)
    found = difference(*paired(call, outputs), ignored=call.ignored)
    row.difference = found
    row.ok = not found.error and found.scaled <= tolerance and found.overall <= overall
    if found.error:
        row.note = found.error
    elif not row.ok:
        row.note = f"{found.worst} is off by {found.abs:.2g}"
        if found.scaled <= tolerance:
            row.note += f", all of it by {100 * found.overall:.2g} %"
    return row


def paired(
    call: ExpectedCall, outputs: dict[str, torch.Tensor]
) -> tuple[dict[str, torch.Tensor], dict[str, torch.Tensor]]:
    """Expected and actual outputs under the same names: graphs name theirs by identifiers."""
    dotted = {identifier(name): name for name in call.outputs}
    actual = {dotted.get(name, name): tensor for name, tensor in outputs.items()}
    if not call.partial:
        return call.outputs, actual
    wanted: dict[str, torch.Tensor] = {}
    shown: dict[str, torch.Tensor] = {}
    for name, want in call.outputs.items():
        if name not in actual:
            continue
        have = actual[name]
        if name == "logits" and have.dim() == want.dim() == 3:
            # Generate asks for the last token's only, and so do runners.
            last = min(want.shape[1], have.shape[1])
            want, have = want[:, want.shape[1] - last :], have[:, have.shape[1] - last :]
        if have.shape != want.shape and have.numel() == want.numel():
            want = want.reshape(have.shape)  # features of pictures, with or without a row for each
        wanted[name], shown[name] = want, have
    return wanted if shown else call.outputs, shown


def table_text(rows: list[Row]) -> str:
    """The table for people."""
    head = ["component", "call", "shape", "abs", "rel", ">0.1", ">0.01", "eager s", "engine s", ""]
    lines = [head]
    for row in rows:
        figures = (row.difference or Difference(error="not compared")).columns()
        lines.append([
            row.component,
            row.origin,
            row.shape if len(row.shape) <= 48 else row.shape[:47] + "…",
            *(_figure(figures[name]) for name in ("abs", "rel")),
            *(_share(figures[name]) for name in (">0.1", ">0.01")),
            *("" if value is None else f"{value:.3f}" for value in (row.seconds_model, row.seconds_program)),
            _verdict(row),
        ])  # fmt: skip
    widths = [max(len(line[i]) for line in lines) for i in range(len(head) - 1)]
    text = ""
    for line in lines:
        cells = [
            cell.ljust(width) if i < 3 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(line[:-1], widths, strict=True))
        ]
        text += "  ".join([*cells, line[-1]]).rstrip() + "\n"
    return text


def _verdict(row: Row) -> str:
    if row.measures:
        return row.note
    if row.ok is None:
        return f"not run: {row.note}"
    word = "ok" if row.ok else "WRONG"
    if row.tokens:
        word += f" {row.tokens[0]} of {row.tokens[1]} tokens"
    return f"{word}: {row.note}" if row.note else word


def _figure(value: float | None) -> str:
    return "" if value is None else f"{value:.1e}"


def _share(value: float | None) -> str:
    return "" if value is None else "0" if value == 0 else f"{100 * value:.2g}%"
