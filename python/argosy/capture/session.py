"""From a configuration to a capture: observe the twin, trace the full-size model without weights, write."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import sympy
import torch

from ..errors import ExportError
from ..extensions import loaded_versions
from ..patching import apply_patches
from . import weightless
from .attempts import freest
from .caches import on_cpu
from .components import Component, Inputs, Shape, at_own_sizes
from .finding import find_components
from .conditions import all_hold
from .shapes_only import Run
from .dims import Dims, Limits, check_names, narrowed, observe_dims, parse_shape, reach
from ..structures import identifier, named_leaves
from .trace import Traced, has_sizes_by_values, trace, without_numbers
from .wiring import wiring
from .writer import Content, GraphEntry, Manifest, capture_content, write_content

logger = logging.getLogger(__name__)


@dataclass
class Session:
    """One model on its way to a capture. ``twin`` has real weights, ``traced`` one graph a component."""

    config: Any
    model_class: type
    task: str
    twin: torch.nn.Module
    components: list[Component]
    dims: dict[str, Dims] = field(default_factory=dict)
    #: what dims were narrowed to on request
    limits: Limits = field(default_factory=dict)
    traced: list[Traced] = field(default_factory=list)
    #: weights that a checkpoint may lack, since the model computes them
    computed: list[str] = field(default_factory=list)
    #: weights that are equal to others unless a checkpoint says otherwise
    ties: dict[str, str] = field(default_factory=dict)
    #: CPU seconds inside torch: "export" and "serialize"
    cpu_seconds: dict[str, float] = field(default_factory=lambda: {"export": 0.0, "serialize": 0.0})
    #: why nothing can be checked on the twin, which then has no weights; empty: it can be
    unchecked: str = ""


def open_session(
    config, task: str | None = None, *, shape: str | None = None, prefill: bool = False, inputs: Sequence[Path] = ()
) -> Session:
    """Builds the twin and finds its components. ``shape`` narrows dims (``batch=1,sequence=1..2048``); ``inputs`` are files of
    what ``forward`` is called with, where the user gives that."""
    from .twin import build, model_class
    from .twin.build import narrowed as own_part

    limits = parse_shape(shape or "")
    if inputs:
        return _session_of(config, task, limits, inputs, prefill)
    twin = build(config, task=task, reach=reach(limits))
    components = find_components(twin, prefill=prefill)
    cls = model_class(config, task)
    session = Session(own_part(config, cls), cls, task or "", twin, components, limits=limits)
    observed = {component.name: observe_dims(component, twin) for component in components}
    check_names(limits, list(observed.values()))
    session.dims = {name: narrowed(dims, limits) for name, dims in observed.items()}
    return session


def _session_of(config, task: str | None, limits: Limits, inputs: Sequence[Path], prefill: bool) -> Session:
    """The session of a model with given inputs, whose forward is one graph."""
    from .given import find_given
    from .twin import model_class
    from .twin.build import narrowed as own_part

    if prefill:
        raise ExportError("--inputs makes one graph of forward, --prefill asks for two", code="usage", hint="leave out one of them")
    found = find_given(inputs, config, task, reach(limits))
    cls = model_class(config, task)
    own = own_part(config, cls)
    twin = found.twin or weightless.build_on_meta(cls, own, torch.float32)
    check_names(limits, [found.dims])
    return Session(own, cls, task or "", twin, [found.component], {"model": narrowed(found.dims, limits)}, limits,
                   unchecked=found.refusal)  # fmt: skip


def trace_session(
    session: Session, report: Callable[[str], None] = lambda text: None, *, attention: str = "split"
) -> None:
    """Traces every component of the model that ``session.config`` describes, at its full size. With ``attention="whole"``
    attention is one op of the graphs, where the model's code lets it be chosen. Components whose pictures turn out to have one
    size have it from then on."""
    from .attention import whole_attention
    from .patches import tracing_patches

    model = weightless.build_on_meta(session.model_class, session.config)
    inputs = None
    with contextlib.suppress(Exception):
        inputs = {each.name: inputs_to_trace(session, each, model) for each in session.components}
    model = weightless.without_weights(model)
    session.computed, session.ties = weightless.computed_weights(model), weightless.ties(model)
    if inputs is None:
        # Code that computes with values does not run on meta; fake tensors stand for values that nobody knows, but are
        # several times slower.
        with weightless.fake_mode(model):
            inputs = {each.name: _inputs_to_trace(session, each, model) for each in session.components}
    inputs = {name: [on_cpu(value) for value in made] for name, made in inputs.items()}
    components: list[Component] = []
    whole = whole_attention(model) if attention == "whole" else contextlib.nullcontext()
    with apply_patches("dynamo"), tracing_patches(model), whole:
        for component in session.components:
            report(f"tracing {component.name}")
            made = inputs.pop(component.name)
            traced = _trace_component(session, model, component, made)
            session.traced.append(traced)
            components.append(traced.component)
            session.cpu_seconds["export"] += traced.export_cpu_seconds
    session.components = components


def inputs_to_trace(session: Session, component: Component, model: torch.nn.Module, run: Run | None = None) -> list[Inputs]:
    """What the component is traced with; and, where sizes of media may turn out to be fixed, at the model's own sizes.
    ``model`` is on meta: code that computes with values does not run there. ``run`` calls the ops of its run."""
    from .patches import shape_patches

    with shape_patches(model, run):
        return _inputs_to_trace(session, component, model)


def _inputs_to_trace(session: Session, component: Component, model: torch.nn.Module) -> list[Inputs]:
    shape = reaching(component, trace_shape(session.config), session.limits)
    media = [component.traced_media, *([component.own_media] if component.together else [])]
    return [component.inputs(model, replace(shape, media=each)) for each in media]


def _trace_freest(model: torch.nn.Module, component: Component, inputs: list[Inputs], dims: Dims) -> Traced:
    """The component's graph. Where a trace cannot keep all of the dims that go ``together`` free, all of them are fixed, at the
    sizes that the model was made for instead of those that it was traced with."""

    def attempt(fixed: bool) -> Traced:
        if fixed:
            return trace(model, at_own_sizes(component), inputs[1], dims, fixed=component.together)
        return trace(model, component, inputs[0], dims)

    sides = {identifier(name): [axis for axis, dim in axes.items() if dim in component.together] for name, axes in dims.names.items()}
    return freest(model, attempt, {name: axes for name, axes in sides.items() if axes})[0]


def _trace_component(session: Session, model: torch.nn.Module, component: Component, inputs: list[Inputs]) -> Traced:
    if component.constants:
        return _trace_values(session, model, component)
    try:
        traced = _trace_freest(model, component, inputs, session.dims[component.name])
        if component.by_values is None or not (traced.specialized and has_sizes_by_values(traced.program)):
            return traced
        logger.debug("%s has fixed sizes, and others that values tell", component.name)
    except Exception as failed:  # code that computes with values in ways of its own
        if component.by_values is None:
            raise
        logger.debug("%s is traced for one size: %s", component.name, failed)
    return _trace_values(session, model, component.by_values)


def _trace_values(session: Session, model: torch.nn.Module, component: Component) -> Traced:
    """The component's graph for calls of one size."""
    on_meta = weightless.build_on_meta(session.model_class, session.config)
    inputs = on_cpu(inputs_to_trace(session, component, on_meta)[0])
    dims = session.dims[component.name]
    return trace(model, component, inputs, dims, fixed=tuple(dims.ranges))


def trace_shape(config) -> Shape:
    """Sizes to trace at: distinct, longer than two chunks of whatever the model works in, and multiples of nothing: code
    that pads to whole chunks is traced padding."""
    longest = max(chunk_sizes(config), default=0)
    sequence = sympy.nextprime(18 + 2 * longest)
    return Shape(2, sequence, sympy.nextprime(sequence), 3, media=1)


#: The part of a shape that makes a dim longer.
_MADE_LONGER = {"batch": "batch", "sequence": "sequence", "encoder_sequence": "sequence", "past_sequence": "past",
                "decoder_sequence": "past", "total_sequence": "past"}  # fmt: skip


def reaching(component: Component, shape: Shape, limits: Limits) -> Shape:
    """``shape`` with dims that are as long as ``limits`` ask for at least: code that branches on a length is traced on
    the side that is wanted."""
    for name, (low, high) in limits.items():
        missing = low - component.symbols(shape).get(name, low)
        if missing > 0 and name in _MADE_LONGER:
            more = missing if high is None else missing + min(3, high - low)
            shape = replace(shape, **{_MADE_LONGER[name]: getattr(shape, _MADE_LONGER[name]) + more})
    return shape


def require_limits(session: Session) -> None:
    """Raises where a graph is not right in all of the ranges that were asked for."""
    for traced in session.traced:
        for guard in traced.guards:
            if guard.dim not in session.limits:
                continue
            low, high = session.limits[guard.dim]
            asked = f"{guard.dim}={low}..{'' if high is None else high}"
            if guard.high is not None and high is not None and high > guard.high:
                other = f"{guard.dim}={low}..{guard.high}, or {guard.dim}={guard.high + 1}..{high}"
            elif guard.low is not None and low < guard.low:
                other = f"{guard.dim}={guard.low}..{'' if high is None else high}"
            else:
                continue
            line = f" ({guard.where})" if guard.where else ""
            raise ExportError(
                f"{traced.component.name} cannot be one graph for {asked}: the model's code takes another way beyond "
                f"{guard.condition}{line}",
                code="usage",
                hint=f"write --shape {other}",
            )


def chunk_sizes(config) -> list[int]:
    """Sizes of chunks that the code of a model may branch on, by the names that configurations give them."""
    return _integers(config, ("chunk_size",))


def shape_limits(session: Session) -> tuple[int, ...]:
    """Lengths at which the twin changes its ways: windows, chunks, and where a scaled rotary embedding sets in."""
    from .patches.rotary import rotary_limits
    from .twin.rotary import LONGROPE_LIMIT

    config = session.twin.config
    windows = _integers(config, ("sliding_window", "attention_window", "local_attention", "window_size"))
    return tuple(
        sorted({size for size in (*windows, *chunk_sizes(config), *rotary_limits(session.twin)) if 2 < size <= LONGROPE_LIMIT})
    )


def _integers(config, endings: tuple[str, ...]) -> list[int]:
    """Positive numbers of a configuration, and of those inside it, whose names end so."""
    found = []
    for name, value in vars(config).items():
        if name.endswith(endings) and isinstance(value, int) and not isinstance(value, bool) and 0 < value <= 4096:
            found.append(value)
        elif hasattr(value, "to_dict") and hasattr(value, "model_type"):
            found += _integers(value, endings)
    return found


def write_session(session: Session, path: str | os.PathLike, configuration: dict) -> None:
    write_content(path, session_content(session, configuration))


def session_content(session: Session, configuration: dict) -> Content:
    graphs = [
        GraphEntry(each.component.name, each.program, each.dims.names, each.dims.ranges, each.dims.sums, each.output_names,
                   each.input_paths, cache=_cache_layout(each), specialized=each.specialized, guards=each.guards,
                   samples=_sample_call(session, each), computed=session.computed)
        for each in session.traced
    ]  # fmt: skip
    manifest = Manifest(
        session.model_class.__name__, session.task, configuration, wiring(session.traced), session.ties, versions()
    )
    content = capture_content(graphs, manifest)
    session.cpu_seconds["serialize"] += content.serialize_seconds
    return content


def _cache_layout(traced: Traced) -> dict | None:
    argument = traced.component.cache
    return None if argument is None else cache_layout(argument, traced.input_paths, traced.output_names)


def cache_layout(argument: str, input_paths: Mapping[str, str], output_names: Collection[str]) -> dict:
    """Which inputs carry state from call to call, and which output each comes from."""
    pairs = []
    for name, path in input_paths.items():
        if path.split(".")[0] == argument:
            output = path.replace(argument, "present", 1)
            pairs.append({"input": name, "path": path, "output": output if output in output_names else None})
    return {"argument": argument, "states": pairs}


def _sample_call(session: Session, traced: Traced) -> dict[str, torch.Tensor]:
    """What the component may be called with, small, by graph input; nothing if it cannot be that small."""
    component, conditions = traced.component, [guard.condition for guard in traced.guards]
    shapes = component.shapes[:1] if component.given else (Shape(2, 5, 3, 1), trace_shape(session.config))
    for shape in shapes:
        shape = reaching(component, shape, session.limits)
        if not all_hold(conditions, component.symbols(shape)):
            continue
        try:
            made = named_leaves(component.inputs(session.twin, shape))
        except Exception:  # noqa: BLE001 - models have smallest inputs of their own
            continue
        twins = {identifier(name): tensor for name, tensor in made.items()}
        if samples := for_all_layers(twins, traced.dims.names, list(traced.input_paths)):
            return samples
    return {}


def for_all_layers(
    samples: dict[str, torch.Tensor], dims: dict[str, dict[int, str]], names: list[str]
) -> dict[str, torch.Tensor]:
    """A tensor for each of ``names``: the twin's, or that of another layer of the twin where it has fewer. Axes of ``dims``
    vary, and must be alike in all layers that may stand in; the graph knows the sizes of the others. Nothing if a name has
    no tensor."""
    free: dict[str, set[tuple[int, ...]]] = {}
    stand_in: dict[str, torch.Tensor] = {}
    for name, tensor in samples.items():
        pattern = without_numbers(name)
        stand_in.setdefault(pattern, tensor)
        free.setdefault(pattern, set()).add(tuple(tensor.shape[axis] for axis in sorted(dims.get(name, {}))))
    found = {}
    for name in names:
        pattern = without_numbers(name)
        if name in samples:
            found[name] = samples[name]
        elif len(free.get(pattern, ())) == 1:
            found[name] = stand_in[pattern]
    return found if len(found) == len(names) else {}


def versions() -> dict[str, str]:
    import transformers

    try:
        from .._core import __version__ as own
    except ImportError:
        own = "unbuilt"
    return {**loaded_versions(), "argosy": own, "torch": torch.__version__, "transformers": transformers.__version__}
