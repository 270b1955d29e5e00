"""How many tokens of the text stand for an image or a piece of audio."""

from __future__ import annotations

import contextlib
import inspect
import math
from collections.abc import Iterator
from typing import Any

from .request import Request, as_list

#: Each kind of media: the attributes that hold its token, the method that gives its features, the inputs that carry it. Pictures come
#: last, next to the words: decoders are called with the end of a row, and language models take features of pictures in several layers.
_KINDS = (
    (
        ("audio_token_id", "audio_token_index"),
        "get_audio_features",
        ("input_features", "input_values", "audio_input_features"),
    ),
    (
        ("image_token_id", "image_token_index"),
        "get_image_features",
        ("pixel_values", "flattened_patches", "image_pixel_values"),
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
    if request.grid is not None and "image_grid_thw" in request.inputs and method == "get_image_features" and not _adds_tokens(request.model):
        merge = max(as_list(request.find("spatial_merge_size", "merge_size", "merge_kernel_size", default=1)))
        return math.prod(request.grid) // merge**2
    if request.grid is not None and "spatial_shapes" in request.inputs and method == "get_image_features":
        return math.prod(request.grid) // request.find("downsample_factor", default=1) ** 2
    if "image_position_ids" in request.inputs and method == "get_image_features":
        pooled = 1 if request.find("model_patch_size") else request.find("pooling_kernel_size", default=1)
        return request.inputs["image_position_ids"].shape[1] // pooled**2
    if "image_attention_mask" in request.inputs and method == "get_image_features":
        return _tokens_of_crops(request)
    masked = "pixel_attention_mask" in request.inputs or request.find("pixel_shuffle_factor") is not None
    if masked and method == "get_image_features" and request.inputs["pixel_values"].dim() == 5:
        return _tokens_of_lists(request)
    if "audio_embed_sizes" in request.inputs and method == "get_audio_features":
        return int(request.inputs["audio_embed_sizes"][0])
    for function in _functions(request, method):
        if set(request.inputs) & set(inspect.signature(function).parameters):
            return feature_count(function, request) // request.sizes.batch
    return 0


def _adds_tokens(model: Any) -> bool:
    """Whether the encoder puts tokens of its own between those of the picture, at the end of each row at least."""
    return any(name.endswith("image_newline") for name, _ in model.named_parameters())


def _functions(request: Request, method: str) -> list[Any]:
    """Methods of that name, of the model and of the parts that it consists of."""
    owners = (request.model, *request.model.children())
    return [function for owner in owners if (function := getattr(owner, method, None)) is not None]


def _tokens_of_lists(request: Request) -> int:
    """Idefics: blank pictures are dropped by value, which a model without weights cannot do; ours are never blank."""
    _, count, _, height, width = request.inputs["pixel_values"].shape
    latents = request.find("resampler_n_latents")
    if latents is None:
        step = request.find("patch_size") * request.find("scale_factor", "pixel_shuffle_factor", default=1)
        latents = (height // step) * (width // step)
    return count * latents


def _tokens_of_crops(request: Request) -> int:
    """Phi-4: half the patches a side; every row of the crops and of the whole picture ends with a token of its own."""
    side = request.config.vision_config.crop_size
    height, width = (int(size) // side for size in request.inputs["image_sizes"][0])
    grid = (request.inputs["image_attention_mask"].shape[-1] + 1) // 2
    return height * grid * (width * grid + 1) + 1 + grid * (grid + 1)


def features_need(request: Request, name: str) -> bool:
    """Whether features of images cannot be had without the input ``name``."""
    found = [inspect.signature(function).parameters.get(name) for function in _functions(request, "get_image_features")]
    return any(parameter is not None and parameter.default is parameter.empty for parameter in found)


def features_take(request: Request, method: str, name: str) -> bool:
    """Whether features of media are made of the input ``name``; true of models that have no features."""
    functions = _functions(request, method)
    return not functions or any(name in inspect.signature(function).parameters for function in functions)


def feature_count(function: Any, request: Request) -> int:
    """Features that ``function`` returns for the inputs it takes."""
    import torch

    device = next(request.model.parameters()).device
    names = inspect.signature(function).parameters
    # sizes describe the others and are read on the way, so that they must have values
    arguments = {n: v.to(device) if _is_media(n, v) else v for n, v in request.inputs.items() if n in names}
    with torch.no_grad(), everything_counts():
        result = function(**arguments)
    if hasattr(result, "pooler_output"):
        result = result.pooler_output if result.pooler_output is not None else result.last_hidden_state
    elif isinstance(result, tuple):
        result = result[0]
    parts = result if isinstance(result, (list, tuple)) else [result]  # one for each picture, where sizes differ
    return sum(part.numel() // part.shape[-1] for part in parts)


@contextlib.contextmanager
def everything_counts() -> Iterator[None]:
    """On the meta device, lets selections by a condition (pictures that aren't blank) select everything."""
    from torch.fx.experimental import _config

    if not hasattr(_config, "meta_nonzero_assume_all_nonzero"):
        yield
        return
    with _config.patch(meta_nonzero_assume_all_nonzero=True):
        yield


def _is_media(name: str, value: Any) -> bool:
    import torch

    return isinstance(value, torch.Tensor) and (value.is_floating_point() or name.endswith("mask"))
