"""How large values inside a model become, for graphs that compute in float16 where that is safe.

    python -m argosy.check.seen --model DIR [--text FILE] -o seen.json

The model is exported in float32 with outputs that tell the largest magnitude of each value that could be float16. It reads the
text, and calls of the check's own, with its own weights. ``argosy export onnx --dtype mixed16 --seen-values seen.json`` takes
the file; ``--calibrate FILE`` does both.
"""

from __future__ import annotations

import gc
import math
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .looking import look, looking_parser

#: Before the name of a value: an output that is its largest magnitude.
PREFIX = "argosy.seen."
#: For what is infinite or no number: JSON has neither.
_NO_NUMBER = 1e300
#: Tokens of a text that a bundle's decoder reads at once, and those that follow one by one.
_TOKENS, _STEPS = 256, 8


def see(
    model: Path, *, text: Path | None = None, program: str = "argosy", options: tuple[str, ...] = (),
    folder: Path | None = None, trust_remote_code: bool = False, report: Any = lambda text: None,
) -> dict[str, dict[str, float]]:  # fmt: skip
    """By graph and value. ``options`` are those of ``argosy export onnx``, as the export that is to come has them. The float32
    export is in ``folder`` for a time."""
    with tempfile.TemporaryDirectory(prefix="argosy-seen-", dir=folder) as name:
        observed = Path(name) / "observed"
        report("exporting the model with outputs for its values")
        _export(program, model, observed, options)
        files = sorted(observed.rglob("*.onnx"))
        return _see_in(files, model, text, trust_remote_code, report)


def _export(program: str, model: Path, output: Path, options: tuple[str, ...]) -> None:
    command = [shutil.which(program) or program, "export", "onnx", "--model", str(model), "--dtype", "float32", "--observe-values",
               "--check", "off", "-o", str(output), *options]  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise ExportError(f"no values could be seen: {lines[-1] if lines else done.returncode}", code="engine-failed")


def _see_in(
    files: list[Path], model: Path, text: Path | None, trust_remote_code: bool, report: Any
) -> dict[str, dict[str, float]]:
    from .engines import ENGINES, open_files
    from .onnx_worker import open_onnx

    export = open_files(ENGINES["onnx"], files)
    if export.manifest.get("engine", "plain") != "plain" and "decode" in export.interfaces:
        return _see_decoders(files, model, text, report)
    calls = _calls(export, model, text, trust_remote_code, report)
    report("running the graphs")
    seen: dict[str, dict[str, float]] = {}
    for file, graph in _graphs(files).items():
        for component, run in open_onnx(str(file)).items():
            found = seen.setdefault(graph, {})
            for called, inputs in calls:
                if called == component:
                    _add(found, run(inputs))
    return seen


def _calls(
    export: Any, model: Path, text: Path | None, trust_remote_code: bool, report: Any
) -> list[tuple[str, dict[str, torch.Tensor]]]:
    """Those that the full check makes. The eager model, which makes some of the inputs, is gone afterwards."""
    from ..capture.configuration import load_config
    from ..capture.session import open_session
    from ..capture.twin import model_class
    from .comparison import Comparison, load_model, real_shapes

    config = load_config(model, trust_remote_code=trust_remote_code)
    task = export.manifest.get("task") or None
    components = open_session(config, task, prefill="prefill" in export.interfaces).components
    report("running the eager model")
    eager = load_model(model_class(config, task), model, "float32", trust_remote_code)
    comparison = Comparison(eager, components, export, 0.0, folder=model, text=text)
    shapes = {component.name: real_shapes(component) for component in components}
    comparison.prepare(shapes, edges=True, observed=True, words=True)
    calls = [(call.component, call.inputs) for call in comparison.expected.calls]
    del eager, comparison
    gc.collect()
    return calls


def _see_decoders(files: list[Path], model: Path, text: Path | None, report: Any) -> dict[str, dict[str, float]]:
    """Of bundles whose graphs an engine calls token by token: a text at once, then some tokens on what was cached."""
    from .onnx_worker import OnnxRunner, open_session
    from .texts import text_ids

    ids = text_ids(model, text)
    seen: dict[str, dict[str, float]] = {}
    for file, graph in _graphs(files).items():
        report(f"running {file.name}")
        runner = OnnxRunner(open_session(str(file)))
        shapes = {each.name: (each.shape, each.type) for each in runner.session.get_inputs()}
        found = seen.setdefault(graph, {})
        states = [name for name in runner.inputs if name not in ("input_ids", "attention_mask", "position_ids")]
        if "input_ids" not in runner.inputs or not all(name.startswith("past_key_values.") for name in states):
            raise ExportError(f"{file.name} takes more than text, and no values of it can be seen for this engine", code="unsupported-feature",
                              hint="leave out --calibrate, or export without --for")  # fmt: skip
        past: dict[str, torch.Tensor] = {}
        for name in states:
            sizes = [size if isinstance(size, int) else 1 if i == 0 else 0 for i, size in enumerate(shapes[name][0])]
            past[name] = torch.zeros(sizes)
        first = max(1, min(_TOKENS, ids.shape[1] - _STEPS))
        done = 0
        for end in [first, *range(first + 1, min(ids.shape[1], first + _STEPS) + 1)]:
            given = {"input_ids": ids[:, done:end], "attention_mask": torch.ones(1, end, dtype=torch.int64),
                     "position_ids": torch.arange(done, end)[None]}  # fmt: skip
            outputs = runner({**{name: tensor for name, tensor in given.items() if name in runner.inputs}, **past})
            _add(found, outputs)
            past = {name: outputs[name.replace("past_key_values", "present")] for name in states}
            done = end
    return seen


def _add(seen: dict[str, float], outputs: Mapping[str, torch.Tensor]) -> None:
    for output, tensor in outputs.items():
        if output.startswith(PREFIX):
            name, value = output.removeprefix(PREFIX), tensor.item()
            seen[name] = max(seen.get(name, 0.0), value if math.isfinite(value) else _NO_NUMBER)


def _graphs(files: list[Path]) -> dict[Path, str]:
    import onnx

    return {file: onnx.load(str(file), load_external_data=False).graph.name for file in files}


def main(arguments: list[str] | None = None) -> int:
    parser = looking_parser("python -m argosy.check.seen", __doc__)
    parser.add_argument("--text", type=Path, help="a file of text that the model reads")
    parser.add_argument("--program", default="argosy", help="the argosy program")
    parser.add_argument("--option", action="append", default=[], help="an argument of the export, --option=--opset=18")
    parser.add_argument("--folder", type=Path, help="where the float32 export is for a time (default: the system's)")
    options = parser.parse_args(arguments)

    def find(report: Callable[[str], None]) -> dict[str, Any]:
        seen = see(options.model, text=options.text, program=options.program, options=tuple(options.option),
                   folder=options.folder, trust_remote_code=options.trust_remote_code, report=report)  # fmt: skip
        return {"format": "argosy-seen-values", "version": 1, "graphs": seen}

    return look(options, find)


if __name__ == "__main__":
    code = main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)  # torch may crash while it frees fake tensors at exit
