"""Captures of deep models from traces of shallow ones: layers that are alike are traced a few times, and the rest are copies.

A model of the same widths but few layers is traced. Both it and the full model run on the meta device, where each layer of the
full one has to call what a traced one calls, on tensors from the same places. Then the graph at full depth is made from the trace
(``src/stamp``). What this does not cover raises ``NotStamped``, and the model is traced whole.
"""

from __future__ import annotations

import contextlib
import copy
import gc
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import torch

from ..errors import ExportError
from . import weightless
from .components import Component, Inputs
from .layer_calls import CallsOfLayers
from .layer_kinds import DEPTH_FIELDS, depths, described, layer_lists, stacks
from .layer_selection import Selection, selections
from .patches import shape_patches
from .session import (Session, cache_layout, inputs_to_trace, require_limits, session_content,
                      trace_session)  # fmt: skip
from .twin.request import nested
from .shapes_only import Run
from .stamp_difference import LIFTED, difference
from .wiring import wires
from .writer import Content, configuration_keys, to_json

#: A model of fewer layers is traced whole.
LEAST_DEPTH = 6
#: How many shallow models are traced before the full one is.
_MOST_TRACED = 2


class NotStamped(Exception):
    """Why a model has to be traced whole."""

    def __init__(self, why: str, *, always: bool = False, tried: bool = True) -> None:
        super().__init__(why)
        #: holds for whichever layers are traced
        self.always = always
        #: it looked as if it could be stamped
        self.tried = tried


@dataclass
class _Model:
    """One depth of the model, on the meta device."""

    session: Session
    model: torch.nn.Module
    #: by list of layers: what each is like
    layers: dict[str, list[str]]
    #: by component: what runs outside of layers
    outside: list[str]


@contextlib.contextmanager
def _uncollected() -> Iterator[None]:
    """Without looking for garbage: what is made of the full model is all in use, and there is much of it."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def stamped_content(
    session: Session, configuration: dict, report: Callable[[str], None] = lambda text: None, *, attention: str = "split"
) -> Content:
    """The capture of ``session``'s model as a whole trace would give it. Raises ``NotStamped``."""
    cut = [depth for depth in depths(session.config) if depth >= LEAST_DEPTH]
    if not cut:
        raise NotStamped("it has few layers", tried=False)
    if any(component.given for component in session.components):
        raise NotStamped("its inputs are the caller's own", tried=False)
    try:
        from .. import _core  # noqa: F401
    except ImportError:
        raise NotStamped("the package was not built", tried=False) from None
    calls = CallsOfLayers()
    model = _build(session)
    full = _described(session, model, _lists(session, model, cut), calls)
    problem, traced = "as many layers would be traced", 0
    for chosen in _candidates(session, full, cut, calls):
        problem = _unlike(full, chosen)
        if problem:
            continue
        try:
            return _copied(session, configuration, full, chosen, report, attention)
        except NotStamped as error:
            if error.always:
                raise
            problem, traced = str(error), traced + 1
        if traced == _MOST_TRACED:
            break
    raise NotStamped(problem)


def _lists(session: Session, model: torch.nn.Module, cut: list[int]) -> list[str]:
    """Paths of the lists of layers whose length follows the configuration's number of layers."""
    shallow = _shallow(session, {depth: list(range(2)) for depth in cut})
    found = stacks(model, _build(shallow))
    if not found:
        raise NotStamped("its configuration does not say how many layers it has")
    return found


@_uncollected()
def _build(session: Session) -> torch.nn.Module:
    try:
        return weightless.build_on_meta(session.model_class, session.config)
    except Exception as error:  # noqa: BLE001 - configurations refuse depths in ways of their own
        raise NotStamped(f"it cannot be built with fewer layers ({first_line(error)})") from error


def _shallow(session: Session, selection: Selection) -> Session:
    """The same model with some of its layers: ``selection`` says which, by depth."""
    config = copy.deepcopy(session.config)
    for part in nested(config):
        for name, value in list(vars(part).items()):
            if isinstance(value, bool):
                continue
            if isinstance(value, int) and name in DEPTH_FIELDS and value in selection:
                vars(part)[name] = len(selection[value])
            elif isinstance(value, (list, tuple)) and len(value) in selection:
                vars(part)[name] = type(value)(value[i] for i in selection[len(value)])
    return replace(session, config=config, traced=[], computed=[], ties={},
                   cpu_seconds=dict.fromkeys(session.cpu_seconds, 0.0))  # fmt: skip


@_uncollected()
def _described(session: Session, model: torch.nn.Module, lists: list[str], calls: CallsOfLayers,
               full: torch.nn.Module | None = None) -> _Model:  # fmt: skip
    texts = {path: described(model, path, layer_lists(full or model, path)) for path in lists}
    outside = []
    for component in session.components:
        try:
            inputs = inputs_to_trace(session, component, model, calls.shapes)[0]
            found = calls(model, lists, inputs, partial(_run_on_meta, component, model, inputs))
        except Exception as error:  # noqa: BLE001 - code of the model's own
            raise NotStamped(f"it does not run on the meta device ({first_line(error)})") from error
        for path, layers in texts.items():
            texts[path] = [f"{text} {found.get((path, i), '')}" for i, text in enumerate(layers)]
        outside.append(found[None])
    return _Model(session, model, texts, outside)


def _run_on_meta(component: Component, model: torch.nn.Module, inputs: Inputs, run: Run) -> Any:
    with shape_patches(model, run):
        return component.run(model, model.forward, inputs)


def _candidates(session: Session, full: _Model, cut: list[int], calls: CallsOfLayers) -> Iterator[_Model]:
    """Shallow models, from which the full one may be known."""
    for series in selections({depth: _kinds_of_depth(full, depth) for depth in cut}):
        for each in series:
            with contextlib.suppress(NotStamped):
                shallow = _shallow(session, each)
                yield _described(shallow, _build(shallow), list(full.layers), calls, full.model)


def _kinds_of_depth(full: _Model, depth: int) -> list[tuple[str, ...]]:
    """What the layers of all lists of that length are like, side by side."""
    alike = [texts for texts in full.layers.values() if len(texts) == depth]
    return list(zip(*alike, strict=True)) if alike else [()] * depth


def _unlike(full: _Model, shallow: _Model) -> str:
    """What of the full model the shallow one does not show; empty if there is nothing."""
    if full.outside != shallow.outside:
        return "what runs outside of its layers depends on their number"
    for path, texts in full.layers.items():
        known = shallow.layers[path]
        if known[0] != texts[0]:
            return f"the first of {path} depends on the number of layers"
        for i, text in enumerate(texts):
            if i and text not in known[1:]:
                return f"{path}.{i} is like none of those that a shallow model has"
        if any(text not in texts for text in known):
            return f"the layers of {path} in a shallow model are like none of the full model"
    return ""


def _copied(session: Session, configuration: dict, full: _Model, shallow: _Model, report: Callable[[str], None],
            attention: str) -> Content:  # fmt: skip
    """The full capture from the trace of the shallow model, which has to say itself in the same way."""
    count = sum(len(layers) for layers in shallow.layers.values())
    report(f"tracing {count} of {sum(len(layers) for layers in full.layers.values())} layers")
    content = _traced(shallow.session, configuration, attention)
    _add_seconds(session, shallow.session)
    _refuse_sub_graphs(content)
    if problem := difference(_at_depth(content, shallow, shallow, configuration, _constants_of(content)), content):
        raise NotStamped(f"the graph of a shallow model is not made of its layers: {problem}")
    return _at_full_depth(content, shallow, full, configuration)


def _refuse_sub_graphs(content: Content) -> None:
    for entry in content.document["components"]:
        if json.loads(content.entries[entry["companion"]]).get("subgraphs"):
            raise NotStamped("the graph has sub-graphs", always=True)


def _constants_of(content: Content) -> Callable[[str, str], torch.Tensor | None]:
    """What a trace had of constants but for numbers that it lifted, which a copy has to know itself."""
    return lambda component, name: None if LIFTED.search(name) else content.constants[component].get(name)


def _add_seconds(session: Session, shallow: Session) -> None:
    for name, seconds in shallow.cpu_seconds.items():
        session.cpu_seconds[name] += seconds


def _traced(session: Session, configuration: dict, attention: str) -> Content:
    trace_session(session, attention=attention)
    require_limits(session)
    return session_content(session, configuration)


@_uncollected()
def _at_full_depth(content: Content, shallow: _Model, full: _Model, configuration: dict) -> Content:
    ready = weightless.with_own_values(full.model)
    buffers = dict(ready.named_buffers())
    computed = {name: weightless.tensor_of(ready, name) for name in weightless.computed_weights(ready)}

    def own(component: str, name: str) -> torch.Tensor | None:
        return computed.get(name, buffers.get(name))

    return _at_depth(content, shallow, full, configuration, own, ties=weightless.ties(ready))


def _at_depth(content: Content, shallow: _Model, wanted: _Model, configuration: dict,
              constant: Callable[[str, str], torch.Tensor | None], ties: dict[str, str] | None = None) -> Content:  # fmt: skip
    """``content``, the capture of ``shallow``, for the depth of ``wanted``. ``constant`` knows what no checkpoint holds, by
    component and name."""
    lists = []
    for path, texts in wanted.layers.items():
        number = {text: i for i, text in enumerate(dict.fromkeys([*shallow.layers[path], *texts]))}
        lists.append((path, [number[text] for text in shallow.layers[path]], [number[text] for text in texts]))
    result = Content({}, {}, {}, {}, content.serialize_seconds)
    described, ports = [], []
    for entry in content.document["components"]:
        made, ports_of_entry = _component(content, entry, lists, result, shallow, wanted, constant)
        described.append(made)
        ports.append(ports_of_entry)
    result.document = {**content.document, **configuration_keys(configuration), "components": described, "wiring": wires(ports)}
    if ties is not None:
        result.document["ties"] = list(ties.items())
    else:
        result.document["ties"] = list(weightless.ties(wanted.model).items())
    return result


def _component(content: Content, entry: dict, lists: list, result: Content, shallow: _Model, wanted: _Model,
               constant: Callable[[str, str], torch.Tensor | None]) -> tuple[dict, tuple[str, list[str], list[str]]]:  # fmt: skip
    from .. import _core

    name = entry["name"]
    texts = (content.entries[entry["graph"]].decode(), content.entries[entry["companion"]].decode())
    interface = to_json({"inputs": entry["inputs"], "outputs": entry["outputs"]}).decode()
    try:
        graph, companion, inputs, outputs = _core.stamp_graph(*texts, interface, lists)
    except ExportError as error:
        raise NotStamped(error.message) from error
    result.entries[entry["graph"]] = graph.encode()
    result.entries[entry["companion"]] = companion.encode()
    known = {each["name"]: each for each in entry["inputs"]}
    users = [each for each in inputs if each[2] in known]
    _check_weights([each for each in inputs if each[2] not in known], shallow.model, wanted.model)
    result.constants[name] = _constants(content.constants[name], inputs, known, lambda own: constant(name, own))
    samples = content.samples[name]
    result.samples[name] = {new: samples[old] for new, _, old, _ in users if old in samples}
    described = {
        **entry,
        "inputs": [_renamed_input(known[old], new, path) for new, path, old, _ in users],
        "outputs": [{**next(each for each in entry["outputs"] if each["name"] == old), "name": new} for new, old in outputs],
        "specialized": [{**each, "input": new} for each in entry["specialized"] for new, _, old, _ in users if old == each["input"]],
    }  # fmt: skip
    paths = {new: path for new, path, _, _ in users}
    names = [new for new, _ in outputs]
    if entry["cache"] is not None:
        described["cache"] = cache_layout(entry["cache"]["argument"], paths, names)
    return described, (name, list(paths.values()), names)


def _renamed_input(described: dict, name: str, path: str) -> dict:
    return {**described, "name": name, **({"path": path} if "path" in described else {})}


def _check_weights(weights: list[tuple[str, str, str, str]], shallow: torch.nn.Module, wanted: torch.nn.Module) -> None:
    """Every weight of the graph is one of the model's, as large as that which it was made from."""
    have, like = weightless.named_tensors(wanted), weightless.named_tensors(shallow)
    for _, path, _, old in weights:
        if old not in like:
            continue  # a number that the trace lifted
        if path not in have or have[path].shape != like[old].shape or have[path].dtype != like[old].dtype:
            raise NotStamped(f"the model has no weight {path} like {old}")


def _constants(shallow: dict[str, torch.Tensor], inputs: list[tuple[str, str, str, str]], known: dict,
               constant: Callable[[str], torch.Tensor | None]) -> dict[str, torch.Tensor]:  # fmt: skip
    found = {}
    for _, path, name, old in inputs:
        if name in known or old not in shallow:
            continue
        own = constant(path)
        if own is None and path != old and not LIFTED.search(path):
            raise NotStamped(f"the constant {path} is not the model's own")
        found[path] = shallow[old] if own is None else own
    return found


def first_line(error: BaseException) -> str:
    return next((line for line in str(error).splitlines() if line.strip()), type(error).__name__)
