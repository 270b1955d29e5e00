"""Everything about a live model that an export could change, to be compared afterwards."""

from __future__ import annotations

import copy
import sys
from typing import Any

import torch


class ModelState:
    """A snapshot. `differences` lists what is not as it was, in words; empty if nothing changed."""

    def __init__(self, model: torch.nn.Module) -> None:
        self.model = model
        self.modules = dict(model.named_modules())
        self.attributes = {path: _attributes(module) for path, module in self.modules.items()}
        self.tensors = {name: (tensor, *_place(tensor), tensor.detach().clone()) for name, tensor in _tensors(model)}
        self.settings = _settings(model)
        self.owners = {owner: dict(vars(owner)) for owner in _owners(model)}

    def differences(self) -> list[str]:
        found = []
        if dict(self.model.named_modules()) != self.modules:
            found.append("the modules are others")
        for path, module in self.modules.items():
            after = _attributes(module)
            for name in sorted(after.keys() | self.attributes[path].keys()):
                if not _same(after.get(name), self.attributes[path].get(name)):
                    found.append(f"{path or 'model'}.{name}")
        after = dict(_tensors(self.model))
        if list(after) != list(self.tensors):
            found.append(f"tensors: {sorted(after.keys() ^ self.tensors.keys())}")
        for name, (tensor, pointer, version, value) in self.tensors.items():
            now = after.get(name)
            if now is not tensor or _place(now) != (pointer, version) or not torch.equal(now, value):
                found.append(f"tensor {name}")
        if _settings(self.model) != self.settings:
            found.append("a configuration")
        for owner, before in self.owners.items():
            now = dict(vars(owner))
            # Caches that classes fill by themselves are no change that a caller could notice.
            names = [name for name in now.keys() | before.keys() if "cache" not in name and not name.startswith("__")]
            found += [f"{owner.__name__}.{name}" for name in names if now.get(name) is not before.get(name)]
        return found


def _tensors(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    return [*model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]


def _place(tensor: torch.Tensor) -> tuple[int, int]:
    """Where a tensor's bytes are, and how often they were written."""
    return tensor.untyped_storage().data_ptr(), tensor._version


def _attributes(module: torch.nn.Module) -> dict[str, Any]:
    """What a module holds: hooks and sub-modules as lists, so that a change inside is seen."""
    return {
        name: list(value.items()) if isinstance(value, dict) else value
        for name, value in vars(module).items()
        if name != "config"
    }


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        return all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, tuple) and isinstance(other, tuple) and len(one) == len(other):
        return all(_same(a, b) for a, b in zip(one, other, strict=True))
    if isinstance(one, (bool, int, float, str)):
        return type(one) is type(other) and one == other
    return one is other


def _settings(model: torch.nn.Module) -> list[dict[str, Any]]:
    found = []
    for module in model.modules():
        for name in ("config", "generation_config"):
            config = getattr(module, name, None)
            if config is not None and hasattr(config, "to_dict"):
                found.append(copy.deepcopy({key: _plain(value) for key, value in vars(config).items()}))
    return found


def _plain(value: Any) -> Any:
    return vars(value) if hasattr(value, "to_dict") else value


def _owners(model: torch.nn.Module) -> list[Any]:
    """Classes of the model's modules, and the Python modules that these and torch's functions are in."""
    classes = {kind for module in model.modules() for kind in type(module).__mro__ if kind is not object}
    names = {kind.__module__ for kind in classes} | {"torch", "torch.nn.functional", "transformers.integrations.moe"}
    return [*classes, *(sys.modules[name] for name in sorted(names) if name in sys.modules)]
