"""Plays runs in an export and compares: the export is opened by its engine, in this process."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .calls import Run

#: Largest difference that is no mistake, of the largest expected value; by backend and dtype of the weights.
TOLERANCES = {"float32": 1e-4, "float16": 1e-2, "bfloat16": 4e-2}


@dataclass
class Played:
    """``state`` is right, wrong, refused (the engine or the stated range) or skipped (eager itself fails)."""

    run: str
    state: str
    difference: float = 0.0
    note: str = ""


class Opened:
    """An export, its components and how they are called."""

    def __init__(self, path: Path) -> None:
        from argosy.check.engines import find_export
        from argosy.check.worker import OPENERS

        self.export = find_export(path)
        self.components: dict[str, Any] = {}
        for file in self.export.files:
            self.components.update(OPENERS[self.export.engine.name](str(file)))
        self.interfaces = self.export.interfaces

    @property
    def dtype(self) -> str:
        return self.export.dtype

    def call(self, name: str, given: dict[str, Any]) -> dict[str, Any]:
        """Outputs by dotted name. Raises ``LookupError`` for calls that the export says it is not for."""
        from argosy.structures import identifier
        from argosy.check.interface import complete

        interface = self.interfaces[name]
        known = {item["name"] for item in interface["inputs"]}
        inputs = complete(interface, {key: value.contiguous() for key, value in given.items() if key in known})
        outputs = self.components[name](inputs)
        dotted = {identifier(each["name"]): each["name"] for each in interface["outputs"]}
        return {dotted.get(key, key): value for key, value in outputs.items()}

    def states(self, name: str, outputs: dict[str, Any]) -> dict[str, Any]:
        from argosy.check.interface import next_states

        return next_states(self.interfaces[name], outputs)

    def encoded(self, inputs: dict[str, Any]) -> dict[str, Any]:
        """What an encoder's call gives to all calls of the decoder."""
        from argosy.check.interface import wired

        outputs = self.call("encoder", inputs)
        return {**inputs, **wired(self.export.manifest["wiring"], "encoder", "decoder", outputs, self.interfaces["decoder"])}


def set_rounding(runs: list[Run], exact: list[Run]) -> None:
    """Writes down what rounding alone does to eager: a file rounds in more places than a kernel of eager, so it may be some times as far off."""
    for run, truth in zip(runs, exact, strict=True):
        run.rounding = apart(truth, run) if run.tokens is None else 0.0


def apart(run: Run, other: Run) -> float:
    """The largest difference of eager from itself; where greedy tokens differ, how far the best logits are apart there."""
    if run.tokens is not None:
        at = next((i for i, (one, two) in enumerate(zip(run.tokens, other.tokens or [], strict=False)) if one != two), None)
        return run.margins[at] / 2 if at is not None else 0.0
    pairs = zip(run.feeds, other.feeds, strict=False)
    return max((difference(here.expected[name], value, here.ignored.get(name)) for here, there in pairs
                for name, value in there.expected.items() if name in here.expected), default=0.0)  # fmt: skip


def allowed_by_rounding(run: Run) -> float:
    """Beyond a quarter there is nothing left to compare, and what differs counts."""
    return min(4 * run.rounding, 0.25)


def play(opened: Opened, run: Run, tolerance: float) -> Played:
    tolerance = max(tolerance, allowed_by_rounding(run))
    if run.reason:
        return Played(run.name, "skipped", note=run.reason)
    try:
        return _play_tokens(opened, run, tolerance) if run.tokens is not None else _play_feeds(opened, run, tolerance)
    except LookupError as error:
        return Played(run.name, "refused", note=f"range: {error}")
    except Exception as error:  # noqa: BLE001 - what engines raise
        return Played(run.name, "refused", note=f"engine: {' '.join(str(error).split())[:200]}")


def _target(opened: Opened) -> str:
    for name in ("decode", "decoder", "model"):
        if name in opened.interfaces:
            return name
    return next(iter(opened.interfaces))


def _play_feeds(opened: Opened, run: Run, tolerance: float) -> Played:
    name = _target(opened)
    constant = opened.encoded(run.encoder) if run.encoder is not None else {}
    states: dict[str, Any] = {}
    worst, where = 0.0, ""
    for number, feed in enumerate(run.feeds):
        try:
            outputs = opened.call(name, {**constant, **feed.inputs, **states})
        except LookupError as error:
            if worst > tolerance:
                break
            return Played(run.name, "refused", worst, f"range: {error} (call {number + 1})")
        states = opened.states(name, outputs)
        for key, expected in feed.expected.items():
            if key not in outputs:
                return Played(run.name, "wrong", float("inf"), f"there is no output {key}, only {', '.join(outputs)}")
            apart = difference(expected, outputs[key], feed.ignored.get(key))
            if apart > worst:
                worst, where = apart, f"{key} of call {number + 1}"
    return Played(run.name, "right" if worst <= tolerance else "wrong", worst, where if worst > tolerance else "")


def difference(expected: Any, actual: Any, ignored: Any = None) -> float:
    """The largest, against the largest expected value."""
    import torch

    if tuple(expected.shape) != tuple(actual.shape):
        return float("inf")
    expected, actual = expected.double(), actual.double()
    apart = (expected - actual).abs().nan_to_num(nan=float("inf"))
    if ignored is not None:
        ignored = ignored.expand_as(apart)
        apart, expected = apart.masked_fill(ignored, 0.0), expected.masked_fill(ignored, 0.0)
    if apart.numel() == 0:
        return 0.0
    return float(apart.max() / torch.clamp(expected.abs().max(), min=0.1))


def _play_tokens(opened: Opened, run: Run, tolerance: float) -> Played:
    """Greedy tokens must agree up to the first whose two best logits are closer than the tolerance allows for."""
    import torch

    assert run.tokens is not None
    name = _target(opened)
    if run.encoder is not None:
        constant, argument, new = opened.encoded(run.encoder), "decoder_input_ids", torch.tensor([[run.first]])
    else:
        constant, argument, new = {}, "input_ids", run.feeds[0].inputs["input_ids"]
    states: dict[str, Any] = {}
    for number, expected in enumerate(run.tokens):
        outputs = opened.call(name, {**constant, argument: new, **states})
        states = opened.states(name, outputs)
        token = int(outputs["logits"][0, -1].argmax())
        if token != expected:
            margin = run.margins[number]
            near = margin <= 2 * tolerance
            note = f"token {number + 1} of {len(run.tokens)} differs, its two best logits are {margin:.1e} apart"
            return Played(run.name, "right" if near else "wrong", margin, note)
        new = torch.tensor([[token]])
    return Played(run.name, "right")
