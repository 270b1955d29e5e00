"""A call of a live model as a graph over tensors by name, by the trace that makes captures."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch
from torch.export import Dim, ExportedProgram

from ..capture.flat import FlatProgram, export_flat
from ..capture.keeping import unchanged
from ..capture.own_ops import refuse_own_ops
from ..capture.patches import tracing_patches
from ..capture.patches.vision import live_patches
from ..structures import Path, flatten, identifier
from ..errors import ExportError
from ..observer.calls import copy_value, is_setting
from ..patching import apply_fx_node_fixes, apply_fx_program_fixes, apply_patches, patched
from ..observer import InputObserver
from .axes import free_axes, trace_freest
from .configs import DynamoConfig
from .experts import EXPERTS
from .float32 import NARROW, give_back, weights_in_float32
from .live_dims import specs_by_path
from .prepare import prepare_for_export
from .pytrees import LENGTHS, register_cache_pytrees
from .tensors import cast_tensors, dotted

TracedConfig = TypeVar("TracedConfig", bound=DynamoConfig)


@dataclass
class LiveProgram:
    program: ExportedProgram
    #: what it was traced with
    inputs: dict[str, Any]
    output_names: list[str]
    #: what callers may want to know, a line each
    notes: list[str] = field(default_factory=list)


def is_input(path: Path) -> bool:
    """Tensors that merely describe a layer of a cache are constants."""
    return not is_setting(path)


def observed(sample_inputs: Any, config: TracedConfig) -> tuple[Mapping[str, Any], TracedConfig]:
    """The inputs and axes that an `InputObserver` saw, where one stands for the inputs."""
    if not isinstance(sample_inputs, InputObserver):
        return sample_inputs, config
    if config.dynamic and config.dynamic_shapes is None:
        config = dataclasses.replace(config, dynamic_shapes=_where_allowed(sample_inputs.infer_dynamic_shapes()))
    return sample_inputs.infer_arguments(), config


def _where_allowed(shapes: Any) -> Any:
    """Axes that vary, as far as the model's code allows."""
    if isinstance(shapes, (list, tuple)):
        return type(shapes)(map(_where_allowed, shapes))
    if isinstance(shapes, dict):
        return {key: _where_allowed(value) for key, value in shapes.items()}
    return None if shapes is None else Dim.AUTO


def trace_live(model: torch.nn.Module, sample_inputs: Mapping[str, Any], config: DynamoConfig, backend: str) -> LiveProgram:
    """The graph of ``model(**sample_inputs)``. Neither the model nor the inputs are changed."""
    with unchanged(model):
        model, inputs, flags = prepare_for_export(model, dict(copy_value(dict(sample_inputs))))
    notes = []
    if any(tensor.dtype is NARROW for tensor in model.parameters()):
        notes.append("weights of bfloat16 are converted to float32: engines on CPUs do not compute in the other")
        inputs = {name: cast_tensors(value, torch.float32, None) for name, value in inputs.items()}
    _mark_lengths(dict(inputs))
    options = {
        "strict": config.strict,
        "prefer_deferred_runtime_asserts_over_guards": config.prefer_deferred_runtime_asserts_over_guards,
    }
    with (
        apply_patches("dynamo"),
        apply_patches(EXPERTS),
        apply_patches(backend),
        patch_model_config(model, flags),
        tracing_patches(model),
        live_patches(model),
        weights_in_float32(model) as originals,
    ):

        def trace(fixed: bool = False) -> FlatProgram:
            shapes = _shapes(inputs, config, fixed)
            return export_flat(model, _run, inputs, shapes, name=dotted, is_input=is_input, **options)

        if config.dynamic and config.dynamic_shapes is None and not config.strict:
            flat, more = trace_freest(model, inputs, trace)
            notes += more
        else:
            flat = trace()
        give_back(flat.program, originals)
    for each in (EXPERTS, "dynamo", backend):
        apply_fx_node_fixes(each, flat.program.graph_module)
        apply_fx_program_fixes(each, flat.program)
    refuse_own_ops(flat.program, {"onnx": "ONNX", "executorch": "ExecuTorch"}[backend])
    return LiveProgram(flat.program, dict(inputs), flat.output_names, notes)


def _run(model: torch.nn.Module, forward: Callable, inputs: dict[str, Any]) -> Any:
    """States that a model writes to are copied first: a graph returns what became of them and changes no input."""
    return forward(**{name: value if isinstance(value, torch.Tensor) else _cloned(value) for name, value in inputs.items()})


def _cloned(value: Any) -> Any:
    leaves, _ = flatten(value)
    copied = copy.deepcopy(value, {id(tensor): tensor.clone() for _, tensor in leaves})
    for layer in _layers(copied):
        for name in [name for name, part in vars(layer).items() if isinstance(part, _LengthOfKeys)]:
            setattr(layer, name, layer.keys.shape[-2])
    return copied


class _LengthOfKeys:
    """Stands for a number of tokens that a layer of a cache counts: in a graph it is a size, and no number."""


def _mark_lengths(value: Any) -> None:
    for layer in _layers(value):
        for name in LENGTHS:
            count = getattr(layer, name, None)
            if isinstance(count, int) and count == layer.keys.shape[-2]:
                setattr(layer, name, _LengthOfKeys())


def _layers(value: Any) -> Iterator[Any]:
    """The objects in ``value`` that hold keys."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _layers(part)
    elif isinstance(value, Mapping):
        yield from _layers(list(value.values()))
    elif hasattr(value, "__dict__") and not isinstance(value, (torch.Tensor, torch.nn.Module, type)):
        if isinstance(getattr(value, "keys", None), torch.Tensor) and value.keys.dim() > 1:
            yield value
        yield from _layers([part for part in vars(value).values() if isinstance(part, (list, tuple)) or hasattr(part, "layers")])


def _shapes(inputs: Mapping[str, Any], config: DynamoConfig, fixed: bool) -> dict[str, Any]:
    """The axes that vary, by graph input; the sides of pictures do not if they are ``fixed``."""
    leaves, _ = flatten(dict(inputs))
    given = specs_by_path(inputs, config.dynamic_shapes)
    axes = free_axes(inputs, fixed)
    every = config.dynamic and config.dynamic_shapes is None
    return {
        identifier(dotted(path)): axes(tensor) if every else given.get(dotted(path))
        for path, tensor in leaves
        if is_input(path)
    }


@contextlib.contextmanager
def evaluated(model: torch.nn.Module) -> Iterator[None]:
    """An op of training that cannot be lowered has a reason that no op tells."""
    try:
        yield
    except ExportError as error:
        if not model.training or "dropout" not in error.message:
            raise
        raise ExportError(error.message, code=error.code, node=error.node, location=error.location,
                          hint="the model is in training mode: call model.eval() first") from error  # fmt: skip


def _always(value: Any) -> Callable[[Any], Any]:
    return lambda _: value


@contextlib.contextmanager
def patch_model_config(model: torch.nn.Module, output_flags: Mapping[str, Any]) -> Iterator[None]:
    """Output flags on the model's configuration, where it has them, for a with block."""
    config = getattr(model, "config", None)
    with contextlib.ExitStack() as stack:
        for name, value in output_flags.items():
            if value is None or not hasattr(config, name):
                continue
            try:
                stack.enter_context(patched(config, name, _always(value)))
            except ValueError as error:
                raise ExportError(
                    f"{name}={value} is refused by the model's configuration: {error}",
                    code="invalid-input",
                    hint='attentions are returned by one implementation only: call model.set_attn_implementation("eager") first',
                ) from error
        yield


@contextlib.contextmanager
def register_additional_serialization_functions(patch_transformers: bool = False) -> Iterator[None]:
    """pytree knows all caches of transformers, so that ``torch.export`` takes and returns them; also after the with block."""
    register_cache_pytrees()
    yield


@contextlib.contextmanager
def torch_export_patches(patch_transformers: bool = False) -> Iterator[None]:
    """For a with block around ``torch.export`` or ``torch.onnx.export``: caches as above, and with `patch_transformers` all
    patches of code that cannot be traced. Exporters here do so by themselves."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(register_additional_serialization_functions())
        for backend in ("dynamo", EXPERTS, "capture") if patch_transformers else ():
            stack.enter_context(apply_patches(backend))
        yield
