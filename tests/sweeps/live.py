"""A live model in one of the exporters of ``argosy.exporters`` or ``transformers.exporters``, part by part, beside eager.

Each part is exported once and run at three shapes: the traced one, another one, and a short one with a single row. Parts are
what the exporters' own utilities take a generative model apart into; any other model is one part.
"""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from argosy.capture.twin import Sizes, sample_inputs
from argosy.compare import difference
from argosy.check.executorch_worker import open_method, open_program
from argosy.check.onnx_worker import open_session
from argosy.errors import ExportError
from argosy.observer.calls import copy_value
from argosy.patching import patched
from .model_state import ModelState
from .outcome import Report, first_line

OURS, PEER = "argosy.exporters", "transformers.exporters"

#: Largest difference to eager, of the output's scale.
TOLERANCE = 1e-4
#: The second is the shorter one: on the same side of windows and rotary limits, which change what generate() passes.
SHAPES = {"traced": Sizes(batch=2, sequence=19, padding=3), "other": Sizes(batch=3, sequence=13, padding=2, media=1)}
#: Padded, since generate() passes on other arguments where nothing is. Some twins have no input that small.
_EDGES = (Sizes(batch=1, sequence=5, padding=1), Sizes(batch=1, sequence=13, padding=1))

#: Exporter, configuration, its options.
_FORMATS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "dynamo": ("DynamoExporter", "DynamoConfig", {}),
    "onnx": ("OnnxExporter", "OnnxConfig", {}),
    "executorch": ("ExecutorchExporter", "ExecutorchConfig", {"backend": "xnnpack"}),
}

Parts = dict[str, tuple[torch.nn.Module, dict[str, Any]]]


def run(twin: torch.nn.Module, report: Report, package: str, kind: str, where: tuple[str, ...] = ("traced", "other", "edge")) -> None:
    """``kind`` is dynamo, onnx or executorch; ``where`` are the shapes that count."""
    try:
        exporters, utils = importlib.import_module(package), importlib.import_module(f"{package}.utils")
    except ImportError as error:
        report.finish("absent", f"this version of transformers has no exporters: {error}")
        return
    name, config, options = _FORMATS[kind]
    exporter, config = getattr(exporters, name)(), getattr(exporters, config)(dynamic=True, **options)
    report.step("find parts")
    found = {label: parts_of(twin, SHAPES[label], utils, package == OURS) for label in ("traced", "other")}
    found["edge"] = _first(lambda sizes: parts_of(twin, sizes, utils, package == OURS), _EDGES)
    parts = found["traced"]
    results: dict[str, Any] = {name: {"status": "failed", "reason": "not reached"} for name in parts}
    report.update(components=results)
    if package == OURS and kind != "executorch":  # traced as for ONNX
        report.step("interrupt an export")
        report.update(changed=changed_by_failures(exporter, config, *next(iter(parts.values()))))
    changed = report.values.get("changed", [])
    for name, (module, inputs) in parts.items():
        report.step(f"export {name}")
        state = ModelState(twin)
        try:
            program = exporter.export(module, copy_value(dict(inputs)), config)
        except BaseException as error:  # noqa: BLE001 - torch has errors that are no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            results[name] = {"status": "failed", "reason": first_line(error)}
            changed += state.differences()
        else:
            changed += state.differences()
            report.step(f"check {name}")
            same = {label: found[label][name] for label in where if found[label].get(name, (0, {}))[1].keys() == inputs.keys()}
            results[name] = _outcome({label: _check(kind, package, program, utils, *part) for label, part in same.items()})
        report.update(components=results)
    if package == OURS:
        report.update(changed=changed)
    problems = [f"{name}: {part['reason']}" for name, part in results.items() if part["status"] != "ok"]
    states = {part["status"] for part in results.values()}
    report.finish("failed" if "failed" in states else "wrong" if "wrong" in states else "ok", "; ".join(problems)[:600])


def parts_of(twin: torch.nn.Module, sizes: Sizes, utils: Any, whole: bool) -> Parts:
    """``whole``: also the model itself, where it is taken apart and sees and hears nothing."""
    inputs = sample_inputs(twin, sizes)
    model: Parts = {"model": (twin, inputs)}
    if not getattr(twin, "can_generate", lambda: False)():
        return model
    try:
        parts = utils.decompose_for_generation(twin, copy_value(inputs))
        if utils.is_multimodal(twin):
            whole = False  # such a model is exported in parts
            # generate() runs the encoders before forward, where the peer does not see them.
            parts = {**utils.decompose_multimodal(twin, copy_value(inputs)), **parts}
    except (ExportError, RuntimeError, ValueError, TypeError, AttributeError):
        return model  # What cannot be split may still be exported as a whole.
    return {**model, **parts} if whole else parts


def _first(make: Callable[[Sizes], Parts], choices: tuple[Sizes, ...]) -> Parts:
    for sizes in choices[:-1]:
        try:
            return make(sizes)
        except Exception:  # noqa: BLE001, S112 - a twin refuses an input that is too small in its own way
            continue
    return make(choices[-1])


def _outcome(calls: dict[str, str]) -> dict[str, Any]:
    wrong = [f"{label}: {text}" for label, text in calls.items() if text]
    return {"status": "wrong" if wrong else "ok", "reason": "; ".join(wrong), "calls": {label: not text for label, text in calls.items()}}


def _check(kind: str, package: str, program: Any, utils: Any, module: torch.nn.Module, inputs: dict[str, Any]) -> str:
    """Empty if the program computes what the module does, else what is wrong."""
    # The exporter itself takes flags out of the inputs, so that the program does not know them.
    _, prepared, flags = utils.prepare_for_export(module, copy_value(dict(inputs)))
    with torch.no_grad():
        expected = utils.get_leaf_tensors(module(**copy_value(prepared), **flags))
        try:
            actual = _CALLS[kind, package](program, copy_value(prepared), utils)
        except Exception as error:  # noqa: BLE001 - engines refuse shapes in many ways
            return first_line(error)
    if isinstance(actual, list):
        if len(actual) != len(expected):
            return f"{len(actual)} outputs instead of {len(expected)}"
        actual = dict(zip(expected, actual, strict=True))
    found = difference(expected, actual)
    if found.error:
        return found.error
    return f"{found.worst} is off by {found.abs:.2g}" if found.scaled > TOLERANCE else ""


# ---- how the program of each exporter is called: outputs by name, or in order ----


def _call_torch(program: Any, inputs: dict[str, Any], utils: Any) -> dict[str, torch.Tensor]:
    return utils.get_leaf_tensors(program.module()(**inputs))


def _call_ours(program: Any, inputs: dict[str, Any], utils: Any) -> dict[str, torch.Tensor]:
    return program.outputs_by_name(inputs)


def _call_peer_onnx(program: Any, inputs: dict[str, Any], utils: Any) -> dict[str, torch.Tensor]:
    if getattr(program, "_inference_session", None) is None:
        program.initialize_inference_session(open_session)
    # Names that inputs have too begin with "output.".
    names = [each.name.removeprefix("output.") for each in program.model.graph.outputs]
    return dict(zip(names, program(**inputs), strict=True))


def _call_peer_executorch(program: Any, inputs: dict[str, Any], utils: Any) -> list[torch.Tensor]:
    given = list(utils.get_leaf_tensors(inputs).values())
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.pte"
        with path.open("wb") as file:
            program.write_to_file(file)
        outputs = open_method(open_program(path), "forward")(given)
    return [each for each in outputs if isinstance(each, torch.Tensor)]


_CALLS: dict[tuple[str, str], Callable[[Any, dict[str, Any], Any], Any]] = {
    ("dynamo", OURS): _call_torch,
    ("dynamo", PEER): _call_torch,
    ("onnx", OURS): _call_ours,
    ("onnx", PEER): _call_peer_onnx,
    ("executorch", OURS): _call_ours,
    ("executorch", PEER): _call_peer_executorch,
}


# ---- the model is as it was ----


def changed_by_failures(exporter: Any, config: Any, model: torch.nn.Module, inputs: dict[str, Any]) -> list[str]:
    """What of the model is not as it was after an export that failed in the model's code, and one that was interrupted there."""
    found = []
    last = _last_called(model, inputs)
    for error in (RuntimeError, KeyboardInterrupt):
        state = ModelState(model)
        with _failing(last, error):
            try:
                exporter.export(model, copy_value(dict(inputs)), config)
                found.append(f"no {error.__name__} came out")
            except BaseException as raised:  # noqa: BLE001 - what is raised is what is tested
                if isinstance(raised, SystemExit):
                    raise
        found += [f"{text} after a {error.__name__}" for text in state.differences()]
    return found


def _last_called(model: torch.nn.Module, inputs: dict[str, Any]) -> torch.nn.Module:
    """The module that a call of the model comes to last."""
    called: list[torch.nn.Module] = []
    handles = [part.register_forward_pre_hook(lambda module, _: called.append(module)) for part in model.modules()]
    try:
        with torch.no_grad():
            model(**copy_value(dict(inputs)))
    finally:
        for handle in handles:
            handle.remove()
    return called[-1]


@contextmanager
def _failing(part: torch.nn.Module, error: type[BaseException]) -> Iterator[None]:
    """``part`` fails when it is called."""

    def factory(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(self: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            if self is part:
                raise error("as asked")
            return original(self, *args, **kwargs)

        return forward

    with patched(type(part), "forward", factory):
        yield
