"""Placeholders of media in older transformers."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ...patching import register_model_patch

METHOD = "get_placeholder_mask"


@register_model_patch(
    "capture",
    "shapes",
    reason="before transformers 5 the check that placeholders and features are equally many was plain Python on values; the mask "
    "itself does not depend on the features",
)
@contextlib.contextmanager
def unchecked_placeholders(model: torch.nn.Module) -> Iterator[None]:
    """The mask of placeholders without that check."""
    import transformers

    owners = [module for module in model.modules() if hasattr(type(module), METHOD)]
    if int(transformers.__version__.split(".")[0]) >= 5:
        owners = []
    for module in owners:
        vars(module)[METHOD] = _without_features(getattr(module, METHOD))
    try:
        yield
    finally:
        for module in owners:
            vars(module).pop(METHOD)


def _without_features(original: Callable) -> Callable:
    @functools.wraps(original)
    def mask(*args: Any, **kwargs: Any) -> Any:
        hidden = {
            name: _Uncounted(value)
            for name, value in kwargs.items()
            if isinstance(value, torch.Tensor) and name.endswith("_features")
        }
        return original(*args, **{**kwargs, **hidden})

    return mask


class _Uncounted:
    """A tensor whose number of elements equals any other."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tensor, name)

    def numel(self) -> _AnyNumber:
        return _AnyNumber()


class _AnyNumber:
    def __eq__(self, other: object) -> bool:
        return True

    def __ne__(self, other: object) -> bool:
        return False

    __hash__ = None  # type: ignore[assignment]  # equal to everything
