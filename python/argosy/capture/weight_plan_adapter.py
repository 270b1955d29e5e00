"""LoRA adapters as PEFT saves them, merged into the recipes of the weights that they belong to.

An adapter's tensors are named by the modules of the model, so that they are merged after loading. In a plan their names begin with
``ADAPTER_PREFIX``, under which the command-line tool opens them beside the checkpoint's own.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .weight_plan_headers import HeaderTensor, dtype_text, read_headers
from .weight_plan_loading import LoadedModel
from .weight_plan_recipe import RecipeTensor, add_product, source

#: What the names of an adapter's tensors begin with in plans.
ADAPTER_PREFIX = "adapter:"
_OF_MODEL = "base_model.model."
_FLOATS = (torch.float32, torch.bfloat16, torch.float16)
#: Ways to begin training that change the model's own weights, so that the adapter alone does not tell the result.
_CHANGING_STARTS = ("pissa", "olora", "loftq", "corda")


def read_adapter(folder: Path) -> tuple[dict[str, Any], list[HeaderTensor]]:
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
    return settings, [HeaderTensor(ADAPTER_PREFIX + each.name, each.dtype, each.shape) for each in headers]


def merge_adapter(
    loaded: LoadedModel, settings: dict[str, Any], tensors: Iterable[HeaderTensor], dtype: torch.dtype
) -> str:
    """Changes the recipes of ``loaded``, a model of that dtype, and returns what there is to say of it."""
    _check_settings(settings)
    left = {each.name.removeprefix(ADAPTER_PREFIX): source(each.name, each.dtype, each.shape) for each in tensors}
    for name, tensor in left.items():
        if tensor.dtype not in _FLOATS:
            raise _refused(f"{name!r} is {dtype_text(tensor.dtype)}", "its tensors are float32, float16 or bfloat16")
    merged: set[str] = set()
    for name in sorted(left):
        if name not in left:
            continue
        if name.endswith((".lora_A.weight", ".lora_embedding_A")):
            merged.add(_merge(loaded, settings, left, name))
        elif not re.search(r"\.lora_", name):
            merged.add(_replace(loaded, name, left.pop(name), dtype))
    if left:
        raise _refused(f"nothing is known of its tensor {min(left)!r}", "plain LoRA of linear layers and embeddings is merged")
    if not merged:
        raise _refused("it holds no tensors", "save it again")
    return f"an adapter is merged into {len(merged)} {'weight' if len(merged) == 1 else 'weights'}"


def _check_settings(settings: dict[str, Any]) -> None:
    kind = settings.get("peft_type")
    if kind != "LORA":
        raise _refused(f"its peft_type is {kind!r}", "LORA is merged")
    for name in ("use_dora", "lora_bias", "layer_replication", "trainable_token_indices", "target_parameters", "use_qalora"):
        if settings.get(name):
            raise _refused(f"it has {name}", "merge it with PEFT, and give the merged model")
    if settings.get("bias", "none") != "none":
        raise _refused(f"its bias is {settings['bias']!r}", "merge it with PEFT, and give the merged model")
    start = settings.get("init_lora_weights")
    if isinstance(start, str) and start.lower().startswith(_CHANGING_STARTS):
        raise _refused(f"its init_lora_weights is {start!r}, which changes the model's own weights",
                       "convert it to plain LoRA, as PEFT's documentation shows")  # fmt: skip


def _merge(loaded: LoadedModel, settings: dict[str, Any], left: dict[str, RecipeTensor], name: str) -> str:
    """One pair of matrices; the name of the weight that they change."""
    is_embedding = name.endswith(".lora_embedding_A")
    suffix = ".lora_embedding_A" if is_embedding else ".lora_A.weight"
    other = name.removesuffix(suffix) + suffix.replace("_A", "_B")
    module = name.removesuffix(suffix).removeprefix(_OF_MODEL)
    weight = f"{module}.weight"
    if other not in left:
        raise _refused(f"it has {name!r} without {other!r}", "download it again")
    down, up = left.pop(name), left.pop(other)
    base = _target(loaded, weight, name)
    if down.dim() != 2 or up.dim() != 2 or base.dim() != 2:
        raise _refused(f"{name!r} has shape {list(down.shape)}, for a weight of shape {list(base.shape)}",
                       "linear layers and embeddings are merged")  # fmt: skip
    rank = down.shape[0]
    # An embedding, and a layer whose matrix lies the other way round, take the product transposed.
    first, second = (down.t(), up.t()) if is_embedding or settings.get("fan_in_fan_out") else (up, down)
    expected = (first.shape[0], second.shape[1])
    if first.shape[1] != second.shape[0] or expected != tuple(base.shape) or rank == 0:
        raise _refused(f"{name!r} and {other!r} have shapes {list(down.shape)} and {list(up.shape)}, "
                       f"for a weight of shape {list(base.shape)}", "give the model that it was trained on")  # fmt: skip
    alpha = _of_module(settings.get("alpha_pattern"), module, settings.get("lora_alpha"))
    if not isinstance(alpha, (int, float)) or not math.isfinite(alpha):
        raise _refused(f"its lora_alpha for {module} is {alpha!r}", "a number is expected")
    scale = alpha / (math.sqrt(rank) if settings.get("use_rslora") else rank)
    loaded.recipes[weight] = add_product(base, first, second, scale)
    return weight


def _replace(loaded: LoadedModel, name: str, tensor: RecipeTensor, dtype: torch.dtype) -> str:
    """A module that was trained whole (``modules_to_save``): its weight takes the place of the model's."""
    weight = name.removeprefix(_OF_MODEL)
    if weight in loaded.missing:
        loaded.missing.remove(weight)
        loaded.recipes[weight] = tensor.to(dtype)
        return weight
    base = _target(loaded, weight, name)
    if base.shape != tensor.shape:
        raise _refused(f"{name!r} has shape {list(tensor.shape)}, the model's has {list(base.shape)}",
                       "give the model that it was trained on")  # fmt: skip
    loaded.recipes[weight] = tensor.to(base.dtype)
    return weight


def _target(loaded: LoadedModel, weight: str, name: str) -> RecipeTensor:
    base = loaded.recipes.get(weight)
    if base is None:
        raise _refused(f"the model has no weight {weight!r}, which {name!r} is for", "give the model that it was trained on")
    if sum(each is base for each in loaded.recipes.values()) > 1:
        raise _refused(f"{name!r} is for {weight!r}, which is tied to another weight", "merge it with PEFT")
    return base


def _of_module(patterns: Any, module: str, default: Any) -> Any:
    """As PEFT looks settings up by the names of modules."""
    for key, value in (patterns or {}).items():
        if re.match(rf"(.*\.)?({key})$", module):
            return value
    return default


def _refused(what: str, hint: str) -> ExportError:
    return ExportError(f"the adapter is not merged: {what}", code="unsupported-feature", hint=hint)
