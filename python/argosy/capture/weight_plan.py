"""The weight plan: how each weight of a model comes from a checkpoint, in steps that C++ replays.

    python -m argosy.capture.weight_plan --model DIR [--task T] [--dtype D] [--trust-remote-code] -o PLAN.json

Only names, dtypes and shapes are read; docs/weight-plan-format.md describes the result.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from ..extensions import load_extensions
from ..terminal import say_error
from .configuration import load_config, quantization_settings, read_configuration
from .twin import model_class
from .twin.build import narrowed
from .weight_plan_adapter import keep_apart, merge_adapter, prefix_of, read_adapter
from .weight_plan_gguf import gguf_state
from .weight_plan_headers import checkpoint_files, dtype_text, headers_hash, read_checkpoint_headers
from .weight_plan_loading import LoadedModel, checkpoint_dtype, load_recipes
from .weight_plan_quantized import FloatState, float_state
from .weight_plan_recipe import RecipeTensor, steps_of

FORMAT = "argosy-weight-plan"
VERSION = 3

#: Larger initial values than this are not written into a plan, but count as missing.
MAX_INITIAL_BYTES = 1 << 20


def make_weight_plan(
    folder: str | os.PathLike[str],
    *,
    task: str | None = None,
    dtype: str = "auto",
    trust_remote_code: bool = False,
    adapter: str | os.PathLike[str] | None = None,
    adapters_apart: Mapping[str, str | os.PathLike[str]] | None = None,
    cls: Any = None,
) -> dict[str, Any]:
    """The plan of the checkpoint in a folder that also has ``config.json``.

    ``dtype`` is ``"auto"`` (the configuration's, else the checkpoint's) or a name such as ``"float32"``. ``adapter`` is a folder
    with a LoRA adapter of PEFT, which is merged. ``adapters_apart``: such folders by names, whose matrices become weights of the plan.
    ``cls`` is the model's class, where it is known.
    """
    folder = Path(folder)
    config = load_config(folder, trust_remote_code=trust_remote_code)
    tensors = read_checkpoint_headers(folder)
    chosen = checkpoint_dtype(config, tensors) if dtype == "auto" else _named_dtype(dtype)
    cls = cls or model_class(config, task)
    settings = quantization_settings(read_configuration(folder))
    first_file = checkpoint_files(folder)[0]
    if first_file.suffix == ".gguf":
        stored = FloatState(*gguf_state(first_file, config, chosen))
    else:
        stored = float_state(settings, tensors, chosen)
    loaded = load_recipes(cls, narrowed(config, cls), stored.state, chosen, quantized=settings is not None)
    notes = stored.notes
    if adapter is not None:
        adapter_settings, of_adapter = read_adapter(Path(adapter))
        notes = [*notes, merge_adapter(loaded, adapter_settings, of_adapter, chosen)]
        tensors = [*tensors, *of_adapter]
    apart: dict[str, RecipeTensor] = {}
    for name, path in (adapters_apart or {}).items():
        adapter_settings, of_adapter = read_adapter(Path(path), prefix_of(name))
        kept, note = keep_apart(loaded, name, adapter_settings, of_adapter, chosen)
        apart, notes, tensors = {**apart, **kept}, [*notes, note], [*tensors, *of_adapter]
    loaded.recipes.update(apart)
    tensors = sorted(tensors, key=lambda each: each.name.encode())
    weights, missing = _weights(loaded)
    return {
        "format": FORMAT,
        "version": VERSION,
        "versions": {name: importlib.metadata.version(name) for name in ("torch", "transformers")},
        "model_class": cls.__name__,
        "task": task,
        "dtype": dtype_text(chosen),
        "checkpoint_hash": headers_hash(tensors),
        "weights": weights,
        "missing": sorted([*loaded.missing, *missing]),
        "unexpected": loaded.unexpected,
        "notes": notes,
    }


def plan_text(plan: dict[str, Any]) -> str:
    """The plan as JSON, a line for each weight: same plan, same bytes."""

    def compact(value: Any) -> str:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))

    lines = []
    for key, value in plan.items():
        if key == "weights" and value:
            value_text = "[\n  " + ",\n  ".join(compact(weight) for weight in value) + "\n ]"
        else:
            value_text = compact(value)
        lines.append(f" {compact(key)}: {value_text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def write_weight_plan(plan: dict[str, Any], path: str | os.PathLike[str]) -> None:
    """Writes the plan under a temporary name first, so that a reader sees all of it or none."""
    temporary = f"{os.fspath(path)}.{os.getpid()}.tmp"
    try:
        Path(temporary).write_text(plan_text(plan), encoding="utf-8")
        os.replace(temporary, path)
    finally:
        Path(temporary).unlink(missing_ok=True)


def _named_dtype(name: str) -> torch.dtype:
    dtype = getattr(torch, name, None)
    if not isinstance(dtype, torch.dtype) or not dtype.is_floating_point:
        raise ExportError(
            f"{name!r} is not a dtype for weights", code="invalid-input", hint="auto, float32, bfloat16, …"
        )
    return dtype


def _weights(loaded: LoadedModel) -> tuple[list[dict[str, Any]], list[str]]:
    """The plan's entries, and the names of initial values that are too large for it."""
    owners = _owners(loaded)
    entries: list[dict[str, Any]] = []
    too_large: list[str] = []
    for name, tensor in loaded.recipes.items():
        entry: dict[str, Any] = {"name": name, "dtype": dtype_text(tensor.dtype), "shape": list(tensor.shape)}
        owner = owners[id(tensor)]
        if owner == name:
            sources, steps = steps_of(tensor.recipe)
            entry["sources"] = sources
            if steps:
                entry["steps"] = steps
        else:
            entry["tied_to"] = owner
        entries.append(entry)
    for name, value in loaded.initial.items():
        if value.nbytes > MAX_INITIAL_BYTES and not _is_uniform(value):
            too_large.append(name)
            continue
        entries.append(
            {"name": name, "dtype": dtype_text(value.dtype), "shape": list(value.shape), **_initial_value(value)}
        )
    return sorted(entries, key=lambda entry: entry["name"].encode()), too_large


def _owners(loaded: LoadedModel) -> dict[int, str]:
    """Of names that share a tensor, the one that the others are tied to."""
    owners: dict[int, str] = {}
    for name in sorted(loaded.recipes, key=str.encode):
        tensor: RecipeTensor = loaded.recipes[name]
        known = owners.get(id(tensor))
        if known is None or (known in loaded.tied and name not in loaded.tied):
            owners[id(tensor)] = name
    return owners


def _is_uniform(value: torch.Tensor) -> bool:
    return value.numel() > 0 and torch.equal(value, value.flatten()[0].expand(value.shape))


def _initial_value(value: torch.Tensor) -> dict[str, Any]:
    """``fill``: the bytes of the one element that all are equal to; ``bytes``: all of them. In hexadecimal."""
    key, chosen = ("fill", value.flatten()[:1]) if _is_uniform(value) else ("bytes", value)
    return {key: chosen.contiguous().view(torch.uint8).numpy().tobytes().hex()}


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.capture.weight_plan", description=__doc__.split("\n")[0])
    parser.add_argument("--model", required=True, help="folder with config.json and a safetensors checkpoint")
    parser.add_argument("--task", help="the class to load it into, where the configuration leaves a choice")
    parser.add_argument("--dtype", default="auto", help="auto (default), float32, float16 or bfloat16")
    parser.add_argument("--adapter", help="folder of a LoRA adapter of PEFT, which is merged")
    parser.add_argument("--adapter-apart", action="append", default=[], metavar="NAME=DIR", help="one that is not merged; may be repeated")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("-o", "--output", required=True, help="the plan, a JSON file")
    options = parser.parse_args(arguments)
    try:
        load_extensions()
        plan = make_weight_plan(
            options.model,
            task=options.task,
            dtype=options.dtype,
            trust_remote_code=options.trust_remote_code,
            adapter=options.adapter,
            adapters_apart=dict(each.split("=", 1) for each in options.adapter_apart),
        )
        write_weight_plan(plan, options.output)
    except ExportError as error:
        say_error(error)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
