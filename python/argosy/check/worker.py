"""Opens exported files and runs their components. As a script it is a process of its own that has neither transformers nor
argosy, as users run exports; it imports nothing of this package.

    python worker.py ENGINE FILE...

It answers each line of stdin, a JSON object, with one on stdout: ``{"component", "inputs", "outputs"}`` names two files of
tensors by name, one to read and one to write; the answer has ``seconds``, or ``error``. The first line it writes describes the
files: ``{"components": [name, …]}``.
"""

from __future__ import annotations

import json
import math
import sys
import time
import zipfile
from collections.abc import Callable
from typing import Any

if __name__ == "__main__":
    import executorch_worker  # beside this script
    import onnx_worker
else:
    from . import executorch_worker, onnx_worker

#: Inputs by name to outputs by name, both flat.
Run = Callable[[dict[str, Any]], dict[str, Any]]
BLOCKED = ("transformers", "argosy", "huggingface_hub", "tokenizers")


def read_manifest(path: str) -> dict[str, Any]:
    """What an export says of itself: ``argosy.json`` among the extra files of a .pt2 archive."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith("extra/argosy.json"):
                return json.loads(archive.read(name))
    raise ValueError(f"{path} has no extra/argosy.json: argosy export pt2 did not write it")


def open_pt2(path: str) -> dict[str, Run]:
    """The components of an archive."""
    import torch

    manifest = read_manifest(path)
    names = [manifest["component"]] if manifest.get("component") else [each["name"] for each in manifest["components"]]
    if len(names) == 1:
        programs = {names[0]: torch.export.load(path)}
    else:
        from torch.export.pt2_archive._package import load_pt2

        loaded = load_pt2(path).exported_programs
        programs = {name: loaded[name] for name in names}
    return {name: _runner(program) for name, program in programs.items()}


def _runner(program: Any) -> Run:
    import torch

    module = program.module()

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        with torch.no_grad():
            return module(**inputs)

    return run


def dtype_of_pt2(path: str) -> str:
    """The dtype of most weights, as ``float32``; no weight is read."""
    from torch._export.serde.schema import ScalarType
    from torch._export.serde.serialize import _SERIALIZE_TO_TORCH_DTYPE

    sizes: dict[str, int] = {}
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if not name.endswith("_weights_config.json"):
                continue
            for payload in json.loads(archive.read(name))["config"].values():
                meta = payload["tensor_meta"]
                dtype = _SERIALIZE_TO_TORCH_DTYPE[ScalarType(meta["dtype"])]
                if dtype.is_floating_point:
                    text = str(dtype).removeprefix("torch.")
                    count = math.prod(size["as_int"] for size in meta["sizes"])
                    sizes[text] = sizes.get(text, 0) + count
    return max(sizes, key=lambda text: sizes[text], default="float32")


#: By engine: what opens one file. Another engine adds its function here and its row in engines.py.
OPENERS: dict[str, Callable[[str], dict[str, Run]]] = {
    "pt2": open_pt2,
    "onnx": onnx_worker.open_onnx,
    "executorch": executorch_worker.open_executorch,
}


def serve(engine: str, files: list[str]) -> None:
    import torch

    components: dict[str, Run] = {}
    for file in files:
        components.update(OPENERS[engine](file))
    _say({"components": list(components)})
    for line in sys.stdin:
        request = json.loads(line)
        try:
            run = components[request["component"]]
            inputs = torch.load(request["inputs"], weights_only=True)
            start = time.perf_counter()
            outputs = run(inputs)
            seconds = time.perf_counter() - start
            torch.save({name: tensor.detach() for name, tensor in outputs.items()}, request["outputs"])
            _say({"seconds": seconds})
        except Exception as error:  # noqa: BLE001 - the table shows what a program does
            _say({"error": _one_line(error)})


def _one_line(error: BaseException) -> str:
    first = next((line for line in str(error).splitlines() if line.strip()), "")
    return f"{type(error).__name__}: {first}"[:300]


def _say(answer: dict[str, Any]) -> None:
    print(json.dumps(answer), file=_ANSWERS, flush=True)


_ANSWERS = sys.stdout

if __name__ == "__main__":
    sys.path.pop(0)  # this folder: its modules are none of ours here
    for blocked in BLOCKED:
        sys.modules[blocked] = None  # type: ignore[assignment]
    sys.stdout = sys.stderr  # what libraries print is no answer
    try:
        serve(sys.argv[1], sys.argv[2:])
    except Exception as error:  # noqa: BLE001
        _say({"error": _one_line(error)})
        sys.exit(1)
