"""From a configuration to a capture: observe the twin, trace the full-size model without weights, write."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass, field, replace

import torch

from . import weightless
from .caches import on_cpu
from .components import Component, Inputs, Shape, find_components
from .dims import Dims, narrowed, observe_dims, parse_shape
from .structures import identifier, named_leaves
from .trace import Traced, trace
from .wiring import wiring
from .writer import GraphEntry, Manifest, write_capture

logger = logging.getLogger(__name__)


@dataclass
class Session:
    """One model on its way to a capture. ``twin`` has real weights, ``traced`` one graph a component."""

    config: object
    model_class: type
    task: str
    twin: torch.nn.Module
    components: list[Component]
    dims: dict[str, Dims] = field(default_factory=dict)
    traced: list[Traced] = field(default_factory=list)
    #: weights that a checkpoint may lack, since the model computes them
    computed: list[str] = field(default_factory=list)
    #: CPU seconds inside torch: "export" and "serialize"
    cpu_seconds: dict[str, float] = field(default_factory=lambda: {"export": 0.0, "serialize": 0.0})


def open_session(config, task: str | None = None, *, shape: str | None = None, prefill: bool = False) -> Session:
    """Builds the twin and finds its components. ``shape`` narrows dims (``batch=1,sequence=1..2048``)."""
    from .twin import build, model_class
    from .twin.build import narrowed as own_part

    limits = parse_shape(shape or "")
    twin = build(config, task=task)
    components = find_components(twin, prefill=prefill)
    cls = model_class(config, task)
    session = Session(own_part(config, cls), cls, task or "", twin, components)
    for component in components:
        session.dims[component.name] = narrowed(observe_dims(component, twin), limits)
    return session


def trace_session(
    session: Session, report: Callable[[str], None] = lambda text: None, *, attention: str = "split"
) -> None:
    """Traces every component of the model that ``session.config`` describes, at its full size. With ``attention="whole"``
    attention is one op of the graphs, where the model's code lets it be chosen."""
    from .attention import whole_attention
    from .patches import shape_patches, tracing_patches

    shape = trace_shape(session.config)
    model = weightless.build_on_meta(session.model_class, session.config)
    inputs = None
    with contextlib.suppress(Exception), shape_patches(model):
        inputs = {each.name: _inputs_to_trace(each, model, shape) for each in session.components}
    model = weightless.without_weights(model)
    session.computed = weightless.computed_weights(model)
    if inputs is None:
        # Code that computes with values does not run on meta; fake tensors stand for values that nobody knows, but are
        # several times slower.
        with weightless.fake_mode(model):
            inputs = {each.name: _inputs_to_trace(each, model, shape) for each in session.components}
    inputs = {name: [on_cpu(value) for value in made] for name, made in inputs.items()}
    with tracing_patches(model), whole_attention(model) if attention == "whole" else contextlib.nullcontext():
        for component in session.components:
            report(f"tracing {component.name}")
            traced = _trace_free_or_fixed(model, component, inputs.pop(component.name), session.dims[component.name])
            session.traced.append(traced)
            session.cpu_seconds["export"] += traced.export_cpu_seconds


def _inputs_to_trace(component: Component, model: torch.nn.Module, shape: Shape) -> list[Inputs]:
    """What the component is traced with; and, where sizes of media may turn out to be fixed, at the model's own sizes."""
    media = [component.traced_media, *([component.own_media] if component.together else [])]
    return [component.inputs(model, replace(shape, media=each)) for each in media]


def _trace_free_or_fixed(model: torch.nn.Module, component: Component, inputs: list[Inputs], dims: Dims) -> Traced:
    """The component's graph. Where a trace fixes one of the dims that go ``together``, or fails, all of them are fixed, at
    the sizes that the model was made for instead of those that it was traced with."""
    try:
        traced = trace(model, component, inputs[0], dims)
        lost = {traced.dims.names[item["input"]][item["dim"]] for item in traced.specialized}
        if lost.isdisjoint(component.together):
            return traced
    except Exception as error:
        if not component.together:
            raise
        logger.debug("%s is traced again at a fixed size: %s", component.name, error)
    return trace(model, component, inputs[1], dims, fixed=component.together)


def trace_shape(config) -> Shape:
    """Sizes to trace at: distinct, and longer than two chunks of whatever the model works in."""
    longest = max(chunk_sizes(config), default=0)
    return Shape(2, 19 + 2 * longest, 23 + 2 * longest, 3, media=1)


def chunk_sizes(config) -> list[int]:
    """Sizes of chunks that the code of a model may branch on, by the names that configurations give them."""
    return _integers(config, ("chunk_size",))


def shape_limits(session: Session) -> tuple[int, ...]:
    """Lengths at which the twin changes its ways: windows, chunks, and where a scaled rotary embedding sets in."""
    from .patches.rotary import rotary_limits

    config = session.twin.config
    windows = _integers(config, ("sliding_window", "attention_window", "local_attention", "window_size"))
    return tuple(
        sorted({size for size in (*windows, *chunk_sizes(config), *rotary_limits(session.twin)) if 2 < size <= 32})
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
    graphs = [
        GraphEntry(each.component.name, each.program, each.dims.names, each.dims.ranges, each.dims.sums, each.output_names,
                   each.input_paths, cache=_cache_layout(each), specialized=each.specialized,
                   samples=_sample_call(session, each), computed=session.computed)
        for each in session.traced
    ]  # fmt: skip
    manifest = Manifest(
        session.model_class.__name__, session.task, configuration, wiring(session.traced), versions=versions()
    )
    session.cpu_seconds["serialize"] += write_capture(path, graphs, manifest)


def _cache_layout(traced: Traced) -> dict | None:
    """Which inputs carry state from call to call, and which output each comes from."""
    argument = traced.component.cache
    if argument is None:
        return None
    pairs = []
    for name, path in traced.input_paths.items():
        if path.split(".")[0] == argument:
            output = path.replace(argument, "present", 1)
            pairs.append({"input": name, "path": path, "output": output if output in traced.output_names else None})
    return {"argument": argument, "states": pairs}


def _sample_call(session: Session, traced: Traced) -> dict[str, torch.Tensor]:
    """What the twin's component may be called with, small, by graph input; nothing if it cannot be that small."""
    small = Shape(2, 5, 3, 1)
    for shape in (small, replace(small, media=traced.component.own_media), trace_shape(session.config)):
        try:
            made = named_leaves(traced.component.inputs(session.twin, shape))
        except Exception:  # noqa: BLE001 - models have smallest inputs of their own
            continue
        samples = {identifier(name): tensor for name, tensor in made.items()}
        if samples.keys() == traced.input_paths.keys() and not _misses_fixed_sizes(samples, traced):
            return samples
    return {}


def _misses_fixed_sizes(samples: dict[str, torch.Tensor], traced: Traced) -> bool:
    """Whether media have another size than the one that the graph is for."""
    return any(samples[item["input"]].shape[item["dim"]] != item["value"] for item in traced.specialized
               if traced.dims.names[item["input"]][item["dim"]] in traced.component.together)  # fmt: skip


def versions() -> dict[str, str]:
    import transformers

    try:
        from .._core import __version__ as own
    except ImportError:
        own = "unbuilt"
    return {"argosy": own, "torch": torch.__version__, "transformers": transformers.__version__}
