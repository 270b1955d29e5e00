"""The check of a configuration, on a twin: a small model of the same kind, exported as the model itself is."""

from __future__ import annotations

import contextlib
import copy
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import torch

from .captures import edge_shapes
from ..capture.components import Shape
from ..capture.session import Session, shape_limits
from ..errors import ExportError
from .checked import Checked
from .comparison import Comparison, Report, axis_rows, bundle_tolerance, cpu_seconds, load_model, real_shapes
from .engines import ENGINES, MIXED, Export, find_export, open_files
from .rows import Row
from .schemes import QuantizedModel


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
    #: further arguments of the export, such as ``--opset=18``: all that shape its files
    options: tuple[str, ...] = ()
    #: the command-line program that exports the twin
    program: str = "argosy"
    #: what the export is a bundle for; "": for none
    bundle_engine: str = ""
    #: folders of LoRA adapters by names, which the bundle keeps apart
    adapters: Mapping[str, Path] = field(default_factory=dict)
    #: files of what forward is called with, if the user gave any
    inputs: tuple[Path, ...] = ()


def check_twin(request: TwinRequest, report: Report = lambda text: None) -> Checked:
    """Builds the twin of a configuration, exports it as the real one is exported, with every option, and calls it as its
    users do: in float32, where differences are small enough to tell, and at a few shapes in the dtype that is asked for."""
    from ..capture.configuration import load_config, set_dtype
    from ..capture.dims import parse_shape, reach
    from ..capture.session import open_session
    from ..capture.twin import shrink

    start = cpu_seconds()
    report("building the twin")
    positions = reach(parse_shape(request.shape or ""))
    config = load_config(request.model, trust_remote_code=request.trust_remote_code)
    if not request.inputs:  # else the twin is as small as the inputs let it be
        config = shrink(config, reach=positions)
    engine = ENGINES[request.engine]
    asked = request.dtype
    if asked == "auto":
        asked = engine.replaced_dtypes.get(_dtype_name(config), _dtype_name(config))
    set_dtype(config, "float32")
    session = open_session(config, request.task, shape=request.shape, prefill=request.prefill, inputs=request.inputs)
    checked = Checked("twin", engine.name, session.model_class.__name__, session.task, engine.twin_tolerance)
    if session.unchecked:
        checked.unchecked = f"{session.unchecked}; --check full compares with the model's own weights"
        return checked
    if request.inputs:
        session.config = copy.deepcopy(session.twin.config)
    with tempfile.TemporaryDirectory(prefix="argosy-twin-") as name:
        folder = Path(name)
        _save(session.twin, folder / "twin", request)
        _check_in("float32", session, folder, request, checked, report)
        checked.rows += _check_bundle("float32", session, folder, request, report)
        if asked != "float32":
            set_dtype(session.config, asked)
            session.traced.clear()
            _check_in(asked, session, folder, request, checked, report)
            checked.rows += _check_bundle(asked, session, folder, request, report)
    checked.cpu_seconds = cpu_seconds() - start
    return checked


def _check_in(
    dtype: str, session: Session, folder: Path, request: TwinRequest, checked: Checked, report: Report
) -> None:
    from ..capture.configuration import canonical
    from ..capture.session import trace_session, write_session
    from ..capture.weight_plan import make_weight_plan, write_weight_plan

    saved = folder / "twin"
    trace_session(session, report)
    write_session(session, folder / "twin.capture", canonical(session.config.to_dict()))
    plan = make_weight_plan(saved, task=request.task, dtype=dtype, trust_remote_code=request.trust_remote_code)
    write_weight_plan(plan, folder / "plan.json")
    report("exporting the twin")
    engine = ENGINES[request.engine]
    output = folder / (dtype if engine.is_folder else f"{dtype}{engine.suffix}")
    _export(request, session, folder, dtype, output)
    export = find_export(output)
    report("comparing")
    comparison = _comparison(dtype, session, saved, request, export)
    checked.rows += comparison.run(_shapes(dtype, session), observed=dtype == "float32", tokens=int(dtype == "float32"))
    if dtype == "float32" and export.has_components:
        checked.rows += axis_rows(export, comparison.expected.calls)


def _comparison(dtype: str, session: Session, saved: Path, request: TwinRequest, export: Export, suffix: str = "") -> Comparison:
    if export.dtype == MIXED:  # eager in float16 tells how far rounding alone takes this twin
        rounded = load_model(session.model_class, saved, "float16", request.trust_remote_code)
        return Comparison(session.twin, session.components, export, export.engine.tolerance(MIXED),
                          limits=shape_limits(session), suffix=f"{suffix}, {MIXED}", exact=rounded)  # fmt: skip
    if dtype == "float32":
        return Comparison(session.twin, session.components, export, export.engine.twin_tolerance,
                          limits=shape_limits(session), suffix=suffix)  # fmt: skip
    model = load_model(session.model_class, saved, dtype, request.trust_remote_code)
    exact = load_model(session.model_class, saved, dtype, request.trust_remote_code).float()
    return Comparison(model, session.components, export, export.engine.tolerance(dtype), suffix=f"{suffix}, {dtype}", exact=exact)


def _shapes(dtype: str, session: Session) -> dict[str, list[Shape]]:
    """All edges in float32, a few in the dtype that is asked for."""
    limits = shape_limits(session)
    return {each.name: edge_shapes(each, limits) if dtype == "float32" else real_shapes(each) for each in session.components}


def _check_bundle(dtype: str, session: Session, folder: Path, request: TwinRequest, report: Report) -> list[Row]:
    """The twin as a bundle, beside the twin in float32; a row that says so if the engine is not there. Graphs of bundles may
    have ops of the engine's own, which no other run computes. Models that generate run in the engine that the bundle is for;
    of others it takes the graphs as they are, so these are called as components are."""
    from ..capture.twin import save
    from ..run.bundles import open_bundle
    from ..run.runners import RUNNERS, BundleProcess, EngineMissing, RunError
    from .adapters import adapter_rows, expected_with, twin_adapters
    from .fed import fed_rows
    from .tokens import NEW_TOKENS, expected_runs, run_bundle

    runner = RUNNERS.get(request.bundle_engine)
    if runner is None or request.inputs:  # engines call graphs as they know them, not as the user does
        return []
    report(f"running the twin as a bundle for {runner.title}")
    save(session.twin, folder / "twin")
    engine, bundle = ENGINES[request.engine], folder / f"bundle-{dtype}"
    adapters = twin_adapters(request.adapters, session.twin, folder / "adapters")
    flags = [each for name, path in adapters.items() for each in ("--adapter-apart", f"{name}={path}")]
    tolerance = engine.twin_tolerance if dtype == "float32" else engine.tolerance(dtype)
    if f"--{MIXED}" in request.options:
        tolerance = engine.tolerance(MIXED)
    try:
        plan = _plan_with(adapters, dtype, folder, request)
        _export(request, session, folder, dtype, bundle, ("--for", request.bundle_engine, *flags), plan)
    except ExportError as error:
        # The model itself is exported: it is sizes of the twin that the engine does not take, as Whisper's.
        note = f"{runner.title} does not run the twin: {str(error).splitlines()[0]}"
        return [Row("bundle", "engine", "", None, note=note)]
    opened = open_bundle(bundle)
    if not session.twin.can_generate():
        export = open_files(engine, opened.graphs)
        return _comparison(dtype, session, folder / "twin", request, export, ", bundle").run(_shapes(dtype, session))
    scheme: contextlib.AbstractContextManager = contextlib.nullcontext()
    if quantized := opened.manifest.get("quantized"):
        scheme = stored = QuantizedModel(session.twin, quantized, dtype=getattr(torch, dtype))
        tolerance = bundle_tolerance(stored, tolerance)
    run_eager = partial(expected_runs, session.twin, None, NEW_TOKENS, batches=runner.batches, own_settings=runner.own_settings,
                        pads_behind=runner.pads_behind)  # fmt: skip
    with scheme:
        expected = run_eager()
        with_adapters = expected_with(session.twin, adapters, run_eager)
    try:
        with BundleProcess(opened, on_cpu=True) as process:
            with scheme:
                rows = fed_rows(process, session, tolerance) if runner.gives_logits else []
            rows += [run_bundle(process, each, NEW_TOKENS, tolerance) for each in expected]
            return rows + adapter_rows(process, opened.adapters, with_adapters, expected, NEW_TOKENS, tolerance)
    except EngineMissing as error:
        return [Row("bundle", "engine", "", None, note=str(error))]
    except RunError as error:
        return [Row("bundle", "open", "", False, note=str(error))]


def _plan_with(adapters: Mapping[str, Path], dtype: str, folder: Path, request: TwinRequest) -> str:
    """The name of a plan of the twin's weights that has these adapters, too."""
    from ..capture.weight_plan import make_weight_plan, write_weight_plan

    if not adapters:
        return "plan.json"
    plan = make_weight_plan(folder / "twin", task=request.task, dtype=dtype, trust_remote_code=request.trust_remote_code,
                            adapters_apart=adapters)  # fmt: skip
    write_weight_plan(plan, folder / "adapted.json")
    return "adapted.json"


def _dtype_name(config: Any) -> str:
    dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or "float32"
    return str(dtype).removeprefix("torch.")


def _save(twin: torch.nn.Module, folder: Path, request: TwinRequest) -> None:
    folder.mkdir()
    twin.save_pretrained(folder)
    if request.trust_remote_code:
        for file in request.model.glob("*.py"):
            shutil.copy(file, folder)


# ---- the export ------------------------------------------------------------------------------------------------------

#: Values that XNNPACK's smallest groups have.
_SMALLEST_GROUP = 32


def fitted_options(options: tuple[str, ...], twin: torch.nn.Module, dims: set[str]) -> list[str]:
    """``options`` with sizes that the twin has: groups that its rows are made of, layers that it has, and dims that it lets vary."""
    widths = {module.in_features for module in twin.modules() if isinstance(module, torch.nn.Linear)}
    fitted = []
    for option in options:
        flag, _, value = option.partition("=")
        if flag.endswith("-group-size") and int(value) > 0 and not any(width % int(value) == 0 for width in widths):
            option = f"{flag}={_SMALLEST_GROUP}"
        elif flag == "--quantize-block":
            option = f"{flag}={min(int(value), _SMALLEST_GROUP)}"
        elif flag == "--quantize":  # rules for single layers, by their numbers, may be for others than the twin has
            # A twin has floats, of which there are no integers to keep.
            kept = [item for item in value.split(",") if item != "keep" and not re.search(r"\d", item.rpartition("=")[0])]
            option = f"{flag}={','.join(kept or ['int4'])}"
        elif flag == "--shape":
            kept = [item for item in value.split(",") if item.partition("=")[0] in dims]
            if not kept:
                continue
            option = f"{flag}={','.join(kept)}"
        fitted.append(option)
    return fitted


def _ranges(session: Session, folder: Path) -> Path:
    """Between which values the twin's own activations are, at all edges: those of the model are other ones."""
    from .calls import expected_call
    from .ranges import RangeRecorder, write_ranges

    file = folder / "ranges.json"
    if not file.exists():
        recorder = RangeRecorder(session.twin)
        with recorder:
            for component in session.components:
                for shape in _shapes("float32", session)[component.name]:
                    with contextlib.suppress(Exception):  # those that eager refuses are told of where it is compared
                        expected_call(component, session.twin, shape)
        write_ranges(recorder.layers, file)
    return file


def _export(
    request: TwinRequest, session: Session, folder: Path, dtype: str, output: Path, more: tuple[str, ...] = (),
    plan: str = "plan.json",
) -> None:  # fmt: skip
    program = shutil.which(request.program) or request.program
    dims = {name for each in session.dims.values() for axes in each.names.values() for name in axes.values()}
    options = fitted_options(request.options, session.twin, dims)
    if any(option.endswith("=8a8w") for option in options):
        options.append(f"--seen-values={_ranges(session, folder)}")
    command = [program, "export", request.engine, "--check", "off", "--model", str(folder / "twin"), "--dtype", dtype,
               "--capture", str(folder / "twin.capture"), "--plan", str(folder / plan), "-o", str(output), *options, *more]  # fmt: skip
    try:
        done = subprocess.run(command, capture_output=True, text=True)
    except OSError as error:
        raise ExportError(f"{program} cannot be started: {error}", code="not-found",
                          hint="name the argosy program by --program") from error  # fmt: skip
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        errors = list(dict.fromkeys(line for line in lines if line.startswith("error"))) or lines[-1:]
        further = f" (and {len(errors) - 1} other errors)" if len(errors) > 1 else ""
        last = "\n".join(lines[-8:])
        raise ExportError(
            f"the twin was not exported: {errors[0] if errors else done.returncode}{further}\n{last}", code="engine-failed"
        )
