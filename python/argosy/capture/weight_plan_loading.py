"""Transformers' own loading of a checkpoint, run on tensors without data, so that it writes recipes instead of weights.

From version 5 on transformers has one loader with conversion rules (``transformers.core_model_loading``); it is called
as ``from_pretrained`` calls it. Version 4 only renames keys, which is followed here.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from ..errors import ExportError
from .weight_plan_headers import HeaderTensor
from .weight_plan_recipe import RecipeTensor


@dataclass
class LoadedModel:
    """A model after loading: each name of its state dict, and what stands behind it."""

    #: Recipes, by name. Names that share one tensor (tied weights) share one object.
    recipes: dict[str, RecipeTensor]
    #: Values that no checkpoint brings and transformers always initialises alike: persistent buffers.
    initial: dict[str, torch.Tensor]
    missing: list[str]
    unexpected: list[str]
    #: What the tied names are tied to by the model's own rules; tells which of several names is the owner.
    tied: dict[str, str] = field(default_factory=dict)


def checkpoint_dtype(config: Any, tensors: Iterable[HeaderTensor]) -> torch.dtype:
    """The dtype that ``from_pretrained(dtype="auto")`` takes: the configuration's, else that of the first float tensor."""
    dtype = getattr(config, "dtype", None) or getattr(config, "torch_dtype", None)
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype.removeprefix("torch."))
    if isinstance(dtype, torch.dtype):
        return dtype
    floats = (t.dtype for t in tensors if t.dtype.is_floating_point and t.dtype.itemsize > 1)
    return next(floats, torch.float32)


def load_recipes(
    model_class: type, config: Any, state: dict[str, RecipeTensor], dtype: torch.dtype, *, quantized: bool = False
) -> LoadedModel:
    """Builds the model without memory for its weights and loads a checkpoint's tensors into it: those of ``state``, which are
    recipes. ``quantized``: matrices come from tensors that belong to ``nn.Linear``."""
    _set_dtype(config, dtype)
    with _no_weights(dtype):
        model = model_class(config)
    if quantized and any(type(module).__name__ == "Conv1D" for module in model.modules()):
        raise ExportError(
            "the checkpoint is quantised, and the model's layers are Conv1D, whose matrices lie the other way round",
            code="unsupported-feature",
            hint="give a checkpoint in float32, float16 or bfloat16",
        )
    try:
        import transformers.core_model_loading  # noqa: F401
    except ImportError:
        return _load_by_names(model, state, dtype)
    return _load_by_rules(model, state, dtype)


def _set_dtype(config: Any, dtype: torch.dtype) -> None:
    config.dtype = dtype
    for name in getattr(config, "sub_configs", {}):
        if (sub_config := getattr(config, name, None)) is not None:
            sub_config.dtype = dtype


@contextlib.contextmanager
def _no_weights(dtype: torch.dtype) -> Iterator[None]:
    """Modules made inside have parameters of that dtype on the meta device, neither initialised nor tied."""
    with contextlib.ExitStack() as stack:
        previous = torch.get_default_dtype()
        stack.callback(torch.set_default_dtype, previous)
        torch.set_default_dtype(dtype)
        stack.enter_context(torch.device("meta"))
        try:
            from transformers import initialization
        except ImportError:
            from transformers.modeling_utils import no_init_weights

            stack.enter_context(no_init_weights())
        else:
            for name in ("no_tie_weights", "meta_device_safe_creation_ops"):
                if hasattr(initialization, name):
                    stack.enter_context(getattr(initialization, name)())
        yield


# ---- version 5: conversion rules ----


def _load_by_rules(model: Any, state: dict[str, RecipeTensor], dtype: torch.dtype) -> LoadedModel:
    from transformers.conversion_mapping import get_model_conversion_mapping
    from transformers.modeling_utils import LoadStateDictConfig

    load_config = LoadStateDictConfig(
        dtype=dtype,
        dtype_plan=model._get_dtype_plan(dtype),
        weight_mapping=get_model_conversion_mapping(model),
        ignore_mismatched_sizes=False,
    )
    with _quiet():
        info, _ = type(model)._load_pretrained_model(model, state, None, load_config)
        _check_conversions(info)
        tied = dict(model.all_tied_weights_keys)
        model.tie_weights(missing_keys=info.missing_keys, recompute_mapping=False)
        model._adjust_missing_and_unexpected_keys(info)
    return _finish(model, _recipes(model), tied, info.unexpected_keys)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """No bars and no warnings of transformers: the plan itself says what is missing."""
    from transformers.utils import logging

    verbosity, has_bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        logging.set_verbosity(verbosity)
        if has_bars:
            logging.enable_progress_bar()


def _check_conversions(info: Any) -> None:
    if info.conversion_errors:
        name, text = min(info.conversion_errors.items())
        raise ExportError(
            f"the conversion of {name} failed",
            code="invalid-input",
            hint="the checkpoint may be of another model, or of a version of transformers that is not installed",
            details=f"the conversion of {name} failed\n{text}",
        )
    if info.mismatched_keys:
        name, found, expected = min(info.mismatched_keys, key=str)
        raise _wrong_shape(name, found, expected, len(info.mismatched_keys))


def _wrong_shape(name: str, found: Iterable[int], expected: Iterable[int], count: int) -> ExportError:
    more = f" ({count - 1} more differ)" if count > 1 else ""
    return ExportError(
        f"{name} has shape {list(found)} in the checkpoint and {list(expected)} in the model{more}",
        code="invalid-input",
        hint="give the configuration that belongs to this checkpoint",
    )


# ---- version 4: names only ----


def _load_by_names(model: Any, state: dict[str, RecipeTensor], dtype: torch.dtype) -> LoadedModel:
    expected = model.state_dict()
    unexpected = []
    for key, name in _renamed_keys(model, list(state)).items():
        if name not in expected:
            unexpected.append(key)
            continue
        tensor, target = state[key], expected[name]
        if tensor.shape != target.shape:
            raise _wrong_shape(name, tensor.shape, target.shape, 1)
        _set(model, name, tensor.to(_dtype_of(model, name, target, dtype)))
    for key in state.keys() - _renamed_keys(model, list(state)).keys():
        unexpected.append(key)
    model.tie_weights()
    unexpected = [key for key in unexpected if not _matches(model._keys_to_ignore_on_load_unexpected, key)]
    return _finish(model, _recipes(model), {}, unexpected)


def _renamed_keys(model: Any, keys: list[str]) -> dict[str, str]:
    """Checkpoint keys and the model's names for them, with the base model's prefix added or taken away as needed."""
    prefix = model.base_model_prefix
    has_prefix = bool(prefix) and any(key.startswith(prefix) for key in keys)
    expects_prefix = bool(prefix) and hasattr(model, prefix)
    return model._get_key_renaming_mapping(
        keys,
        getattr(model, "_checkpoint_conversion_mapping", None) or None,
        has_prefix and not expects_prefix,
        expects_prefix and not has_prefix,
    )


def _dtype_of(model: Any, name: str, target: torch.Tensor, dtype: torch.dtype) -> torch.dtype:
    if not target.dtype.is_floating_point:
        return target.dtype
    kept = set(model._keep_in_fp32_modules_strict or ())
    if dtype == torch.float16:
        kept |= set(model._keep_in_fp32_modules or ())
    if any(re.search(rf"(^|\.){module}($|\.)", name) for module in kept):
        return torch.float32
    return target.dtype


def _matches(patterns: Iterable[str] | None, key: str) -> bool:
    return any(re.search(pattern, key) for pattern in patterns or ())


def _set(model: Any, name: str, tensor: torch.Tensor) -> None:
    path, _, leaf = name.rpartition(".")
    module = model.get_submodule(path)
    if leaf not in module._buffers:
        tensor = torch.nn.Parameter(tensor, requires_grad=tensor.is_floating_point())
    setattr(module, leaf, tensor)


# ---- both ----


def _recipes(model: Any) -> dict[str, RecipeTensor]:
    tensors = model.state_dict(keep_vars=True)
    return {name: tensor for name, tensor in tensors.items() if isinstance(tensor, RecipeTensor)}


def _finish(
    model: Any, recipes: dict[str, RecipeTensor], tied: dict[str, str], unexpected: Iterable[str]
) -> LoadedModel:
    without = [name for name in model.state_dict() if name not in recipes]
    initial = _initial_buffers(model, without)
    missing = [name for name in without if name not in initial]
    return LoadedModel(recipes, initial, missing, sorted(unexpected), tied)


def _initial_buffers(model: Any, names: list[str]) -> dict[str, torch.Tensor]:
    """The values of persistent buffers that transformers sets without a checkpoint (``final_logits_bias`` and the like).

    Initialised twice on different contents: what comes out alike was set, and not by chance.
    """
    buffers = dict(model.named_buffers(remove_duplicate=False))
    wanted = [name for name in names if name in buffers]
    if not wanted or not hasattr(model, "initialize_weights"):
        return {}
    results = []
    for content in (0, 1):
        for tensor in model.state_dict(keep_vars=True).values():
            tensor._is_hf_initialized = True
        for name in wanted:
            buffer = buffers[name]
            _set(model, name, torch.full(buffer.shape, content, dtype=buffer.dtype, device="cpu"))
        for module in model.modules():
            module._is_hf_initialized = False
        model.initialize_weights()
        now = dict(model.named_buffers(remove_duplicate=False))
        results.append({name: now[name].clone() for name in wanted})
    return {name: value for name, value in results[0].items() if torch.equal(value, results[1][name])}
