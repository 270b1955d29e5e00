"""Brings a live model and its inputs into the state that a trace needs."""

from __future__ import annotations

import inspect
import logging
import sys
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch

from ..errors import ExportError
from ..observer.calls import copy_value
from ..patching import patched
from .tensors import cast_tensors, module_dtype_and_device

logger = logging.getLogger(__name__)

Preparer = Callable[[torch.nn.Module, MutableMapping[str, Any]], None]

#: Inputs of a loss: an exported graph has none.
_LABELS = ("labels", "label", "future_values", "start_positions", "end_positions", "return_loss")
#: Settings that models take from their configuration, and as arguments would become constants of the graph.
_OUTPUT_FLAGS = ("use_cache", "output_attentions", "output_hidden_states", "output_router_logits", "return_dict")

_PREPARERS: list[tuple[tuple[str, ...], Preparer]] = []


def prepare_for_export(
    model: torch.nn.Module, inputs: MutableMapping[str, Any]
) -> tuple[torch.nn.Module, MutableMapping[str, Any], dict[str, Any]]:
    """Changes `inputs` in place and returns ``(model, inputs, output_flags)``.

    Removes labels and what is None; moves output flags (``use_cache``, ``return_dict``, …) from the inputs to
    `output_flags`, for the trace to set on the model's configuration; adds what the model would compute from the values of
    its inputs, which a trace cannot follow; casts tensors to the model's dtype and device. A model whose attention cannot
    be traced is an `ExportError` that says what to do.
    """
    check_attention(model)
    for name in [name for name, value in inputs.items() if value is None or name in _LABELS]:
        del inputs[name]
    flags = {name: inputs.pop(name) for name in _OUTPUT_FLAGS if name in inputs}
    with torch.no_grad():
        for markers, preparer in _PREPARERS:
            if all(inputs.get(marker) is not None for marker in markers):
                preparer(model, inputs)
    dtype, device = module_dtype_and_device(model)
    for name, value in inputs.items():
        inputs[name] = cast_tensors(value, dtype, device)
    return model, inputs, flags


def register_export_input_preparer(*markers: str) -> Callable[[Preparer], Preparer]:
    """Registers the decorated ``preparer(model, inputs)``, which adds to `inputs` what it computed from their values.

    It is called by `prepare_for_export` when all `markers` are among the inputs. Preparers run in order of registration.
    """

    def decorate(preparer: Preparer) -> Preparer:
        _PREPARERS.append((markers, preparer))
        return preparer

    return decorate


def check_attention(model: torch.nn.Module) -> None:
    """Raises if a part of the model has an attention that is no plain ATen: flash or flex."""
    for path, module in model.named_modules():
        name = getattr(getattr(module, "config", None), "_attn_implementation", None) or ""
        if isinstance(name, str) and ("flash" in name or "flex" in name):
            raise ExportError(
                f"{type(model).__name__} has {name!r}, an attention that cannot be exported",
                code="unsupported-feature",
                location=f"{path or 'the model'} ({type(module).__name__})",
                hint='call model.set_attn_implementation("sdpa") first',
            )


# ---- what models compute from the values of their inputs ----


@register_export_input_preparer("input_ids")
def _add_rope_index(model: torch.nn.Module, inputs: MutableMapping[str, Any]) -> None:
    """Positions of models whose images take part in them: they walk over the tokens, which a trace cannot follow."""
    owner = next((m for m in (model, getattr(model, "base_model", None)) if hasattr(m, "get_rope_index")), None)
    mask, ids = inputs.get("attention_mask"), inputs["input_ids"]
    if owner is None or inputs.get("position_ids") is not None or "past_key_values" in inputs:
        return
    if mask is not None and mask.shape != ids.shape:
        return
    parameters = inspect.signature(owner.get_rope_index).parameters
    required = [name for name, p in parameters.items() if p.default is p.empty and p.kind is p.POSITIONAL_OR_KEYWORD]
    if all(name in inputs for name in required):
        result = owner.get_rope_index(**{name: inputs[name] for name in parameters if name in inputs})
        inputs["position_ids"] = result[0] if isinstance(result, tuple) else result


@register_export_input_preparer()
def _add_helper_results(model: torch.nn.Module, inputs: MutableMapping[str, Any]) -> None:
    """What the forward gets from helpers that take it from ``kwargs`` if it is there.

    Encoders for packed images and audio call functions like ``get_vision_window_index(grid_thw, …, kwargs=kwargs)``: these
    walk over values, unless a caller computed the result before and passed it by the name that they remove from `kwargs`.
    One run of the forward tells these names and results, for any model that follows the convention.
    """
    helpers = _helpers_of(model)
    if not helpers:
        return
    found: dict[str, Any] = {}
    with ExitStack() as stack:
        for name in helpers:
            stack.enter_context(_recording(model, name, found))
        try:
            model(**copy_value(dict(inputs)))
        except Exception as error:  # The trace will fail in the same way and say where; here there is nothing to add.
            logger.debug("%s could not be run to find helper results: %s", type(model).__name__, error)
    for name, value in found.items():
        if name not in inputs and value is not None:
            inputs[name] = value


def _helpers_of(model: torch.nn.Module) -> list[str]:
    """Functions in the model's module with a parameter named ``kwargs`` that is an ordinary one."""
    module = sys.modules.get(type(model).__module__)
    names = []
    for name, value in sorted(vars(module).items()) if module else ():
        if inspect.isfunction(value) and not value.__module__.startswith("torch"):
            parameter = inspect.signature(value).parameters.get("kwargs")
            if parameter is not None and parameter.kind is parameter.POSITIONAL_OR_KEYWORD:
                names.append(name)
    return names


class _Noting(dict):
    """A dict that knows which keys were removed from it though they were not there."""

    def __init__(self, values: dict[str, Any], missed: list[str]) -> None:
        super().__init__(values)
        self.missed = missed

    def pop(self, key: str, *default: Any) -> Any:
        if key not in self:
            self.missed.append(key)
        return super().pop(key, *default)


@contextmanager
def _recording(model: torch.nn.Module, name: str, found: dict[str, Any]) -> Iterator[None]:
    def factory(original: Callable[..., Any]) -> Callable[..., Any]:
        def helper(*args: Any, **kwargs: Any) -> Any:
            extra = kwargs.get("kwargs")
            # Only the model's own forward gets what is passed to it; sub-modules have inputs of their own.
            if not isinstance(extra, dict) or sys._getframe(1).f_locals.get("self") is not model:
                return original(*args, **kwargs)
            missed: list[str] = []
            noting = _Noting(extra, missed)
            result = original(*args, **{**kwargs, "kwargs": noting})
            for key in extra.keys() - noting.keys():
                del extra[key]
            names = list(dict.fromkeys(missed))
            values = result if isinstance(result, tuple) and len(names) > 1 else (result,)
            if len(names) == len(values):
                found.update(zip(names, values, strict=True))
            return result

        return helper

    with patched(sys.modules[type(model).__module__], name, factory):
        yield
