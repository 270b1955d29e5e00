"""Pixels, in the layouts that image processors make."""

from __future__ import annotations

import inspect
import math
import re
from typing import Any

from .placeholders import features_need
from .request import OWN, TRACED, Request, find, lacks_part
from .processor_sizes import processor_size

#: Small pictures for models that do not say what size they take: one that is square and one that is not.
_SMALL = ((96, 96), (128, 160))
_SQUARE = (64, 64)
#: Sides that stages halve from layer to layer are multiples of it.
_STRIDE = 32


def add_images(request: Request) -> None:
    """Adds images and what describes them, if the model takes any."""
    if lacks_part(request.config, "vision_config"):
        return
    if request.takes("pixel_values", "spatial_shapes") or _places(request):
        _add_patches(request)
    elif _grid(request):
        _add_flattened_grid(request)
    elif (width := getattr(request.config, "patch_dim", None)) is not None or request.takes("image_patches"):
        _add_rows_of_patches(request, width)
    elif request.takes("pixel_values", "target_sizes"):
        _add_patch_strip(request)
    elif request.takes("flattened_patches"):
        _add_flattened_patches(request)
    elif request.takes("pixel_values", "aspect_ratio_ids"):
        _add_tiles(request)
    elif request.takes("pixel_values", "image_sizes") and request.find("image_grid_pinpoints"):
        _add_crops(request)
    elif request.takes("pixel_values", "pixel_attention_mask"):
        _add_image_lists(request)
    elif request.takes("pixel_values"):
        _add_pixels(request)
    elif request.takes("image_pixel_values", "image_attention_mask"):
        _add_masked_crops(request)
    elif request.takes("pixel_values_videos"):
        _add_video(request)
    elif request.takes("visual_feats", "visual_pos"):
        _add_regions(request)


def _pair(value: Any) -> tuple[int, int]:
    if isinstance(value, dict):
        return value["height"], value["width"]
    if isinstance(value, (list, tuple)):
        return (value[0], value[-1])
    return value, value


def channels(request: Request) -> int:
    """Colours of a picture."""
    value = request.find("num_channels", "in_channels", "in_chans", "num_image_channels", default=3)
    return value if isinstance(value, int) else 3


def image_size(request: Request) -> tuple[int, int]:
    """Height and width of a picture, of the size that ``media`` asks for if the model is free to choose."""
    named = _named_size(request)
    if named is None and request.config.model_type == "florence2":
        return _SQUARE  # it names no size, but its processor makes squares of one size only
    own = named or processor_size(request.config.model_type)
    free = request.sizes.free_pictures
    if free is None:
        free = named is None or request.find("patch_size", "tubelet_size") is None
    if not free or request.sizes.media == OWN:
        return own
    if request.sizes.media == TRACED or (named and request.sizes.media):
        return _other(own, request.find("patch_size"))
    return named or _SMALL[request.sizes.media]


def _named_size(request: Request) -> tuple[int, int] | None:
    named = request.find("image_size", "img_size") or getattr(request.config, "input_size", None)
    return None if named is None else _pair(named)


def _other(size: tuple[int, int], patch: Any) -> tuple[int, int]:
    """A size a little above ``size`` that has whole patches and stages, and is not square."""
    step = math.lcm(_STRIDE, patch if isinstance(patch, int) and patch > 0 else 1)
    height, width = (-(-side // step) * step for side in size)
    return (height + step, width + 2 * step) if width >= height else (height + 2 * step, width + step)


def _add_pixels(request: Request) -> None:
    import torch

    height, width = image_size(request)
    batch, colours = request.sizes.batch, channels(request)
    frames = request.find("num_frames")
    shape: tuple[int, ...] = (batch, colours, height, width)
    if type(request.model).__name__.endswith("ForKeypointMatching"):
        shape = (batch, 2, colours, height, width)  # points of one picture are looked for in the other
    elif isinstance(frames, int) and request.main == "pixel_values" and not request.takes("input_ids"):
        shape = (batch, frames, colours, height, width)
    elif (several := _several_pictures(request)) is not None:
        shape = (batch, several, colours, height, width)
    request.inputs["pixel_values"] = request.normal(*shape)
    if request.takes("image_sizes") and features_need(request, "image_sizes"):
        request.inputs["image_sizes"] = torch.tensor([[height, width]]).expand(batch, 2).clone()
    if request.takes("high_res_pixel_values"):
        sides = _pair(request.config.high_res_vision_config.image_size)
        request.inputs["high_res_pixel_values"] = request.normal(batch, colours, *sides)
    if request.takes("input_points", "input_labels"):
        points = torch.rand((batch, 1, 2, 2), generator=request.generator) * torch.tensor([width, height])
        request.inputs["input_points"] = points
        request.inputs["input_labels"] = torch.tensor([1, 0]).expand(batch, 1, 2).clone()


#: How code takes apart pixels that have several pictures in a row of the batch.
_SEVERAL = re.compile(r"\w+, (num_images|num_frames|frames)(?:, \w+, \w+, \w+)? = pixel_values\.shape(?:\[:2\])?\n")


def _several_pictures(request: Request) -> int | None:
    """How many pictures a row of the batch has, where the model's code asks for them."""
    for owner in (request.model, *request.model.children()):
        for name in ("forward", "get_image_features", "get_video_features"):
            function = getattr(type(owner), name, None)
            found = function and _SEVERAL.search(inspect.getsource(inspect.unwrap(function)))
            if found:
                return 1 + request.media if found[1] == "num_images" else request.find("num_frames", default=4)
    return None


def _add_image_lists(request: Request) -> None:
    """Idefics' layout: several pictures a row, padded to a common number and size."""
    import torch

    height, width = image_size(request)
    count = 1 + request.media
    request.inputs["pixel_values"] = request.normal(request.sizes.batch, count, channels(request), height, width)
    mask = torch.ones(request.sizes.batch, count, height, width, dtype=torch.long)
    request.inputs["pixel_attention_mask"] = mask


def _add_crops(request: Request) -> None:
    """LLaVA-NeXT's layout: the whole picture and crops of it, as many as its best resolution has."""
    import torch
    from transformers.image_processing_utils import select_best_resolution

    height, width = _pair(request.find("image_size"))
    original = ((height, 2 * width), (2 * height, 2 * width))[request.media]
    best = select_best_resolution(list(original), request.find("image_grid_pinpoints"))
    crops = 1 + -(-best[0] // height) * -(-best[1] // width)
    request.inputs["pixel_values"] = request.normal(request.sizes.batch, crops, channels(request), height, width)
    request.inputs["image_sizes"] = torch.tensor([original]).expand(request.sizes.batch, 2).clone()


def _add_masked_crops(request: Request) -> None:
    """Phi-4's layout: the whole picture and its crops, each with a mask of its patches."""
    import torch

    vision = request.config.vision_config
    side, rows, columns = vision.crop_size, 1, 1 + request.media
    grid = vision.image_size // vision.patch_size
    batch, crops = request.sizes.batch, 1 + rows * columns
    request.inputs["image_pixel_values"] = request.normal(batch, crops, channels(request), side, side)
    request.inputs["image_sizes"] = torch.tensor([[rows * side, columns * side]]).expand(batch, 2).clone()
    request.inputs["image_attention_mask"] = torch.ones(batch, crops, grid, grid, dtype=torch.long)


def _add_tiles(request: Request) -> None:
    """Llama 3.2's layout: a picture as tiles, with the number of its aspect ratio."""
    import torch

    batch, tiles = request.sizes.batch, request.find("max_num_tiles", default=4)
    height, width = image_size(request)
    request.inputs["pixel_values"] = request.normal(batch, 1, tiles, channels(request), height, width)
    request.inputs["aspect_ratio_ids"] = torch.full((batch, 1), 1 + request.media)
    mask = torch.zeros(batch, 1, tiles, dtype=torch.long)
    mask[..., : 1 + request.media] = 1  # the first ratios are one tile and two tiles
    request.inputs["aspect_ratio_mask"] = mask


def _add_regions(request: Request) -> None:
    """What a detector found: features of each region, and its corners."""
    batch, regions = request.sizes.batch, (5, 9)[request.media]
    request.inputs["visual_feats"] = request.normal(batch, regions, request.find("visual_feat_dim"))
    request.inputs["visual_pos"] = request.normal(batch, regions, request.find("visual_pos_dim"))


def _add_video(request: Request) -> None:
    height, width = image_size(request)
    frames = request.find("frames_per_clip", "num_frames", default=8)
    request.inputs["pixel_values_videos"] = request.normal(
        request.sizes.batch, frames, channels(request), height, width
    )


def _grid(request: Request) -> str | None:
    """The input that says how many patches the pictures have, where these are one after another."""
    return next((name for name in ("image_grid_thw", "grid_thw", "image_grid_hw") if request.takes(name)), None)


def _grid_sides(request: Request, vision: Any) -> tuple[int, int]:
    """Patches in a column and in a row: as many as are joined into one, some times over."""
    named = ("spatial_merge_size", "merge_kernel_size", "merge_size", "pooling_kernel_size", "downsample_factor")
    merge = max(_pair(find(vision, *named) or request.find(*named, default=1)))
    merge = max(merge, round(1 / request.find("downsample_ratio", default=1)))
    return ((2 * merge, 3 * merge), (4 * merge, 3 * merge))[request.media]


def _add_flattened_grid(request: Request) -> None:
    """Qwen's layout: patches of all pictures one after another, and the grid of each."""
    import torch

    batch, grid = request.sizes.batch, _grid(request) or ""
    vision = getattr(request.config, "vision_config", request.config)
    height, width = request.grid = _grid_sides(request, vision)
    patch = find(vision, "patch_size", default=14)
    temporal = find(vision, "temporal_patch_size", "patch_temporal", default=1)
    pixels = "pixel_values" if request.takes("pixel_values") else "hidden_states"
    colours = channels(request)
    shape = (colours, patch, patch) if _takes_whole_patches(request.model, colours, patch) else (colours * temporal * patch**2,)
    request.inputs[pixels] = request.normal(batch * height * width, *shape)
    sides = [height, width] if grid.endswith("_hw") else [1, height, width]
    request.inputs[grid] = torch.tensor([sides]).expand(batch, len(sides)).clone()
    for name in ("image_merge_sizes", "merge_sizes"):
        if request.takes(name):
            request.inputs[name] = torch.full((batch,), request.find("spatial_merge_size", "merge_size", default=1))


#: Code that gives rows of numbers the shape of patches.
_SHAPES_PATCHES = re.compile(r"(?:view|reshape)\([^)]*patch_size")


def _takes_whole_patches(model: Any, colours: int, patch: int) -> bool:
    """Whether the layer that reads patches leaves it to the processor to give them rows and columns."""
    import torch

    for owner in model.modules():
        for layer in owner.children():
            if isinstance(layer, torch.nn.Conv2d) and (layer.in_channels, layer.kernel_size[0]) == (colours, patch):
                return _SHAPES_PATCHES.search(inspect.getsource(inspect.unwrap(type(owner).forward))) is None
    return False


def _places(request: Request) -> str | None:
    """The input that says where in its picture each patch is."""
    return next((name for name in ("image_position_ids", "pixel_position_ids") if request.takes("pixel_values", name)), None)


def _add_patches(request: Request) -> None:
    """Each picture as a row of patches, with the row and column of each or with how many there are of both."""
    import torch

    batch, vision = request.sizes.batch, getattr(request.config, "vision_config", request.config)
    height, width = request.grid = _grid_sides(request, vision)
    patch = find(vision, "model_patch_size", "patch_size")
    request.inputs["pixel_values"] = request.normal(batch, height * width, channels(request) * patch**2)
    if (name := _places(request)) is not None:
        places = torch.cartesian_prod(torch.arange(height), torch.arange(width)).flip(-1)
        request.inputs[name] = places.expand(batch, -1, -1).clone()
        return
    request.inputs["spatial_shapes"] = torch.tensor([[height, width]]).expand(batch, 2).clone()
    if request.takes("pixel_attention_mask"):
        request.inputs["pixel_attention_mask"] = torch.ones(batch, height * width, dtype=torch.long)


def _add_rows_of_patches(request: Request, width: int | None) -> None:
    """Fuyu's layout: patches as rows of numbers, those of each picture apart; or of all pictures one after another, by `width`."""
    batch, rows = request.sizes.batch, (6, 12)[request.media]
    if width is not None:
        request.inputs["pixel_values"] = request.normal(batch * rows, width)
    else:
        request.inputs["pixel_values"] = request.normal(batch, rows, channels(request) * request.find("patch_size") ** 2)


def _add_patch_strip(request: Request) -> None:
    """MiniCPM's layout: the patches of all pictures side by side, as one picture of the height of a patch."""
    import torch

    batch, patch = request.sizes.batch, request.find("patch_size")
    height, width = ((4, 8), (8, 8))[request.media]
    request.inputs["pixel_values"] = request.normal(1, channels(request), patch, batch * height * width * patch)
    request.inputs["target_sizes"] = torch.tensor([[height, width]]).expand(batch, 2).clone()


def _add_flattened_patches(request: Request) -> None:
    """Pix2Struct's layout: each patch begins with its row and column."""
    import torch

    vision = getattr(request.config, "vision_config", request.config)
    rows, columns = ((3, 4), (4, 5))[request.media]
    row = torch.arange(rows).repeat_interleave(columns) + 1
    column = torch.arange(columns).repeat(rows) + 1
    patches = request.normal(request.sizes.batch, rows * columns, vision.patch_embed_hidden_size)
    places = torch.stack([row, column], dim=-1).float().expand(request.sizes.batch, -1, -1)
    request.inputs["flattened_patches"] = torch.cat([places, patches], dim=-1)
    request.inputs["attention_mask"] = torch.ones(request.sizes.batch, rows * columns)
