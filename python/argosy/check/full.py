"""Checks of an export beside the checkpoint that it was made of: of its components or methods, and of its tokens."""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from ..errors import ExportError
from .checked import Checked
from .comparison import Comparison, Report, bundle_tolerance, cpu_seconds, load_model, real_shapes
from .engines import ENGINES, MIXED, Export, eager_dtype, find_export, open_files
from .rows import Row
from .samples import take_samples
from .schemes import QuantizedModel

CALLS = ("edge", "observed", "greedy", "text")


def check_export(
    path: Path, against: Path, *, engine: str | None = None, calls: tuple[str, ...] = CALLS, text: Path | None = None,
    audio: Path | None = None, trust_remote_code: bool = False, report: Report = lambda text: None,
    inputs: Sequence[Path] = (),
) -> Checked:  # fmt: skip
    """Compares an export with the checkpoint in ``against``, also on the words of ``text`` or the sound ``audio``. ``inputs``: files
    of what it was captured with, if it was."""
    return _check_components(find_export(path, engine), against, calls, text, audio, trust_remote_code, report, inputs)


def _check_components(
    export: Export, against: Path, calls: tuple[str, ...], text: Path | None, audio: Path | None, trust_remote_code: bool,
    report: Report, inputs: Sequence[Path] = (),
) -> Checked:  # fmt: skip
    """The eager model is gone before the export is opened, so that memory holds the weights once."""
    from ..capture.configuration import load_config
    from ..capture.input_files import read_inputs
    from ..capture.session import open_session
    from ..capture.twin import model_class

    start = cpu_seconds()
    task = export.manifest.get("task") or None
    report("loading the checkpoint")
    config = load_config(against, trust_remote_code=trust_remote_code)
    cls: Any = model_class(config, task)
    if cls.__name__ != export.manifest["model_class"]:
        raise ExportError(
            f"{export.files[0]} is a {export.manifest['model_class']}, {against} is a {cls.__name__}",
            code="invalid-input",
            hint="give the model that was exported",
        )
    prefill = "prefill" in export.interfaces
    components = open_session(config, task, prefill=prefill, inputs=inputs).components
    given = [read_inputs(file) for file in inputs]
    kind, samples = export.dtype, None
    dtype = eager_dtype(kind)
    if dtype != "float32" and not cls.can_generate():  # one after the other, as both are large
        samples = take_samples(load_model(cls, against, "float32", trust_remote_code), export, against, text, audio, given)
        gc.collect()
    model = load_model(cls, against, dtype, trust_remote_code)
    if dtype == "float32" and (kind == MIXED or export.manifest.get("quantized")) and not cls.can_generate():
        samples = take_samples(model, export, against, text, audio, given)
    comparison = Comparison(model, components, export, export.engine.tolerance(kind), folder=against, text=text,
                            in_place=True, samples=samples)  # fmt: skip
    checked = Checked("full", export.engine.name, cls.__name__, task or "", comparison.tolerance)
    report("running the eager model")
    shapes = {component.name: real_shapes(component) for component in components}
    comparison.prepare(shapes, edges="edge" in calls, observed="observed" in calls, tokens=3 if "greedy" in calls else 0,
                       words="text" in calls)  # fmt: skip
    del model
    gc.collect()
    report("running the export")
    checked.tolerance = comparison.tolerance
    checked.rows += comparison.compare()
    checked.cpu_seconds = cpu_seconds() - start
    return checked


def check_bundle(
    path: Path, against: Path, *, count: int = 0, text: Path | None = None, audio: Path | None = None, variant: str = "",
    adapters: Mapping[str, Path] | None = None, trust_remote_code: bool = False, engine_python: str | None = None,
    report: Report = lambda text: None, inputs: Sequence[Path] = (),
) -> Checked:  # fmt: skip
    """Compares a bundle's greedy tokens, in its engine, with those of the checkpoint in ``against``; tokens of a quantised one
    with those of eager in the same scheme, and how many are those of the model as it is. The graphs of a model that generates
    none are called as those of other exports, unless a ``count`` of tokens is asked for. ``adapters``: folders by names, of those
    that the bundle has in files of their own; each is switched on."""
    from ..capture.configuration import load_config
    from ..capture.twin import model_class
    from ..run.bundles import open_bundle
    from ..run.runners import BundleProcess, EngineMissing, RunError, find_runner
    from .adapters import adapter_rows, expected_with
    from .answers import answers
    from .media import has_media, media_row
    from .tokens import NEW_TOKENS, agreement_row, expected_runs, run_bundle, tokenizer_row

    start = cpu_seconds()
    bundle = open_bundle(path, variant)
    runner = find_runner(bundle)
    if not bundle.graphs:
        raise ExportError(f"{path} has no models", code="invalid-input", hint="give what argosy export wrote")
    report("loading the checkpoint")
    config = load_config(against, trust_remote_code=trust_remote_code)
    cls: Any = model_class(config, bundle.manifest.get("task") or None)
    engine = next(row for row in ENGINES.values() if row.suffix == bundle.graphs[0].suffix)
    if not cls.can_generate():
        if count:
            raise ExportError(f"{cls.__name__} generates no tokens", code="invalid-input", hint="--tokens is for models that do")
        return _check_components(open_files(engine, bundle.graphs), against, CALLS, text, audio, trust_remote_code, report, inputs)
    count = count or NEW_TOKENS
    kind = engine.dtype(str(bundle.graphs[0]))
    dtype = eager_dtype(kind)
    before = None
    if dtype != "float32":  # one after the other, as both are large
        before = answers(load_model(cls, against, "float32", trust_remote_code), against, text, audio)
        gc.collect()
    model = load_model(cls, against, dtype, trust_remote_code)
    tolerance = engine.tolerance(kind)
    checked = Checked("tokens", runner.name, cls.__name__, bundle.manifest.get("task") or "", tolerance)
    report("running the eager model")
    # Models that see or hear are shown one thing at a time.
    settings = {"batches": runner.batches and not has_media(bundle), "own_settings": runner.own_settings,
                "pads_behind": runner.pads_behind}  # fmt: skip
    quantized = bundle.manifest.get("quantized") or []
    if quantized and dtype == "float32":
        before = answers(model, against, text, audio)
    run_eager = partial(expected_runs, model, against, count, **settings)
    original = run_eager()
    expected, scheme = original, contextlib.nullcontext()
    if quantized:
        scheme = QuantizedModel(model, quantized)
        with scheme:
            expected = run_eager()
        checked.tolerance = tolerance = bundle_tolerance(scheme, tolerance)
    if before is not None:
        with scheme:
            checked.rows += before.rows(answers(model, against, text, audio))
    with scheme:
        with_adapters = expected_with(model, adapters or {}, run_eager)
    try:
        with scheme:
            row = media_row(model, against, bundle, count)
        if row is not None:
            checked.rows.append(row)
            expected = [each for each in expected if not each.reason]  # not all of them go on from text alone
        del model, scheme, run_eager
        gc.collect()
        report(f"running the bundle in {runner.title}")
        with BundleProcess(bundle, engine_python, on_cpu=True) as process:
            if (row := tokenizer_row(process, against)) is not None:
                checked.rows.append(row)
            checked.rows += [run_bundle(process, each, count, tolerance) for each in expected]
            checked.rows += adapter_rows(process, bundle.adapters, with_adapters, expected, count, tolerance)
            if quantized:
                checked.rows.append(agreement_row(process, original, count))
    except EngineMissing as error:
        raise ExportError(str(error), code="not-found") from error
    except RunError as error:  # what cannot be opened is as wrong as can be
        checked.rows.append(Row("bundle", "open", "", False, note=str(error)))
    if not any(row.origin in ("tokens", "open") and row.ok is not None for row in checked.rows):
        raise ExportError(f"{cls.__name__} was not compared: {'; '.join(row.note for row in checked.rows if row.note)}",
                          code="invalid-input", hint="the eager model must generate from text, a picture or a sound")  # fmt: skip
    checked.cpu_seconds = cpu_seconds() - start
    return checked

