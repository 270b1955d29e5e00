"""Whether a live model and the command give the same ONNX graph, family by family: nodes, attributes and weights, but for names.

    python tests/sweeps same-graph llama,bert,vit
    python tests/sweeps same-graph --jobs 2 --resume       # all popular families; those that are the same already are not run again
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from core import find_core

from . import PROGRAM
from .configurations import configuration
from .exporting import export
from .families import KINDS, Family, of_results, read_families
from .journal import Journal, Key
from .pages import installed, table, versions_text, write_page
from .processes import add_options, run_sweep
from .worker import preload

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
    import onnx

    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    config = shrink(configuration(model_type))
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
    refusal, _ = export(program, "onnx", "--check", "off", "--model", folder / "twin", "--dtype", "float32",
                        "--capture", folder / "twin.capture", "--plan", folder / "plan.json", "-o", folder / "out")  # fmt: skip
    if refusal:
        raise RuntimeError(refusal)


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


def verdict(family: Family, program: str) -> str:
    """``SAME``, ``PARTS``, or what differs."""
    try:
        found = compare(family.model_type, program)
    except BaseException as error:  # noqa: BLE001 - whatever it is, it is shown
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
        return f"{type(error).__name__}: {str(error).splitlines()[0][:200]}"
    return "; ".join(f"{name}: {text}" for name, text in found.items() if text) or (SAME if found else PARTS)


def page(results: dict[Family, str], versions: dict[str, str]) -> list[str]:
    lines = [
        "# The same graph from live models and the command, family by family",
        "",
        f"Written by `python tests/sweeps same-graph` with {versions_text(versions)}; not edited by hand.",
        "",
        "Each family stands for its default configuration, shrunk to a twin with random weights. `argosy export onnx` exported its folder; "
        "`argosy.OnnxExporter` with `dynamic=True` exported the model in memory, called with what the command traces with. *The same*: the "
        "same nodes in the same order with the same attributes, inputs and weights; names may differ. Families that the command takes apart "
        "in a way that no single call of the model has (encoders that fill caches for their decoders) are not compared: *parts of its own*. "
        f"{len(results)} of {len(read_families())} popular families were run.",
        "",
    ]
    texts = {kind: [text for family, text in results.items() if kind in (family.kind, "total")] for kind in (*KINDS, "total")}
    counts = ([kind, len(found), len(found) - found.count(PARTS), found.count(SAME)] for kind, found in texts.items())
    lines += [*table(("kind", "families", "compared", SAME), counts), ""]
    rows = ([family.name, family.kind, text if text in (SAME, PARTS) else f"`{text}`"] for family, text in results.items())
    return [*lines, *table(("family", "kind", "result"), rows)]


@dataclass(frozen=True)
class SameGraphJob:
    family: Family
    program: str

    @property
    def key(self) -> Key:
        return self.family.name, "same-graph"

    def run(self, result: Path) -> None:
        text = verdict(self.family, self.program)
        state = {"status": text} if text in (SAME, PARTS) else {"status": "differs", "reason": text}
        result.write_text(json.dumps(state), encoding="utf-8")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps same-graph", description=__doc__.splitlines()[0])
    parser.add_argument("families", nargs="?", default="")
    parser.add_argument("--program", default=str(PROGRAM))
    parser.add_argument("--table", type=Path, default=Path("docs/coverage/same-graph.md"), help="where the page goes")
    add_options(parser)
    options = parser.parse_args(arguments)
    journal = Journal(options.work / "same-graph.jsonl", installed("torch", "transformers"))
    jobs = [SameGraphJob(family, options.program) for family in read_families(None, options.families)]
    if options.resume:  # what is not the same is tried again
        journal.forget({key for key, outcome in journal.read().items() if outcome["status"] not in (SAME, PARTS)})
    results = run_sweep(jobs, journal, options, lambda: preload(["live-onnx"]))
    states = {key[0]: outcome["status"] if outcome["status"] in (SAME, PARTS) else outcome["reason"] for key, outcome in results.items()}
    known = {family: states[family.name] for family in of_results(read_families(), results)}
    if not options.families or options.resume:
        write_page(options.table, page(known, journal.versions))
    print(f"{list(known.values()).count(SAME)} of {len(known)} families are the same")
    return 0
