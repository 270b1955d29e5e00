"""How many tokens of the text stand for an image or a piece of audio."""

from __future__ import annotations

import inspect
from typing import Any

from .inputs import Request

#: Each kind of media: the attributes that hold its token, the method that gives its features, the inputs that carry it.
_KINDS = (
    (
        ("image_token_id", "image_token_index"),
        "get_image_features",
        ("pixel_values", "flattened_patches", "image_pixel_values"),
    ),
    (
        ("audio_token_id", "audio_token_index"),
        "get_audio_features",
        ("input_features", "input_values", "audio_input_features"),
    ),
)


def placeholders(request: Request) -> list[int]:
    """The run of placeholder tokens that one row of text needs for the media among the inputs."""
    run: list[int] = []
    for names, method, carriers in _KINDS:
        token = request.find(*names)
        if isinstance(token, int) and any(name in request.inputs for name in carriers):
            run += [token] * _count(request, method)
    return run


def _count(request: Request, method: str) -> int:
    """Features of one row. They are counted by running the encoder (on the meta device this costs nothing), except
    where the sizes are among the inputs and a formula is as good."""
    grid = request.inputs.get("image_grid_thw")
    if grid is not None and method == "get_image_features":
        merge = request.find("spatial_merge_size", "merge_size", default=1)
        return int(grid[0].prod()) // merge**2
    owner = next((m for m in (request.model, getattr(request.model, "model", None)) if hasattr(m, method)), None)
    if owner is None:
        return 0
    return feature_count(getattr(owner, method), request) // request.sizes.batch


def feature_count(function: Any, request: Request) -> int:
    """Features that ``function`` returns for the inputs it takes."""
    import torch

    device = next(request.model.parameters()).device
    names = inspect.signature(function).parameters
    arguments = {n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in request.inputs.items() if n in names}
    with torch.no_grad():
        result = function(**arguments)
    if hasattr(result, "pooler_output"):
        result = result.pooler_output if result.pooler_output is not None else result.last_hidden_state
    parts = result if isinstance(result, (list, tuple)) else [result]
    return sum(part.numel() // part.shape[-1] for part in parts)
