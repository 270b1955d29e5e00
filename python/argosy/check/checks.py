"""The two checks: of a configuration, on a twin; of an export, on its own weights."""

from __future__ import annotations

import gc
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..capture.check import edge_shapes
from ..capture.components import Component, Shape
from ..capture.session import Session
from ..errors import ExportError
from .calls import ExpectedCall, expected_call
from .engines import ENGINES, EngineError, EngineProcess, Export, find_export
from .greedy import ExpectedTokens, expected_tokens, run_tokens
from .interface import fits, promised_shapes
from .observed import observed_calls
from .rows import Row, run_call

Report = Callable[[str], None]
CALLS = ("edge", "observed", "greedy")


@dataclass
class Checked:
    """What a check found."""

    kind: str
    engine: str
    model_class: str
    task: str
    tolerance: float
    rows: list[Row] = field(default_factory=list)
    cpu_seconds: float = 0.0

    @property
    def ok(self) -> bool:
        """At least one call was made, and none was wrong."""
        return any(row.ok for row in self.rows) and not any(row.ok is False for row in self.rows)

    def document(self) -> dict[str, Any]:
        from ..capture.session import versions

        return {
            "format": "argosy-check",
            "version": 1,
            "kind": self.kind,
            "engine": self.engine,
            "versions": versions(),
            "model_class": self.model_class,
            "task": self.task,
            "ok": self.ok,
            "tolerance": self.tolerance,
            "cpu_seconds": round(self.cpu_seconds, 2),
            "rows": [{name: _strict(value) for name, value in row.columns().items()} for row in self.rows],
        }


def _strict(value: Any) -> Any:
    """JSON has no infinity."""
    return "Infinity" if isinstance(value, float) and not math.isfinite(value) else value


@dataclass
class TwinRequest:
    """What is exported, as ``argosy export`` is asked for it."""

    model: Path
    engine: str = "pt2"
    task: str | None = None
    shape: str | None = None
    prefill: bool = False
    #: of the weights; "auto": the configuration's
    dtype: str = "auto"
    trust_remote_code: bool = False
    #: further arguments of the export, such as ``--opset=18``
    options: tuple[str, ...] = ()
    #: the command-line program that exports the twin
    program: str = "argosy"
    #: what the export is a bundle for; "": for none
    bundle_engine: str = ""


def check_twin(request: TwinRequest, report: Report = lambda text: None) -> Checked:
    """Builds the twin of a configuration, exports it as the real one is exported, and compares all components: in float32,
    where differences are small enough to tell, and at a few shapes in the dtype that is asked for."""
    from ..capture.configuration import load_config, set_dtype
    from ..capture.dims import parse_shape, reach
    from ..capture.session import open_session
    from ..capture.twin import shrink

    start = _cpu_seconds()
    report("building the twin")
    positions = reach(parse_shape(request.shape or ""))
    config = shrink(load_config(request.model, trust_remote_code=request.trust_remote_code), reach=positions)
    engine = ENGINES[request.engine]
    asked = request.dtype
    if asked == "auto":
        asked = engine.replaced_dtypes.get(_dtype_name(config), _dtype_name(config))
    set_dtype(config, "float32")
    session = open_session(config, request.task, shape=request.shape, prefill=request.prefill)
    checked = Checked("twin", engine.name, session.model_class.__name__, session.task, engine.twin_tolerance)
    with tempfile.TemporaryDirectory(prefix="argosy-twin-") as name:
        folder = Path(name)
        _save(session.twin, folder / "twin", request)
        _check_twin_in("float32", session, folder, request, checked, report)
        if request.bundle_engine:
            checked.rows += _check_twin_bundle(session, folder, request, report)
        if asked != "float32":
            set_dtype(session.config, asked)
            session.traced.clear()
            _check_twin_in(asked, session, folder, request, checked, report)
    checked.cpu_seconds = _cpu_seconds() - start
    return checked


def _check_twin_in(
    dtype: str, session: Session, folder: Path, request: TwinRequest, checked: Checked, report: Report
) -> None:
    from ..capture.configuration import canonical
    from ..capture.session import shape_limits, trace_session, write_session
    from ..capture.weight_plan import make_weight_plan, write_weight_plan

    saved = folder / "twin"
    trace_session(session, report)
    write_session(session, folder / "twin.capture", canonical(session.config.to_dict()))
    plan = make_weight_plan(saved, task=request.task, dtype=dtype, trust_remote_code=request.trust_remote_code)
    write_weight_plan(plan, folder / "plan.json")
    report("exporting the twin")
    engine = ENGINES[request.engine]
    output = folder / (dtype if engine.is_folder else f"{dtype}{engine.suffix}")
    _export(request, folder, dtype, output)
    export = find_export(output)
    report("comparing")
    components = session.components
    if dtype == "float32":
        limits = shape_limits(session)
        shapes = {each.name: edge_shapes(each, limits) for each in components}
        checked.rows += beyond_rows(components, export, shapes)
        calls = edge_calls(session.twin, components, export, shapes)
        calls += observed_calls(session.twin, components, export.manifest)
        tokens = expected_tokens(session.twin, components, count=1)
        _run(checked, export, calls, tokens, checked.tolerance)
        return
    model = _load(session.model_class, saved, dtype, request.trust_remote_code)
    shapes = {each.name: real_shapes(each) for each in components}
    calls = edge_calls(model, components, export, shapes)
    for call in calls:
        call.origin = f"edge, {dtype}"
    _run(checked, export, calls, [], export.engine.tolerance(dtype))


def _check_twin_bundle(session: Session, folder: Path, request: TwinRequest, report: Report) -> list[Row]:
    """Greedy tokens of the twin in the engine that the export is for; a row that says so if that is not there."""
    from ..capture.twin import save
    from ..run.bundles import open_bundle
    from ..run.runners import RUNNERS, BundleProcess, EngineMissing, RunError
    from .tokens import NEW_TOKENS, expected_runs, run_bundle

    runner = RUNNERS.get(request.bundle_engine)
    if runner is None or not session.twin.can_generate():
        return []
    report(f"running the twin in {runner.title}")
    save(session.twin, folder / "twin")
    try:
        _export(request, folder, "float32", folder / "bundle", ("--for", request.bundle_engine))
    except ExportError as error:
        # The model itself is exported: it is sizes of the twin that the engine does not take, as Whisper's.
        note = f"{runner.title} does not run the twin: {str(error).splitlines()[0]}"
        return [Row("bundle", "engine", "", None, note=note)]
    expected = expected_runs(session.twin, None, NEW_TOKENS, batches=False, own_settings=runner.own_settings)
    try:
        with BundleProcess(open_bundle(folder / "bundle")) as process:
            return [run_bundle(process, each, NEW_TOKENS, ENGINES[request.engine].twin_tolerance) for each in expected]
    except EngineMissing as error:
        return [Row("bundle", "engine", "", None, note=str(error))]
    except RunError as error:
        return [Row("bundle", "open", "", False, note=str(error))]


def _dtype_name(config: Any) -> str:
    dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or "float32"
    return str(dtype).removeprefix("torch.")


def check_export(
    path: Path, against: Path, *, engine: str | None = None, calls: tuple[str, ...] = CALLS,
    trust_remote_code: bool = False, report: Report = lambda text: None,
) -> Checked:  # fmt: skip
    """Compares an export with the checkpoint in ``against``. The eager model is gone before the export is opened, so that
    memory holds the weights once."""
    from ..capture.configuration import load_config
    from ..capture.session import open_session
    from ..capture.twin import model_class

    start = _cpu_seconds()
    export = find_export(path, engine)
    task = export.manifest.get("task") or None
    report("loading the checkpoint")
    config = load_config(against, trust_remote_code=trust_remote_code)
    cls = model_class(config, task)
    if cls.__name__ != export.manifest["model_class"]:
        raise ExportError(
            f"{path} is a {export.manifest['model_class']}, {against} is a {cls.__name__}",
            code="invalid-input",
            hint="give the model that was exported",
        )
    if not export.has_components:
        raise ExportError(f"{path} was made for a task: its methods are not the model's components, and keep states",
                          code="invalid-input", hint="check the tokens of the folder that it is in, with --tokens 32")  # fmt: skip
    prefill = "prefill" in export.interfaces
    components = open_session(config, task, prefill=prefill).components
    model = _load(cls, against, export.dtype, trust_remote_code)
    tolerance = export.engine.tolerance(export.dtype)
    checked = Checked("full", export.engine.name, cls.__name__, task or "", tolerance)
    report("running the eager model")
    expected: list[ExpectedCall] = []
    if "edge" in calls:
        shapes = {component.name: real_shapes(component) for component in components}
        checked.rows += beyond_rows(components, export, shapes)
        expected += edge_calls(model, components, export, shapes)
    if "observed" in calls:
        expected += observed_calls(model, components, export.manifest)
    tokens = expected_tokens(model, components, against) if "greedy" in calls else []
    del model
    gc.collect()
    report("running the export")
    _run(checked, export, expected, tokens, tolerance)
    checked.cpu_seconds = _cpu_seconds() - start
    return checked


def check_bundle(
    path: Path, against: Path, *, count: int = 32, trust_remote_code: bool = False, engine_python: str | None = None,
    report: Report = lambda text: None,
) -> Checked:  # fmt: skip
    """Compares a bundle's greedy tokens, in its engine, with those of the checkpoint in ``against``."""
    from ..capture.configuration import load_config
    from ..capture.twin import model_class
    from ..run.bundles import open_bundle
    from ..run.runners import BundleProcess, EngineMissing, RunError, find_runner
    from .media import has_media, media_row
    from .tokens import expected_runs, run_bundle, tokenizer_row

    start = _cpu_seconds()
    bundle = open_bundle(path)
    runner = find_runner(bundle)
    if not bundle.graphs:
        raise ExportError(f"{path} has no models", code="invalid-input", hint="give what argosy export wrote")
    report("loading the checkpoint")
    config = load_config(against, trust_remote_code=trust_remote_code)
    cls = model_class(config, bundle.manifest.get("task") or None)
    engine = next(row for row in ENGINES.values() if row.suffix == bundle.graphs[0].suffix)
    dtype = engine.dtype(str(bundle.graphs[0]))
    model = _load(cls, against, dtype, trust_remote_code)
    if not model.can_generate():
        raise ExportError(f"{cls.__name__} generates no tokens", code="invalid-input", hint="--tokens is for models that do")
    tolerance = engine.tolerance(dtype)
    checked = Checked("tokens", runner.name, cls.__name__, bundle.manifest.get("task") or "", tolerance)
    report("running the eager model")
    # Models that see or hear are shown one thing at a time.
    batches = runner.batches and not has_media(bundle)
    expected = expected_runs(model, against, count, batches=batches, own_settings=runner.own_settings,
                             pads_behind=runner.pads_behind)  # fmt: skip
    try:
        if (row := media_row(model, against, bundle, count)) is not None:
            checked.rows.append(row)
            expected = [each for each in expected if not each.reason]  # not all of them go on from text alone
        del model
        gc.collect()
        report(f"running the bundle in {runner.title}")
        with BundleProcess(bundle, engine_python) as process:
            if (row := tokenizer_row(process, against)) is not None:
                checked.rows.append(row)
            checked.rows += [run_bundle(process, each, count, tolerance) for each in expected]
    except EngineMissing as error:
        raise ExportError(str(error), code="not-found") from error
    except RunError as error:  # what cannot be opened is as wrong as can be
        checked.rows.append(Row("bundle", "open", "", False, note=str(error)))
    if not any(row.origin in ("tokens", "open") and row.ok is not None for row in checked.rows):
        raise ExportError(f"{cls.__name__} was not compared: {'; '.join(row.note for row in checked.rows if row.note)}",
                          code="invalid-input", hint="the eager model must generate from text, a picture or a sound")  # fmt: skip
    checked.cpu_seconds = _cpu_seconds() - start
    return checked


def real_shapes(component: Component) -> list[Shape]:
    """A few, since each costs a run of the whole model: the twin has been through all edges."""
    if component.cache is None:
        return [Shape(2, 19, 7, 3), Shape(1, 13, 1, 0, media=1)]
    return [Shape(2, 7, 9, 3), Shape(1, 6, 0, 0), Shape(1, 1, 12, 0)]


def edge_calls(
    model: torch.nn.Module, components: list[Component], export: Export, shapes: dict[str, list[Shape]]
) -> list[ExpectedCall]:
    """Calls of every component at those of ``shapes`` that the export is for."""
    calls = []
    for component in components:
        interface = export.interfaces.get(component.name)
        if interface is None:
            raise ExportError(f"the export has no {component.name}", code="invalid-input", hint="export it again")
        made = [expected_call(component, model, shape)
                for shape in promised_shapes(component, shapes[component.name], interface)]  # fmt: skip
        calls += [call for call in made if fits(call.inputs, interface)]
    return calls


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


def _run(
    checked: Checked, export: Export, calls: list[ExpectedCall], tokens: list[ExpectedTokens], tolerance: float
) -> None:
    try:
        process = EngineProcess(export)
    except EngineError as error:  # what cannot be opened is as wrong as can be
        checked.rows.append(Row(", ".join(export.interfaces), "open", "", False, note=str(error)))
        return
    with process as engine:
        checked.rows += [run_call(engine, call, tolerance) for call in calls]
        checked.rows += [run_tokens(engine, export.manifest, each, tolerance) for each in tokens]


def _load(cls: type, folder: Path, dtype: str, trust_remote_code: bool) -> torch.nn.Module:
    try:
        model = cls.from_pretrained(folder, dtype=getattr(torch, dtype), local_files_only=True,
                                    trust_remote_code=trust_remote_code)  # fmt: skip
    except (OSError, ValueError, RuntimeError) as error:
        raise ExportError(f"{folder} cannot be loaded: {error}", code="not-found",
                          hint="give a folder with config.json and safetensors weights") from error  # fmt: skip
    return model.eval()


def _save(twin: torch.nn.Module, folder: Path, request: TwinRequest) -> None:
    folder.mkdir()
    twin.save_pretrained(folder)
    if request.trust_remote_code:
        for file in request.model.glob("*.py"):
            shutil.copy(file, folder)


def _export(request: TwinRequest, folder: Path, dtype: str, output: Path, more: tuple[str, ...] = ()) -> None:
    program = shutil.which(request.program) or request.program
    command = [program, "export", request.engine, "--check", "off", "--model", str(folder / "twin"), "--dtype", dtype,
               "--capture", str(folder / "twin.capture"), "--plan", str(folder / "plan.json"), "-o", str(output), *request.options, *more]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise ExportError(f"{program} cannot be started: {error}", code="not-found",
                          hint="name the argosy program by --program") from error  # fmt: skip
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        errors = list(dict.fromkeys(line for line in lines if line.startswith("error"))) or lines[-1:]
        more = f" (and {len(errors) - 1} other errors)" if len(errors) > 1 else ""
        last = "\n".join(lines[-8:])
        raise ExportError(
            f"the twin was not exported: {errors[0] if errors else done.returncode}{more}\n{last}", code="engine-failed"
        )


def _cpu_seconds() -> float:
    """Of this process and those that it waited for."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system
