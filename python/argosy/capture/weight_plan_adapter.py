"""LoRA adapters as PEFT saves them: merged into the recipes of the weights that they belong to, or kept apart.

An adapter's tensors are named by the modules of the model, so that they are merged after loading. In a plan their names begin with
``ADAPTER_PREFIX``, under which the command-line tool opens them beside the checkpoint's own; those of an adapter that is kept apart
with the adapter's name and a colon, too. What an engine is to be given of the latter are weights of the plan.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .weight_plan_headers import HeaderTensor, dtype_text, read_headers
from .weight_plan_loading import LoadedModel
from .weight_plan_recipe import RecipeTensor, add_product, affine, source

#: What the names of an adapter's tensors begin with in plans.
ADAPTER_PREFIX = "adapter:"
_OF_MODEL = "base_model.model."
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
#: Ways to begin training that change the model's own weights, so that the adapter alone does not tell the result.
_CHANGING_STARTS = ("pissa", "olora", "loftq", "corda")


class _Refused(Exception):
    """What of an adapter is not taken, and what to do."""


def prefix_of(name: str) -> str:
    """Of the tensors of an adapter that is kept apart."""
    return f"{ADAPTER_PREFIX}{name}:"


def read_adapter(folder: Path, prefix: str = ADAPTER_PREFIX) -> tuple[dict[str, Any], list[HeaderTensor]]:
    """The settings of an adapter, and its tensors under the names that plans have for them."""
    path = folder / "adapter_config.json"
    if not path.is_file():
        raise ExportError(
            f"{folder} has no adapter_config.json",
            code="not-found",
            hint="give a folder that PEFT's save_pretrained wrote",
        )
    try:
        settings = json.loads(path.read_bytes())
    except ValueError as error:
        raise ExportError(f"{path} is not JSON: {error}", code="corrupt-file") from error
    if not isinstance(settings, dict):
        raise ExportError(f"{path} is not a JSON object", code="corrupt-file")
    weights = folder / "adapter_model.safetensors"
    if not weights.is_file():
        raise ExportError(
            f"{folder} has no adapter_model.safetensors",
            code="not-found",
            hint="save the adapter with safe_serialization=True",
        )
    headers = read_headers(weights)
    return settings, [HeaderTensor(prefix + each.name, each.dtype, each.shape) for each in headers]


def merge_adapter(
    loaded: LoadedModel, settings: dict[str, Any], tensors: Iterable[HeaderTensor], dtype: torch.dtype
) -> str:
    """Changes the recipes of ``loaded``, a model of that dtype, and returns what there is to say of it."""
    try:
        left = _sources(settings, tensors, ADAPTER_PREFIX)
        merged: set[str] = set()
        for name in sorted(left):
            if name not in left:
                continue
            if name.endswith((".lora_A.weight", ".lora_embedding_A")):
                merged.add(_merge(loaded, settings, left, name))
            elif not re.search(r"\.lora_", name):
                merged.add(_replace(loaded, name, left.pop(name), dtype))
        _check_all(merged, left)
    except _Refused as refused:
        raise _error("the adapter is not merged", refused) from None
    return f"an adapter is merged into {_count(merged)}"


def keep_apart(
    loaded: LoadedModel, name: str, settings: dict[str, Any], tensors: Iterable[HeaderTensor], dtype: torch.dtype
) -> tuple[dict[str, RecipeTensor], str]:
    """What an engine is given of the adapter ``name``, by its name in the plan: of each module ``lora_A`` [rank, in] and ``lora_B``
    [out, rank], the scaling in the latter; and what there is to say of it."""
    prefix = prefix_of(name)
    kept: dict[str, RecipeTensor] = {}
    modules: set[str] = set()
    try:
        left = _sources(settings, tensors, prefix)
        for tensor in sorted(left):
            if not tensor.endswith(".lora_A.weight"):
                continue
            pair = _pair(loaded, settings, left, tensor)
            modules.add(pair.module)
            kept[f"{prefix}{pair.module}.lora_A.weight"] = pair.down.to(dtype)
            kept[f"{prefix}{pair.module}.lora_B.weight"] = affine(pair.up.to(torch.float32), pair.scale, 0.0, dtype)
        _check_all(modules, left, "plain LoRA of linear layers is kept apart; --adapter merges embeddings and whole modules, too")
    except _Refused as refused:
        raise _error(f"the adapter {name!r} is not kept apart", refused) from None
    return kept, f"the adapter {name!r} is kept apart from {_count(modules)}"


def _count(weights: set[str]) -> str:
    return f"{len(weights)} {'weight' if len(weights) == 1 else 'weights'}"


def _error(what: str, refused: _Refused) -> ExportError:
    why, hint = refused.args
    return ExportError(f"{what}: {why}", code="unsupported-feature", hint=hint)


def _sources(settings: dict[str, Any], tensors: Iterable[HeaderTensor], prefix: str) -> dict[str, RecipeTensor]:
    """By the names that the adapter has for them."""
    _check_settings(settings)
    found = {each.name.removeprefix(prefix): source(each.name, each.dtype, each.shape) for each in tensors}
    for name, tensor in found.items():
        if tensor.dtype not in _FLOATS:
            raise _Refused(f"{name!r} is {dtype_text(tensor.dtype)}", "its tensors are float32, float16 or bfloat16")
    return found


def _check_all(taken: set[str], left: dict[str, RecipeTensor], hint: str = "plain LoRA of linear layers and embeddings is merged") -> None:
    if left:
        raise _Refused(f"nothing is known of its tensor {min(left)!r}", hint)
    if not taken:
        raise _Refused("it holds no tensors", "save it again")


def _check_settings(settings: dict[str, Any]) -> None:
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise _Refused(f"its peft_type is {kind!r}", "LORA is merged")
    for name in ("use_dora", "lora_bias", "layer_replication", "trainable_token_indices", "target_parameters", "use_qalora"):
        if settings.get(name):
            raise _Refused(f"it has {name}", "merge it with PEFT, and give the merged model")
    if settings.get("bias", "none") != "none":
        raise _Refused(f"its bias is {settings['bias']!r}", "merge it with PEFT, and give the merged model")
    start = settings.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGING_STARTS):
        raise _Refused(f"its init_lora_weights is {start!r}, which changes the model's own weights",
                       "convert it to plain LoRA, as PEFT's documentation shows")  # fmt: skip


@dataclass(frozen=True)
class _Pair:
    """Two matrices that belong together: [rank, in] and [out, rank], but for embeddings."""

    module: str
    weight: str
    base: RecipeTensor
    down: RecipeTensor
    up: RecipeTensor
    #: whose product has the weight's shape
    first: RecipeTensor
    second: RecipeTensor
    scale: float


def _pair(loaded: LoadedModel, settings: dict[str, Any], left: dict[str, RecipeTensor], name: str) -> _Pair:
    """Takes the matrix of that name out of ``left``, and the other one."""
    is_embedding = name.endswith(".lora_embedding_A")
    suffix = ".lora_embedding_A" if is_embedding else ".lora_A.weight"
    other = name.removesuffix(suffix) + suffix.replace("_A", "_B")
    module = name.removesuffix(suffix).removeprefix(_OF_MODEL)
    weight = f"{module}.weight"
    if other not in left:
        raise _Refused(f"it has {name!r} without {other!r}", "download it again")
    down, up = left.pop(name), left.pop(other)
    base = _target(loaded, weight, name)
    if down.dim() != 2 or up.dim() != 2 or base.dim() != 2:
        raise _Refused(f"{name!r} has shape {list(down.shape)}, for a weight of shape {list(base.shape)}",
                       "linear layers and embeddings are merged")  # fmt: skip
    rank = down.shape[0]
    # An embedding, and a layer whose matrix lies the other way round, take the product transposed.
    first, second = (down.t(), up.t()) if is_embedding or settings.get("fan_in_fan_out") else (up, down)
    expected = (first.shape[0], second.shape[1])
    if first.shape[1] != second.shape[0] or expected != tuple(base.shape) or rank == 0:
        raise _Refused(f"{name!r} and {other!r} have shapes {list(down.shape)} and {list(up.shape)}, "
                       f"for a weight of shape {list(base.shape)}", "give the model that it was trained on")  # fmt: skip
    alpha = _of_module(settings.get("alpha_pattern"), module, settings.get("lora_alpha"))
    if not isinstance(alpha, (int, float)) or not math.isfinite(alpha):
        raise _Refused(f"its lora_alpha for {module} is {alpha!r}", "a number is expected")
    scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    return _Pair(module, weight, base, down, up, first, second, scale)


def _merge(loaded: LoadedModel, settings: dict[str, Any], left: dict[str, RecipeTensor], name: str) -> str:
    """One pair of matrices; the name of the weight that they change."""
    pair = _pair(loaded, settings, left, name)
    loaded.recipes[pair.weight] = add_product(pair.base, pair.first, pair.second, pair.scale)
    return pair.weight


def _replace(loaded: LoadedModel, name: str, tensor: RecipeTensor, dtype: torch.dtype) -> str:
    """A module that was trained whole (``modules_to_save``): its weight takes the place of the model's."""
    weight = name.removeprefix(_OF_MODEL)
    if weight in loaded.missing:
        loaded.missing.remove(weight)
        loaded.recipes[weight] = tensor.to(dtype)
        return weight
    base = _target(loaded, weight, name)
    if base.shape != tensor.shape:
        raise _Refused(f"{name!r} has shape {list(tensor.shape)}, the model's has {list(base.shape)}",
                       "give the model that it was trained on")  # fmt: skip
    loaded.recipes[weight] = tensor.to(base.dtype)
    return weight


def _target(loaded: LoadedModel, weight: str, name: str) -> RecipeTensor:
    base = loaded.recipes.get(weight)
    if base is None:
        raise _Refused(f"the model has no weight {weight!r}, which {name!r} is for", "give the model that it was trained on")
    if sum(each is base for each in loaded.recipes.values()) > 1:
        raise _Refused(f"{name!r} is for {weight!r}, which is tied to another weight", "merge it with PEFT")
    return base


def _of_module(patterns: Any, module: str, default: Any) -> Any:
    """As PEFT looks settings up by the names of modules."""
    for key, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return default
