"""Which layers of a model are alike: those whose modules and numbers are the same. Code can treat a layer by its place in ways
that no attribute shows, so that what every layer calls is compared too (``layer_calls.py``)."""

from __future__ import annotations

import re
from typing import Any

import torch

from .twin.request import nested

#: What configurations call the number of their layers.
DEPTH_FIELDS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_encoder_layers", "num_decoder_layers",
                "encoder_layers", "decoder_layers", "depth")  # fmt: skip


def depths(config: Any) -> list[int]:
    """The numbers of layers that a configuration has, smallest first."""
    found = {
        value
        for part in nested(config)
        for name, value in vars(part).items()
        if name in DEPTH_FIELDS and isinstance(value, int) and not isinstance(value, bool)
    }
    return sorted(found)


def stacks(model: torch.nn.Module, other: torch.nn.Module) -> list[str]:
    """Paths of the outermost lists of modules that differ in length."""
    lengths = {name: len(each) for name, each in other.named_modules() if isinstance(each, torch.nn.ModuleList)}
    found: list[str] = []
    for name, each in model.named_modules():
        if not isinstance(each, torch.nn.ModuleList) or any(name.startswith(f"{outer}.") for outer in found):
            continue
        if lengths.get(name) != len(each):
            found.append(name)
    return found


def layer_lists(model: torch.nn.Module, path: str) -> set[tuple[str, str]]:
    """The lists of a model's configurations that have an entry for each layer: class of the configuration, and name."""
    count = len(model.get_submodule(path))
    return {
        (type(part).__name__, name)
        for part in nested(model.config)
        for name, value in vars(part).items()
        if isinstance(value, (list, tuple)) and len(value) == count
    }


def described(model: torch.nn.Module, path: str, names: set[tuple[str, str]]) -> list[str]:
    """What may steer the forward of each layer of a list, but for its place in it. ``names`` are the ``layer_lists`` of the full
    model: in a shallow one others may be as long by chance."""
    layers = model.get_submodule(path)
    per_layer = names & layer_lists(model, path)
    lists = [
        (type(part).__name__, name, vars(part)[name])
        for part in nested(model.config)
        for name in sorted(vars(part))
        if (type(part).__name__, name) in per_layer
    ]
    owners: dict[int, str] = {}
    for name, tensor in model.named_parameters(remove_duplicate=False):
        owners.setdefault(id(tensor), name)
    texts = []
    for i, layer in enumerate(layers):
        own = [(kind, name, str(value[i])) for kind, name, value in lists]
        shared = [
            (name, owners[id(tensor)])
            for name, tensor in layer.named_parameters(remove_duplicate=False)
            if not owners[id(tensor)].startswith(f"{path}.{i}.")
        ]
        texts.append(repr((_fingerprint(layer, i), own, shared)))
    return texts


def _fingerprint(layer: torch.nn.Module, index: int) -> list[tuple]:
    found: list[tuple] = []
    for path, module in layer.named_modules():
        found.append((path, type(module).__qualname__))
        for name, value in sorted(vars(module).items()):
            if name.startswith("_") or name == "training":
                continue
            is_place = isinstance(value, int) and not isinstance(value, bool) and value == index
            if is_place and re.search("idx|index|layer|block", name):
                continue
            if isinstance(value, float) and "drop" in name:
                continue  # while a model is trained
            if isinstance(value, (int, float, str, bool, tuple, list, torch.dtype, type(None))):
                found.append((path, name, repr(value)))
            elif callable(value) and not isinstance(value, torch.nn.Module):
                found.append((path, name, getattr(value, "__qualname__", type(value).__qualname__)))
        tensors = [*module._parameters.items(), *module._buffers.items()]
        found += [(path, name, tuple(each.shape), str(each.dtype)) for name, each in tensors if each is not None]
    return found
