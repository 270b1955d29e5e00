"""Live models to `torch.export.ExportedProgram`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch

from ..capture.flat import without_fake_cache
from ..capture.guards import guards_to_check
from ..capture.keeping import unchanged
from ..capture.own_ops import taken_apart
from ..capture.patches import tracing_patches
from ..capture.patches.sizes import ends_of_any_length
from ..capture.patches.vision import live_patches
from ..capture.swap import replaced
from ..observer import InputObserver
from ..observer.calls import copy_value
from ..observer.shapes import map_tensors
from ..patching import apply_fx_node_fixes, apply_fx_program_fixes, apply_patches
from .axes import free_axes, trace_freest
from .base import HfExporter
from .configs import DynamoConfig, ExportConfigMixin
from .experts import EXPERTS, traceable_experts
from .live import observed, patch_model_config
from .live_dims import shapes_by_argument
from .prepare import prepare_for_export
from .pytrees import register_cache_pytrees_for_model, register_containers
from .sanity import check_program
from .tensors import get_leaf_tensors


class DynamoExporter(HfExporter):
    """Exports a live model to an `ExportedProgram` of plain ATen ops.

    ::

        program = DynamoExporter().export(model, inputs, DynamoConfig(dynamic=True))
        outputs = program.module()(**inputs)

    Caches go in and come out as objects of their classes. A cache with sliding windows is right as long as its past is
    shorter than the window: a full one has forgotten how many tokens it saw, and takes the number of the sample.
    """

    config_class = DynamoConfig

    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: Mapping[str, Any] | InputObserver,
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
    ) -> torch.export.ExportedProgram:
        """The program of ``model(**sample_inputs)``. Neither the model nor the inputs are changed."""
        sample_inputs, config = observed(sample_inputs, DynamoConfig.accept(config))
        program = _trace(model, sample_inputs, config)
        if config.check:
            check_program(model, sample_inputs, program, lambda inputs: get_leaf_tensors(program.module()(**inputs)))
        return program


def _trace(model: torch.nn.Module, sample_inputs: Mapping[str, Any], config: DynamoConfig) -> torch.export.ExportedProgram:
    """The program of a call that takes and returns caches and other containers as they are."""
    with unchanged(model):
        model, inputs, flags = prepare_for_export(model, dict(copy_value(dict(sample_inputs))))
    register_cache_pytrees_for_model(model)
    register_containers(dict(inputs))
    shapes = None if config.dynamic_shapes is None else shapes_by_argument(inputs, config.dynamic_shapes)

    def trace(fixed: bool = False) -> torch.export.ExportedProgram:
        is_automatic = shapes is None and config.dynamic
        return torch.export.export(
            model,
            (),
            kwargs=dict(inputs),
            dynamic_shapes=get_auto_dynamic_shapes(inputs, fixed) if is_automatic else shapes,
            strict=config.strict,
            prefer_deferred_runtime_asserts_over_guards=config.prefer_deferred_runtime_asserts_over_guards,
        )

    with (
        torch.no_grad(),
        apply_patches("dynamo"),
        apply_patches(EXPERTS),
        tracing_patches(model, experts=None),
        patch_model_config(model, flags),
        patch_forward_signature(model, inputs),
        traceable_experts(model),
        live_patches(model),
        unchanged(model),
        without_fake_cache(),
        ends_of_any_length(),
    ):
        program = trace_freest(model, inputs, trace)[0] if shapes is None and config.dynamic and not config.strict else trace()
        program = taken_apart(program)
    program._guards_code = guards_to_check(program)
    for backend in (EXPERTS, "dynamo"):
        apply_fx_node_fixes(backend, program.graph_module)
        apply_fx_program_fixes(backend, program)
    return program


def get_auto_dynamic_shapes(inputs: Mapping[str, Any], fixed: bool = False) -> dict[str, Any]:
    """Dynamic shapes that let every axis of every tensor vary, as far as the model's code allows; with `fixed` all but the
    height and width of pictures."""
    return map_tensors(dict(inputs), free_axes(inputs, fixed))


@contextmanager
def patch_forward_signature(model: torch.nn.Module, inputs: Mapping[str, Any]) -> Iterator[None]:
    """A forward with these parameters and no others for a with block: torch.export puts what comes by ``**kwargs`` into a
    bundle."""

    def factory(original: Callable[..., Any]) -> Callable[..., Any]:
        def forward(**given: Any) -> Any:
            return original(**given)

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        forward.__signature__ = inspect.Signature([inspect.Parameter(name, kind) for name in inputs])  # type: ignore[attr-defined]
        return forward

    with replaced(model, "forward", factory(model.forward)):
        yield


def reset_model_state(model: torch.nn.Module) -> None:
    """Sets attributes to None that a trace by other means left as tensors without data. Exporters here leave none."""
    for module in model.modules():
        for name, value in vars(module).items():
            if isinstance(value, torch._subclasses.FakeTensor):
                setattr(module, name, None)
