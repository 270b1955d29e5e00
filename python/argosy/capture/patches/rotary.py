"""Rotary embeddings whose frequencies depend on the length: dynamic NTK and longrope.

Transformers keeps the frequencies of the longest call so far in attributes and changes them in a branch on the positions.
A graph keeps nothing: each call chooses by its own largest position, which is what a fresh model does.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...patching import patched, register_model_patch
from ..companion import portable_path

#: The frequencies beyond the original length, while a trace lasts.
_BEYOND = "inv_freq_beyond"


@register_model_patch("capture", reason="a branch on positions, and attributes that change from call to call, are nothing that a graph has")
@contextlib.contextmanager
def rotary_by_length(model: torch.nn.Module) -> Iterator[None]:
    """Within it, rotary modules of ``model`` that depend on the length choose their frequencies without a branch. Nearly every
    model has a rotary class of its own, all with the same decorator."""
    modules = list(_length_dependent_modules(model))
    with contextlib.ExitStack() as stack:
        for kind in {type(module): None for module, _ in modules}:
            stack.enter_context(patched(kind, "forward", _without_branch))
        for module, layer_type in modules:
            if _kind(module, layer_type) == "longrope":
                beyond = _frequencies(module, layer_type, _limit(module, layer_type) + 1)
                name = _prefix(layer_type) + _BEYOND
                module.register_buffer(name, beyond, persistent=False)
                stack.callback(module._buffers.pop, name)
        yield


def rotary_limits(model: torch.nn.Module) -> list[int]:
    """The lengths at which rotary embeddings of ``model`` change; empty where none does."""
    return sorted({_limit(module, layer_type) for module, layer_type in _length_dependent_modules(model)})


def restart(model: torch.nn.Module) -> tuple[int, str] | None:
    """The length beyond which ``generate`` throws the cache of ``model`` away and computes all tokens anew, and where that
    is written; None where it never does. Phi-3 and its kin do, since keys of the past have frequencies of short texts."""
    attribute = "original_max_position_embeddings"
    code = getattr(getattr(type(model), "prepare_inputs_for_generation", None), "__code__", None)
    lengths = [_limit(module, kind) for module, kind in _length_dependent_modules(model) if _kind(module, kind) == "longrope"]
    if not lengths or code is None or attribute not in (*code.co_names, *code.co_consts):
        return None
    return min(lengths), f"{portable_path(code.co_filename)}:{code.co_firstlineno}"


def forget_lengths(model: torch.nn.Module) -> None:
    """Undoes what earlier calls of ``model`` left in its rotary modules."""
    for module, layer_type in _length_dependent_modules(model):
        prefix = _prefix(layer_type)
        if hasattr(module, prefix + "max_seq_len_cached"):
            setattr(module, prefix + "max_seq_len_cached", module.original_max_seq_len)
        setattr(module, prefix + "inv_freq", _original(module, layer_type))


def _length_dependent_modules(model: torch.nn.Module) -> Iterator[tuple[Any, str | None]]:
    """Rotary modules with the layer type, or None where all layers share one kind."""
    for module in model.modules():
        kinds = getattr(module, "rope_type", None)
        layer_types = list(kinds) if isinstance(kinds, dict) else [None]
        for layer_type in layer_types:
            if kinds is not None and _kind(module, layer_type) in ("dynamic", "longrope"):
                yield module, layer_type


def _kind(module: Any, layer_type: str | None) -> str:
    kind = module.rope_type if layer_type is None else module.rope_type[layer_type]
    return "dynamic" if "dynamic" in kind else kind


def _prefix(layer_type: str | None) -> str:
    return f"{layer_type}_" if layer_type else ""


def _limit(module: Any, layer_type: str | None) -> int:
    config = module.config
    if _kind(module, layer_type) == "dynamic":
        return config.max_position_embeddings
    parameters = getattr(config, "rope_parameters", None) or getattr(config, "rope_scaling", None) or {}
    parameters = parameters if layer_type is None else parameters[layer_type]
    own = parameters.get("original_max_position_embeddings")
    return own or getattr(config, "original_max_position_embeddings", None) or config.max_position_embeddings


def _original(module: Any, layer_type: str | None) -> torch.Tensor:
    return getattr(module, f"{_prefix(layer_type)}original_inv_freq")


def _frequencies(module: Any, layer_type: str | None, length: Any, device: Any = "cpu") -> torch.Tensor:
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kind = module.rope_type if layer_type is None else module.rope_type[layer_type]
    layer = {} if layer_type is None else {"layer_type": layer_type}
    return ROPE_INIT_FUNCTIONS[kind](module.config, device, seq_len=length, **layer)[0]


def _without_branch(original: Callable) -> Callable:
    plain = inspect.unwrap(original)  # without the decorator that branches

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor, layer_type: str | None = None) -> Any:
        given = {} if layer_type is None else {"layer_type": layer_type}
        name = _prefix(layer_type) + "inv_freq"
        kind = _kind(self, layer_type)
        if kind not in ("dynamic", "longrope"):
            return plain(self, x, position_ids, **given)
        length = torch.max(position_ids) + 1
        if kind == "longrope":
            beyond = getattr(self, _prefix(layer_type) + _BEYOND)
        else:
            beyond = _frequencies(self, layer_type, length, x.device)
        chosen = torch.where(length > _limit(self, layer_type), beyond, _original(self, layer_type))
        before = self._buffers[name]
        self._buffers[name] = chosen
        try:
            return plain(self, x, position_ids, **given)
        finally:
            self._buffers[name] = before

    return forward
