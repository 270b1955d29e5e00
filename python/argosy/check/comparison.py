"""One export beside one eager model: what is called, and what is made of the answers."""

from __future__ import annotations

import contextlib
import functools
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..capture.components import Component, Shape
from ..structures import identifier, named_leaves
from ..errors import ExportError
from .calls import ExpectedCall, as_exported, error_line, expected_call, shape_text
from .dequantized import is_quantized, load_dequantized
from ..compare import difference
from .engines import MIXED, EngineError, EngineProcess, Export
from .greedy import ExpectedTokens, expected_tokens, run_tokens
from .interface import fits, promised_shapes, single_sizes
from .observed import observed_calls
from .programs import program_calls
from .quality import Quality
from .rows import Row, quality_row, run_call
from .samples import Samples
from .schemes import QuantizedModel
from .texts import text_calls

Report = Callable[[str], None]
#: Where activations are rounded too, a difference of the last bit may round otherwise, and that moves what follows: the
#: largest difference of an element, and that of all together.
ROUNDED_ROWS = (1e-1, 3e-2)
#: Where one scale is for all activations of a call, what is rounded otherwise once moves all that follows by as much as the scheme
#: itself does, in eager too: of all together, the most that is no mistake.
ROUNDED_TENSORS = 0.25


def bundle_tolerance(stored: QuantizedModel, tolerance: float) -> float:
    """Of logits of a bundle, whose engine may cut texts into other calls than eager does."""
    rounded = ROUNDED_TENSORS if stored.rounds_tensors else ROUNDED_ROWS[0] if stored.rounds_rows else 0.0
    return max(tolerance, rounded)


@dataclass
class Calls:
    """What is asked of an export, with eager's answers."""

    calls: list[ExpectedCall]
    tokens: list[ExpectedTokens]
    rows: list[Row]


class Comparison:
    """Calls an export and compares. One that is quantised is compared with eager whose weights and activations went through the
    same scheme, which shows that it is right, and then with eager as it is, which shows what that costs. ``prepare`` needs
    the model, ``compare`` does not."""

    def __init__(
        self, model: torch.nn.Module, components: list[Component], export: Export, tolerance: float, *,
        limits: tuple[int, ...] = (), suffix: str = "", folder: Path | None = None, text: Path | None = None,
        in_place: bool = False, exact: torch.nn.Module | None = None, samples: Samples | None = None,
    ) -> None:  # fmt: skip
        """``folder`` may have a tokenizer, ``text`` words of the user's. ``in_place``: the model's weights may be lost.
        ``exact`` has the same weights and computes in float32: by it is known what rounding alone does. ``samples``: what the
        export's quality is told from, if not from its logits."""
        self.model: torch.nn.Module | None = model
        self.exact = exact
        self.components = [as_exported(component, model, export.interfaces.get(component.name)) for component in components]
        self.export, self.limits = export, limits
        self.tolerance, self.overall = tolerance, float("inf")
        self.suffix, self.folder, self.text, self.in_place = suffix, folder, text, in_place
        self.expected = Calls([], [], [])
        self.original: list[ExpectedCall] = []
        self.samples = samples

    def run(self, shapes: dict[str, list[Shape]], *, edges: bool = True, observed: bool = False, tokens: int = 0) -> list[Row]:
        self.prepare(shapes, edges=edges, observed=observed, tokens=tokens)
        return self.compare()

    def prepare(
        self, shapes: dict[str, list[Shape]], *, edges: bool = True, observed: bool = False, tokens: int = 0, words: bool = False
    ) -> None:  # fmt: skip
        """Eager's part."""
        assert self.model is not None
        quantized = self.export.manifest.get("quantized") or []
        simulated: contextlib.AbstractContextManager = contextlib.nullcontext()
        rounds_tensors = False
        if quantized:
            self.original = self._calls(shapes, edges, False, 0, words).calls
            try:
                simulated = stored = QuantizedModel(self.model, quantized, in_place=self.in_place)
            except LookupError as error:
                raise ExportError(str(error), code="unsupported-feature", hint="--check off exports it unchecked") from error
            rounds_tensors = stored.rounds_tensors
            if stored.rounds_rows:
                self.tolerance, self.overall = max(self.tolerance, ROUNDED_ROWS[0]), ROUNDED_ROWS[1]
        with simulated:
            self.expected = self._calls(shapes, edges, observed, tokens, words)
        if rounds_tensors:
            self.overall = ROUNDED_TENSORS
            for call, before in zip(self.expected.calls, self.original, strict=False):
                call.rounding = difference(before.outputs, call.outputs, ignored=call.ignored).scaled
        if self.export.dtype == MIXED:  # the same model, so its answers tell what rounding costs
            self.original = self.expected.calls
        if self.exact is not None:
            self.model = self.exact
            exact = {(call.component, call.shape): call for call in self._calls(shapes, edges, False, 0, words).calls}
            for call in self.expected.calls:
                if (truth := exact.get((call.component, call.shape))) is not None:
                    rounding = difference(truth.outputs, call.outputs, ignored=call.ignored).scaled
                    call.rounding = rounding if math.isfinite(rounding) else 0.0  # infinite: it says nothing
        self.model = self.exact = None

    def _calls(self, shapes: dict[str, list[Shape]], edges: bool, observed: bool, tokens: int, words: bool) -> Calls:
        """Those that a quantised export's quality is told from come first."""
        found = Calls([], [], [])
        if words:
            found.calls += text_calls(self.model, self.export, self.folder, self.text)
        if not self.export.has_components:
            calls, rows = program_calls(self.model, self.components, self.export, self.limits)
            return Calls(found.calls + calls, [], rows)
        if edges:
            found.rows += beyond_rows(self.components, self.export, shapes)
            calls, rows = edge_calls(self.model, self.components, self.export, shapes)
            found.calls += calls
            found.rows += rows
        if observed and not any(component.given for component in self.components):
            found.calls += observed_calls(self.model, self.components, self.export.manifest)
        if tokens:
            found.tokens = expected_tokens(self.model, self.components, self.folder, count=tokens)
        return found

    def compare(self) -> list[Row]:
        """The export's part."""
        rows = list(self.expected.rows)
        quality = Quality()
        original = iter(self.original)
        try:
            process = EngineProcess(self.export)
        except EngineError as error:  # what cannot be opened is as wrong as can be
            return [*rows, Row(", ".join(self.export.interfaces), "open", "", False, note=str(error))]
        with process as engine:
            for call in self.expected.calls:
                before = next(original, None)
                measure = functools.partial(_measure, quality, before)
                row = run_call(engine, call, self.tolerance, self.overall, measure)
                row.origin += self.suffix
                rows.append(row)
            rows += [run_tokens(engine, self.export.manifest, each, self.tolerance) for each in self.expected.tokens]
            measured = self.samples.measure(engine) if self.samples is not None else None
        if measured is not None:
            rows.append(measured)
        elif self.original and quality.tokens:
            rows.append(quality_row(quality))
        return rows


def _measure(quality: Quality, call: ExpectedCall | None, outputs: dict[str, torch.Tensor]) -> None:
    """Adds the logits of one call, if it has any that count."""
    if call is None:
        return
    want, have = call.outputs.get("logits"), outputs.get("logits")
    if want is None or have is None or want.dim() != 3 or "logits" in call.ignored:
        return
    last = min(want.shape[1], have.shape[1])
    following = call.following[-last:] if call.following is not None else None
    quality.add(want[:, -last:].flatten(0, 1), have[:, -last:].flatten(0, 1), following)


def edge_calls(
    model: torch.nn.Module, components: list[Component], export: Export, shapes: dict[str, list[Shape]]
) -> tuple[list[ExpectedCall], list[Row]]:
    """Calls of every component at those of ``shapes`` that the export is for, and a row for each that eager refuses."""
    calls, rows = [], []
    for component in components:
        interface = export.interfaces.get(component.name)
        if interface is None:
            raise ExportError(f"the export has no {component.name}", code="invalid-input", hint="export it again")
        for shape in promised_shapes(component, shapes[component.name], interface):
            try:
                call = expected_call(component, model, shape)
            except Exception as error:  # noqa: BLE001 - eager code of the model's own
                if _is_promised(component, model, shape, interface):
                    text = shape_text(shape, component)
                    rows.append(Row(component.name, "edge", text, None, note=f"eager refuses {text}: {error_line(error)}"))
                continue
            if fits(call.inputs, interface):
                calls.append(call)
    return calls, rows


def _is_promised(component: Component, model: torch.nn.Module, shape: Shape, interface: Mapping[str, Any]) -> bool:
    """Whether a call that eager refuses is one that the export takes by its own word; what cannot be told, it is."""
    try:
        leaves = named_leaves(component.inputs(model, shape))
    except Exception:  # noqa: BLE001
        return True
    return fits({identifier(name): tensor for name, tensor in leaves.items()}, interface)


def axis_rows(export: Export, calls: list[ExpectedCall]) -> list[Row]:
    """For each component with dims that may vary and were called at one size only, which these are."""
    rows = []
    for name, interface in export.interfaces.items():
        single = single_sizes(interface, [call.inputs for call in calls if call.component == name])
        if single:
            dims = ", ".join(f"{dim} ({size})" for dim, size in single.items())
            rows.append(Row(name, "axes", "", None, note=f"of {name}, other sizes of {dims}"))
    return rows


def beyond_rows(components: list[Component], export: Export, shapes: dict[str, list[Shape]]) -> list[Row]:
    """For each component with shapes that the export has no memory for, how many these are: nobody calls it so."""
    rows = []
    for component in components if export.engine.is_bounded else []:
        made = promised_shapes(component, shapes[component.name], export.interfaces[component.name])
        count = sum(shape not in made for shape in shapes[component.name])
        if count:
            note = f"{count} of {len(shapes[component.name])} shapes are larger than what memory is reserved for"
            rows.append(Row(component.name, "edge", "", None, note=note))
    return rows


def real_shapes(component: Component) -> list[Shape]:
    """A few, since each costs a run of the whole model: the twin has been through all edges."""
    if component.given:
        return list(component.shapes)
    if component.cache is None:
        return [Shape(2, 19, 7, 3), Shape(1, 13, 1, 0, media=1)]
    return [Shape(2, 7, 9, 3), Shape(1, 6, 0, 0), Shape(1, 1, 12, 0)]


def load_model(cls: Any, folder: Path, dtype: str, trust_remote_code: bool) -> torch.nn.Module:
    if is_quantized(folder):
        return load_dequantized(cls, folder, dtype, trust_remote_code).eval()
    try:
        model = cls.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True,
                                    trust_remote_code=trust_remote_code)  # fmt: skip
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"{folder} cannot be loaded: {error}", code="not-found",
                          hint="give a folder with config.json and safetensors weights") from error  # fmt: skip
    return model.eval()


def cpu_seconds() -> float:
    """Of this process and those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
