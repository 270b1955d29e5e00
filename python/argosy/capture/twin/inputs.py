"""Inputs that a model's user could pass, from its signature, its configuration and the conventions of processors."""

from __future__ import annotations

from typing import Any

from ...errors import ExportError
from .audio_inputs import add_audio
from .documented_inputs import add_documented
from .image_inputs import add_images
from .request import Request, Sizes
from .series_inputs import add_series
from .text_inputs import add_embedded, add_text


def sample_inputs(model: Any, sizes: Sizes | None = None, *, seed: int = 0) -> dict[str, Any]:
    """Keyword arguments of ``model``'s ``forward`` (and of ``generate``, where it has one): CPU tensors that depend on
    ``model.config``, ``sizes`` and ``seed`` alone. The values of weights are never read, so that a model on the meta
    device will do. Raises ``ExportError`` (``unsupported-feature``) if no rule knows what the model takes."""
    request = Request(model, sizes or Sizes(), seed)
    add_images(request)
    add_audio(request)
    add_series(request)
    add_text(request)
    if not request.inputs:
        add_embedded(request)
    add_documented(request)
    if not request.inputs:
        names = ", ".join(request.parameters)
        raise ExportError(
            f"no rule makes inputs for {type(model).__name__}, whose forward takes {names}",
            code="unsupported-feature",
            hint="pass inputs of your own",
        )
    return request.inputs


