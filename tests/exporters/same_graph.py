"""Whether a live model and the command give the same ONNX graph, family by family: nodes, attributes and weights, but for names.

    python tests/exporters/same_graph.py llama,bert,vit --program build/release/apps/cli/argosy
    python tests/exporters/same_graph.py --jobs 2          # all popular families
"""

from __future__ import annotations

import argparse
import hashlib
import subprocess
import sys
import tempfile
import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(REPOSITORY / "python"), str(REPOSITORY / "tests/ops")]
from core import find_core  # noqa: E402


def compare(model_type: str, program: str) -> dict[str, str]:
    """For each component of the family's twin what is not the same; empty if nothing is."""
    find_core()
    import torch

    from argosy.capture.configuration import canonical, set_dtype
    from argosy.capture.session import open_session, trace_session, trace_shape, write_session
    from argosy.capture.twin import shrink
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan
    from argosy.exporters import OnnxConfig, OnnxExporter
    from transformers import CONFIG_MAPPING

    import onnx

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    config = shrink(CONFIG_MAPPING[model_type]())
    set_dtype(config, "float32")
    session = open_session(config)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        session.twin.save_pretrained(folder / "twin")
        trace_session(session, lambda step: None)
        write_session(session, folder / "twin.capture", canonical(session.config.to_dict()))
        write_weight_plan(make_weight_plan(folder / "twin", dtype="float32"), folder / "plan.json")
        command = [program, "export", "onnx", "--check", "off", "--model", str(folder / "twin"), "--dtype", "float32",
                   "--capture", str(folder / "twin.capture"), "--plan", str(folder / "plan.json"), "-o", str(folder / "out")]  # fmt: skip
        subprocess.run(command, check=True, capture_output=True)
        found = {}
        for component in session.components:
            if component.name not in ("model", "decode"):
                continue
            files = [*folder.glob(f"out/**/{component.name}.onnx"), *folder.glob("out/**/model.onnx"), *folder.glob("out")]
            written = onnx.load(next(file for file in files if file.is_file()))
            inputs = component.inputs(session.twin, trace_shape(session.config))
            live = OnnxExporter().export(session.twin, inputs, OnnxConfig(dynamic=True))
            found[component.name] = first_difference(outline(written), outline(live.model_proto))
    return found


def outline(model: Any) -> list[tuple[Any, ...]]:
    """Nodes in order, each with what its inputs are: a place in the graph, or a hash of a constant."""
    from onnx import numpy_helper

    names = {each.name: ("input", i) for i, each in enumerate(model.graph.input)}
    for tensor in model.graph.initializer:
        array = numpy_helper.to_array(tensor)
        names[tensor.name] = ("constant", str(array.dtype), array.shape, hashlib.sha256(array.tobytes()).hexdigest()[:16])
    nodes: list[tuple[Any, ...]] = []
    for i, node in enumerate(model.graph.node):
        attributes = sorted((each.name, each.SerializeToString()) for each in node.attribute)
        nodes.append((node.op_type, tuple(names.get(name, ("none",)) for name in node.input), tuple(attributes)))
        names.update({name: ("node", i, k) for k, name in enumerate(node.output)})
    return [*nodes, ("outputs", tuple(names.get(each.name, ("none",)) for each in model.graph.output))]


def first_difference(one: list[tuple[Any, ...]], other: list[tuple[Any, ...]]) -> str:
    if one == other:
        return ""
    for i, (a, b) in enumerate(zip(one, other, strict=False)):
        if a != b:
            return f"node {i} of {len(one) - 1} and {len(other) - 1}: {a[0]} {a[1]} / {b[0]} {b[1]}"[:300]
    return f"{len(one) - 1} nodes and {len(other) - 1}"


def _problem(family: tuple[str, str], program: str) -> tuple[str, str]:
    try:
        found = compare(family[1], program)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown
        return family[0], f"{type(error).__name__}: {str(error)[:200]}"
    if not found:
        return family[0], "has other components than a model or a decoder"
    return family[0], "; ".join(f"{name}: {text}" for name, text in found.items() if text)


def main() -> int:
    from argosy.coverage.families import read_families

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="?", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--program", default=str(REPOSITORY / "build/release/apps/cli/argosy"))
    options = parser.parse_args()
    families = [(family.name, family.model_type) for family in read_families(None, options.families)]
    same = 0
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=4) as pool:
        for name, text in pool.map(_problem, families, [options.program] * len(families)):
            same += not text
            print(f"{name}: {text or 'the same'}", flush=True)
    print(f"{same} of {len(families)} families are the same")
    return 0


if __name__ == "__main__":
    sys.exit(main())
