"""A model that is as it was, whatever was run or traced with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch


@contextmanager
def unchanged(model: torch.nn.Module) -> Iterator[None]:
    """All attributes of the model's modules are as before after a with block, also when it fails: parameters and buffers
    (not what is in them), sub-modules, hooks, and whatever a forward keeps in attributes, which in a trace would be fake
    tensors. transformers installs hooks of its own when hidden states are first asked for; they go, too."""
    before = [(module, {name: (value, _content(value)) for name, value in vars(module).items()})
              for module in model.modules()]  # fmt: skip
    try:
        yield
    finally:
        for module, attributes in before:
            for name in [name for name in vars(module) if name not in attributes]:
                del vars(module)[name]
            for name, (value, content) in attributes.items():
                if vars(module).get(name) is not value:
                    vars(module)[name] = value
                _refill(value, content)


def _content(value: Any) -> Any:
    return type(value)(value) if type(value) in (list, set) else dict(value) if isinstance(value, dict) else None


def _refill(value: Any, content: Any) -> None:
    """Puts back what was in a container, in its order, if it is another now."""
    if content is None or _items(value) == _items(content):
        return
    value.clear()
    value.extend(content) if isinstance(value, list) else value.update(content)


def _items(value: Any) -> list[Any]:
    """What is in a container by identity: items may be tensors, which have no truth when they are compared."""
    if isinstance(value, dict):
        return [(key, id(item)) for key, item in value.items()]
    return [id(item) for item in value]
