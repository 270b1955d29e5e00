"""LoRA adapters of a bundle, switched on in its engine one after the other, beside eager with the same adapter.

Eager's side reads PEFT's folder by itself, and adds to what a layer gives: it shares nothing with the export but the folder.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from ..run.runners import BundleProcess
from .rows import Row
from .tokens import ExpectedRun, run_bundle

Expected = dict[str, list[ExpectedRun]]
_OF_MODEL = "base_model.model."
_DOWN = ".lora_A.weight"
#: A twin's adapters have at most this rank, and different ones where there are several.
_TWIN_RANK = 8


def read_adapters(given: list[str]) -> dict[str, Path]:
    """Of arguments ``NAME=DIR``."""
    found: dict[str, Path] = {}
    for each in given:
        name, is_given, folder = each.partition("=")
        if not is_given or not name or not folder:
            raise ExportError(f"{each!r} is not NAME=DIR", code="invalid-input", hint="name a bundle's adapter and its folder")
        found[name] = Path(folder)
    return found


@contextmanager
def adapted(model: torch.nn.Module, folder: Path) -> Iterator[None]:
    """While it is entered, layers add what PEFT computes beside them: their input times A, times B, times the scaling."""
    from safetensors.torch import load_file

    settings = json.loads((folder / "adapter_config.json").read_text(encoding="utf-8"))
    tensors = load_file(folder / "adapter_model.safetensors")
    handles = []
    try:
        for name in sorted(tensors):
            if not name.endswith(_DOWN):
                continue
            path = name.removeprefix(_OF_MODEL).removesuffix(_DOWN)
            down, up = tensors[name].float(), tensors[name.replace(".lora_A.", ".lora_B.")].float()
            scale = _alpha(settings, path) / (math.sqrt(len(down)) if settings.get("use_rslora") else len(down))
            handles.append(model.get_submodule(path).register_forward_hook(_adding(down, scale * up)))
        yield
    finally:
        for handle in handles:
            handle.remove()


def _alpha(settings: Mapping[str, Any], path: str) -> float:
    for pattern, value in (settings.get("alpha_pattern") or {}).items():
        if re.match(rf"(.*\.)?({pattern})$", path):
            return float(value)
    return float(settings["lora_alpha"])


def _adding(down: torch.Tensor, up: torch.Tensor) -> Callable[..., torch.Tensor]:
    def add(_module: Any, inputs: tuple, output: torch.Tensor) -> torch.Tensor:
        x = inputs[0]
        return output + torch.matmul(torch.matmul(x, down.to(x.dtype).T), up.to(x.dtype).T)

    return add


def expected_with(
    model: torch.nn.Module, adapters: Mapping[str, Path], runs: Callable[[], list[ExpectedRun]]
) -> Expected:  # fmt: skip
    """What eager generates with each adapter; ``runs`` calls the model."""
    expected: Expected = {}
    for name, folder in adapters.items():
        with adapted(model, folder):
            expected[name] = runs()
    return expected


def adapter_rows(
    process: BundleProcess, files: Mapping[str, str], expected: Expected, base: list[ExpectedRun], count: int, tolerance: float
) -> list[Row]:  # fmt: skip
    """Each adapter in turn, then the model alone again. Adapters of the bundle (``files``) that nothing is expected of are listed."""
    rows: list[Row] = []
    for name, file in files.items():
        if name not in expected:
            rows.append(Row("bundle", "adapter", name, None, note=f"the adapter {name!r}, as --adapter-apart {name}=DIR is not given"))
            continue
        for each in expected[name]:
            row = run_bundle(process, each, count, tolerance, adapter=file)
            row.origin, row.shape = "adapter", f"{name}, {row.shape}"
            rows.append(_told(row, each, base))
    if expected and base:
        row = run_bundle(process, base[0], count, tolerance)
        row.origin, row.shape = "adapter", f"none again, {row.shape}"
        rows.append(row)
    for name in expected:
        if name not in files:
            rows.append(Row("bundle", "adapter", name, False, note="the bundle has no adapter of that name"))
    return rows


def _told(row: Row, expected: ExpectedRun, base: list[ExpectedRun]) -> Row:
    """An adapter that changes no token shows nothing."""
    same = [each for each in base if each.prompts == expected.prompts and each.tokens == expected.tokens]
    if same and not row.note:
        row.note = "eager gives the same tokens without the adapter"
    return row


def twin_adapters(adapters: Mapping[str, Path], twin: torch.nn.Module, folder: Path) -> dict[str, Path]:
    """Adapters of a twin, for layers of the same names as those of ``adapters``: random, as large as the weights that they change."""
    from safetensors.torch import save_file

    made: dict[str, Path] = {}
    counts = [id(each) for each in dict(twin.named_parameters(remove_duplicate=False)).values()]
    for number, (name, source) in enumerate(adapters.items()):
        settings, targets, rank = _read_targets(source)
        rank = max(1, min(rank, _TWIN_RANK) - number)
        generator = torch.Generator().manual_seed(number)
        tensors: dict[str, torch.Tensor] = {}
        for path, module in twin.named_modules():
            weight = getattr(module, "weight", None)
            if path.rpartition(".")[2] not in targets or not isinstance(weight, torch.Tensor) or weight.dim() != 2:
                continue
            if isinstance(module, torch.nn.Embedding) or counts.count(id(weight)) > 1:
                continue
            rows, width = reversed(weight.shape) if settings.get("fan_in_fan_out") else weight.shape
            scale = float(weight.detach().float().std()) / math.sqrt(rank)
            tensors[f"{_OF_MODEL}{path}{_DOWN}"] = torch.randn(rank, width, generator=generator)
            tensors[f"{_OF_MODEL}{path}.lora_B.weight"] = torch.randn(rows, rank, generator=generator) * scale
        if not tensors:
            continue
        made[name] = folder / name
        made[name].mkdir(parents=True, exist_ok=True)
        save_file(tensors, made[name] / "adapter_model.safetensors", {"format": "pt"})
        kept = {"peft_type": "LORA", "r": rank, "lora_alpha": rank, "fan_in_fan_out": bool(settings.get("fan_in_fan_out"))}
        (made[name] / "adapter_config.json").write_text(json.dumps(kept))
    return made


def _read_targets(folder: Path) -> tuple[dict[str, Any], set[str], int]:
    """The settings, the last parts of the names of modules, and the largest rank."""
    from ..capture.weight_plan_adapter import read_adapter

    settings, tensors = read_adapter(folder, "")
    down = [each for each in tensors if each.name.endswith(_DOWN)]
    targets = {each.name.removesuffix(_DOWN).rpartition(".")[2] for each in down}
    return settings, targets, max((each.shape[0] for each in down), default=1)
