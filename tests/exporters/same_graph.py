"""Whether a live model and the command give the same ONNX graph, family by family: nodes, attributes and weights, but for names.

    python tests/exporters/same_graph.py llama,bert,vit --program build/release/apps/cli/argosy
    python tests/exporters/same_graph.py --jobs 2          # all popular families; writes docs/coverage/same-graph.md
    python tests/exporters/same_graph.py --resume          # those that docs/coverage/same-graph.json has no good result of
"""

from __future__ import annotations

import argparse
import hashlib
import json
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

TABLE = REPOSITORY / "docs/coverage/same-graph.md"
RESULTS = TABLE.with_suffix(".json")
#: Components that are one call of the model with the inputs of its forward; of others the command makes parts of its own.
CALLS = ("model", "decode")
SAME, PARTS = "the same", "parts of its own"


def compare(model_type: str, program: str) -> dict[str, str]:
    """For each component of the family's twin that is a call of the model what is not the same; empty if nothing is."""
    find_core()
    import torch

    from argosy.capture.configuration import set_dtype
    from argosy.capture.session import open_session, trace_shape
    from argosy.capture.twin import shrink
    from argosy.exporters import OnnxConfig, OnnxExporter
    from transformers import CONFIG_MAPPING

    import onnx

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    config = shrink(CONFIG_MAPPING[model_type]())
    set_dtype(config, "float32")
    session = open_session(config)
    if not any(component.name in CALLS for component in session.components):
        return {}
    found = {}
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        export_by_command(session, program, folder)
        for component in session.components:
            if component.name not in CALLS:
                continue
            files = [*folder.glob(f"out/**/{component.name}.onnx"), *folder.glob("out/**/model.onnx"), *folder.glob("out")]
            written = onnx.load(next(file for file in files if file.is_file()))
            inputs = component.inputs(session.twin, trace_shape(session.config))
            live = OnnxExporter().export(session.twin, inputs, OnnxConfig(dynamic=True))
            found[component.name] = first_difference(outline(written), outline(live.model_proto))
    return found


def export_by_command(session: Any, program: str, folder: Path) -> None:
    """In ``folder`` the twin, and in its "out" the graphs as ``argosy export onnx`` gives them."""
    from argosy.capture.configuration import canonical
    from argosy.capture.session import trace_session, write_session
    from argosy.capture.weight_plan import make_weight_plan, write_weight_plan

    session.twin.save_pretrained(folder / "twin")
    trace_session(session)
    write_session(session, folder / "twin.capture", canonical(session.config.to_dict()))
    write_weight_plan(make_weight_plan(folder / "twin", dtype="float32"), folder / "plan.json")
    command = [program, "export", "onnx", "--check", "off", "--model", str(folder / "twin"), "--dtype", "float32",
               "--capture", str(folder / "twin.capture"), "--plan", str(folder / "plan.json"), "-o", str(folder / "out")]  # fmt: skip
    subprocess.run(command, check=True, capture_output=True)


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


def verdict(family: Any, program: str) -> str:
    """``SAME``, ``PARTS``, or what differs."""
    try:
        found = compare(family.model_type, program)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return "; ".join(f"{name}: {text}" for name, text in found.items() if text) or (SAME if found else PARTS)


def table(results: dict[Any, str]) -> str:
    """The page of the results by family."""
    from argosy.capture.session import versions
    from argosy.coverage.families import KINDS, read_families

    def row(*cells: object) -> str:
        return f"| {' | '.join(str(cell).replace('|', '/') for cell in cells)} |"

    used = versions()
    lines = [
        "# The same graph from live models and the command, family by family",
        "",
        f"Written by `python tests/exporters/same_graph.py` with torch {used['torch']}, transformers {used['transformers']}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights. `argosy export onnx` exported its folder; "
        "`argosy.OnnxExporter` with `dynamic=True` exported the model in memory, called with what the command traces with. *The same*: the "
        "same nodes in the same order with the same attributes, inputs and weights; names may differ. Families that the command takes apart "
        "in a way that no single call of the model has (encoders that fill caches for their decoders) are not compared: *parts of its own*. "
        f"{len(results)} of {len(read_families())} popular families were run.",
        "",
        row("kind", "families", "compared", SAME),
        row(*["---"] * 4),
    ]
    for kind in (*KINDS, "total"):
        texts = [text for family, text in results.items() if kind in (family.kind, "total")]
        lines.append(row(kind, len(texts), len(texts) - texts.count(PARTS), texts.count(SAME)))
    lines += ["", row("family", "kind", "result"), row(*["---"] * 3)]
    lines += [row(family.name, family.kind, text if text in (SAME, PARTS) else f"`{text}`") for family, text in results.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    from argosy.coverage.families import read_families

    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="?", default="")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--program", default=str(REPOSITORY / "build/release/apps/cli/argosy"))
    parser.add_argument("--resume", action="store_true")
    options = parser.parse_args()
    families = read_families(None, options.families)
    results = json.loads(RESULTS.read_text(encoding="utf-8")) if options.resume and RESULTS.exists() else {}
    wanted = [family for family in families if results.get(family.name) not in (SAME, PARTS)]
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), max_tasks_per_child=20) as pool:
        for family, text in zip(wanted, pool.map(verdict, wanted, [options.program] * len(wanted)), strict=True):
            results[family.name] = text
            print(f"{family.name}: {text}", flush=True)
            if not options.families or options.resume:
                write(results)
    print(f"{list(results.values()).count(SAME)} of {len(results)} families are the same")
    return 0


def write(results: dict[str, str]) -> None:
    from argosy.coverage.families import read_families

    known = {family: results[family.name] for family in read_families() if family.name in results}
    RESULTS.write_text(json.dumps({family.name: text for family, text in known.items()}, indent=1) + "\n", encoding="utf-8")
    TABLE.write_text(table(known), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
