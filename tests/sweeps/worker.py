"""One family and one tool, in a process of its own.

The result is a JSON file that is written again after every step: ``step`` says how far it came, ``status`` and ``reason``
are there once it is known how it ended.
"""

from __future__ import annotations

import importlib
import traceback
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from core import find_core

from .configurations import configuration
from .outcome import Report, first_line, make_twin


#: Tools that export live models: package, format, and the shapes that count where these are not all.
LIVE: dict[str, tuple[Any, ...]] = {
    "peer": ("transformers.exporters", "dynamo", ("traced", "other")),
    "onnx_peer": ("transformers.exporters", "onnx"),
    "executorch_peer": ("transformers.exporters", "executorch"),
    "dynamo_peer": ("transformers.exporters", "dynamo"),
    "live-dynamo": ("argosy.exporters", "dynamo"),
    "live-onnx": ("argosy.exporters", "onnx"),
    "live-executorch": ("argosy.exporters", "executorch"),
}


def preload(tools: Iterable[str] = ()) -> None:
    """Imports what every job needs, and computes nothing: a process that is forked after this starts at once."""
    names = ["torch._dynamo", "torch.export", "transformers.modeling_utils", "sweeps.capture", "sweeps.export", "sweeps.bundles"]  # fmt: skip
    kinds = {LIVE[tool][1] for tool in tools if tool in LIVE}
    if kinds:
        names += ["sweeps.live"]
    if "onnx_peer" in tools:
        names += ["torch.onnx", "onnxscript"]
    if "onnx" in kinds:
        names += ["onnxruntime"]
    if "executorch_peer" in tools:
        names += ["executorch.exir"]
    for name in names:
        importlib.import_module(name)
    if any(tool.startswith("live-") for tool in tools):
        find_core()


def work(tool: str, model_type: str, path: Path, program: str = "", engine_python: str = "",
         options: tuple[str, ...] = (), twin: Path | None = None) -> None:  # fmt: skip
    """Does one job. Any way in which it ends is a result. A tool is "ours", one that exports live models, or an engine that runs exports; of
    some of these twins are kept, in the folder `twin`."""
    import torch
    report = Report(path)
    warnings.simplefilter("ignore")
    # Threads do not survive a fork, and jobs run side by side.
    torch.set_num_threads(1)
    try:
        if tool.startswith("bundle-"):
            from .bundles import run as run_bundle

            run_bundle(model_type, tool.removeprefix("bundle-"), program, report, engine_python)
            return
        if twin is not None:
            from .prepared import run as run_prepared

            run_prepared(model_type, tool, program, report, options, twin)
            return
        twin, config = make_twin(model_type, report)
        if tool == "ours":
            from .capture import run

            run(config, report)
        elif tool in LIVE:
            from .live import run as run_live

            run_live(twin, report, *LIVE[tool])
        else:
            from .export import run as run_export

            run_export(configuration(model_type), twin, tool, program, report, options)
    except BaseException as error:
        traceback.print_exc()
        report.finish("failed", f"{report.values.get('step', 'start')}: {first_line(error)}")
