"""Between which values activations of a model's layers are, for programs that round them to ranges fixed in the file.

    python -m argosy.check.ranges --model DIR --calibrate FILE [--task TASK] -o ranges.json

The model reads FILE in float32: a text, in pieces, or inputs of its own (``.safetensors``: a tensor for each argument of
``forward``). ``argosy export executorch --qlinear 8a8w --seen-values ranges.json`` takes what is written; ``--calibrate FILE``
does both.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode

from ..errors import ExportError
from .looking import look, looking_parser, write_document

#: Tokens of a text that are read, and those of a piece.
_TOKENS, _PIECE = 4096, 256
#: Functions that a layer is, whose first arguments are input and weight.
LAYERS = (torch.nn.functional.linear, torch.conv1d, torch.conv2d)

#: The least and the most value.
Range = tuple[float, float]


class RangeRecorder(TorchFunctionMode):
    """While it is entered, notes what goes into layers of ``model`` and what comes out, by the names of their weights."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__()
        self._names: dict[int, list[str]] = {}
        for name, weight in model.named_parameters(remove_duplicate=False):
            self._names.setdefault(id(weight), []).append(name)
        self.layers: dict[str, tuple[Range, Range]] = {}

    def __torch_function__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in LAYERS:
            x, weight = (args[i] if i < len(args) else (kwargs or {})[name] for i, name in enumerate(("input", "weight")))
            if x.numel() and id(weight) in self._names:
                seen = (_range(x), _range(result))
                for name in self._names[id(weight)]:
                    self.layers[name] = tuple(map(_widened, self.layers.get(name, seen), seen))  # type: ignore[assignment]
        return result


def _range(values: torch.Tensor) -> Range:
    with torch.no_grad():
        least, most = (float(each) for each in torch.aminmax(values.detach().float()))
    return least, most


def _widened(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


def see_ranges(model: Path, calibrate: Path, *, task: str | None = None, trust_remote_code: bool = False,
               report: Any = lambda text: None) -> dict[str, tuple[Range, Range]]:  # fmt: skip
    """By the name of each layer's weight: of its input, and of its output."""
    from ..capture.configuration import load_config
    from ..capture.twin import model_class
    from .comparison import load_model

    report("loading the checkpoint")
    config = load_config(model, trust_remote_code=trust_remote_code)
    eager = load_model(model_class(config, task), model, "float32", trust_remote_code)
    calls = _given(calibrate) if calibrate.suffix == ".safetensors" else _pieces(eager, model, calibrate)
    recorder = RangeRecorder(eager)
    for i, call in enumerate(calls):
        report(f"call {i + 1} of {len(calls)}")
        try:
            with torch.no_grad(), recorder:
                eager(**call)
        except Exception as error:  # noqa: BLE001 - code of the model's own
            raise ExportError(f"the model fails on {calibrate}: {type(error).__name__}: {error}", code="invalid-input",
                              hint="give inputs of its forward() as .safetensors, by their names") from error  # fmt: skip
    if not recorder.layers:
        raise ExportError(f"{type(eager).__name__} has no linear layers and no convolutions", code="unsupported-feature",
                          hint="leave out 8a8w")  # fmt: skip
    return recorder.layers


def _given(file: Path) -> list[dict[str, torch.Tensor]]:
    from safetensors.torch import load_file

    try:
        return [load_file(str(file))]
    except Exception as error:  # noqa: BLE001 - safetensors has errors of its own
        raise ExportError(f"{file} cannot be read: {error}", code="not-found", hint="write it by safetensors.torch.save_file") from error


def _pieces(model: torch.nn.Module, folder: Path, text: Path) -> list[dict[str, torch.Tensor]]:
    from ..capture.components import call_flags
    from .texts import text_ids

    ids = text_ids(folder, text)[:, :_TOKENS]
    config = model.config.get_text_config()
    piece = min(_PIECE, getattr(config, "max_position_embeddings", None) or _PIECE)
    flags = call_flags(model.forward, use_cache=False, return_dict=True)
    calls = []
    for tokens in ids.split(piece, dim=1):
        call = {"input_ids": tokens, **flags}
        if getattr(model.config, "is_encoder_decoder", False):
            call["decoder_input_ids"] = tokens
        calls.append(call)
    return calls


def document(layers: Mapping[str, tuple[Range, Range]]) -> dict[str, Any]:
    """What is written: layers of which all values were finite."""
    finite = {name: seen for name, seen in layers.items() if all(math.isfinite(value) for each in seen for value in each)}
    return {"format": "argosy-seen-ranges", "version": 1,
            "layers": {name: {"input": list(given), "output": list(made)} for name, (given, made) in finite.items()}}  # fmt: skip


def write_ranges(layers: Mapping[str, tuple[Range, Range]], file: Path) -> None:
    write_document(document(layers), file)


def main(arguments: list[str] | None = None) -> int:
    parser = looking_parser("python -m argosy.check.ranges", __doc__)
    parser.add_argument("--calibrate", type=Path, required=True, help="a text, or inputs of the model (.safetensors)")
    parser.add_argument("--task", help="what decides the model's class")
    options = parser.parse_args(arguments)

    def find(report: Callable[[str], None]) -> dict[str, Any]:
        return document(see_ranges(options.model, options.calibrate, task=options.task,
                                   trust_remote_code=options.trust_remote_code, report=report))  # fmt: skip

    return look(options, find)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch may crash while it frees fake tensors at exit
