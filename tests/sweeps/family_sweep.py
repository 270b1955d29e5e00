"""Measures which families can be captured or exported, and writes the page: one job for each family and tool."""

from __future__ import annotations

import argparse
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

from argosy.check.engines import ENGINES
from argosy.errors import ExportError
from argosy.run.runners import RUNNERS

from . import PROGRAM, bundle_report, capture_report, component_report, export_report, live_report
from .bundles import PREFIX, bundle_families
from .families import Family, first_of_kinds, of_results, read_families
from .journal import Journal, Key, Results
from .live_report import KINDS_OF_PROGRAMS
from .pages import installed
from .processes import Job, add_options, run_sweep
from .worker import preload, work

#: Packages of each engine whose versions matter.
_PACKAGES = {"onnx": ("onnxruntime",), "executorch": ("executorch",), "genai": ("onnxruntime-genai",)}
#: The tools of each command that has a peer to compare with: our own and the peer.
PEERS = {"capture": ("ours", "peer"), "onnx": ("onnx", "onnx_peer"), "executorch": ("executorch", "executorch_peer"),
         **{f"live-{kind}": (f"live-{kind}", f"{kind}_peer") for kind in KINDS_OF_PROGRAMS}}  # fmt: skip
#: A peer that takes long runs on the first families of each kind, so many in all.
PEER_SAMPLES = {"executorch": 44, "live-executorch": 44, "live-dynamo": 44}


@dataclass(frozen=True)
class FamilyJob:
    """One family and one tool."""

    family: Family
    tool: str
    #: the command-line program, for tools that are engines
    program: str = ""
    #: the interpreter of an engine that has an environment of its own
    engine_python: str = ""
    #: further arguments of the export
    options: tuple[str, ...] = ()
    #: where the twin is kept, of tools that keep it
    twin: Path | None = None

    @property
    def key(self) -> Key:
        return self.family.name, self.tool

    def run(self, result: Path) -> None:
        work(self.tool, self.family.model_type, result, self.program, self.engine_python, self.options, self.twin)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python tests/sweeps", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("capture", "bundles", *ENGINES, *(f"live-{kind}" for kind in KINDS_OF_PROGRAMS)):
        command = commands.add_parser(name)
        command.add_argument("--families", type=Path, help="CSV with family,model_type,kind; default: popular families")
        command.add_argument("--only", default="", metavar="A,B", help="only these of the list; the page keeps what the data has of others")
        add_options(command)
        command.add_argument("--no-run", action="store_true", help="runs nothing; writes the page of what the data has")
        if name == "bundles":
            command.add_argument("--for", dest="engine", required=True, choices=tuple(RUNNERS), help="which engine")
            command.add_argument("--engine-python", default="", help="the Python of an engine that has its own environment")
        if name in PEERS:
            command.add_argument("--tools", default="ours,peer", help="ours, peer or both; the page keeps what the data has of the other")
        if name == "executorch":
            command.add_argument("--recipe", default="xnnpack", choices=("xnnpack", "portable"), help="as export takes it")
            command.add_argument("--twins", type=Path, default=Path("build/coverage/twins"),
                                 help="where twins are kept, for other recipes and programs; delete it after changes of the capture")  # fmt: skip
        if name != "capture" and not name.startswith("live-"):
            command.add_argument("--program", default=str(PROGRAM), help="the command-line program that exports")
        command.add_argument("--output", type=Path, default=Path("docs/coverage"), help="where the page goes")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except ExportError as error:
        print(f"sweeps: {error.message}; {error.hint}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    is_bundles = options.command == "bundles"
    if is_bundles and options.families is None:
        families = bundle_families(options.engine, options.only)
    else:
        families = read_families(options.families, options.only)
    recipe = getattr(options, "recipe", "")
    name = f"{options.command}-{recipe}" if recipe not in ("", "xnnpack") else options.command
    tools = _tools(options)
    journal = Journal(options.work / f"{name}.jsonl")
    if options.no_run:
        journal.versions = journal.last_versions(lambda key: not is_bundles or key[1] in tools)
        results = journal.read()
    else:
        journal.versions = installed("torch", "transformers", *_packages(options))
        results = run_sweep(_jobs(options, families, tools, recipe), journal, options, lambda: preload(tools))
    if is_bundles:  # the data has those of all engines
        results = {key: outcome for key, outcome in results.items() if key[1] in tools}
    if options.command.startswith("live-"):  # the peer is the one of exports
        exports = Journal(options.work / f"{name.removeprefix('live-')}.jsonl", journal.versions).read()
        results = {**{key: outcome for key, outcome in exports.items() if key[1] == PEERS[options.command][1]}, **results}
    if options.families is None:
        listed = bundle_families(options.engine) if is_bundles else read_families()
        measured = of_results([*listed, *families], results)
        families = [*listed, *(family for family in measured if family not in listed)]
    page = options.output / f"{name}.md"
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(_render(options, families, results, journal, recipe), encoding="utf-8")
    tool = PEERS[options.command][0] if options.command in PEERS else tools[0]
    good = sum(results.get((family.name, tool), {}).get("status") == "ok" for family in families)
    print(f"{good} of {len(families)} families {'captured' if options.command == 'capture' else 'exported'}: {page}")
    return 0


def _tools(options: argparse.Namespace) -> list[str]:
    """Names of what is run on each family."""
    if options.command not in PEERS:
        return [f"{PREFIX}{options.engine}" if options.command == "bundles" else options.command]
    chosen = options.tools.split(",")
    return [tool for side, tool in zip(("ours", "peer"), PEERS[options.command], strict=True) if side in chosen]


def _packages(options: argparse.Namespace) -> tuple[str, ...]:
    return _PACKAGES.get(options.engine if options.command == "bundles" else options.command.removeprefix("live-"), ())


def _jobs(options: argparse.Namespace, families: list[Family], tools: list[str], recipe: str) -> list[Job]:
    program: str | None = ""
    if hasattr(options, "program") and any(not tool.endswith("_peer") for tool in tools):
        program = shutil.which(options.program)
        if program is None:
            raise ExportError(f"there is no program {options.program}", code="not-found", hint="name it by --program")
    sample = {family.name for family in first_of_kinds(families, PEER_SAMPLES.get(options.command, len(families)))}
    return [
        FamilyJob(family, tool, program, getattr(options, "engine_python", ""), ("--recipe", recipe) if recipe else (),
                  options.twins / family.name if recipe and tool == options.command else None)
        for tool in tools
        for family in families
        if not tool.endswith("_peer") or family.name in sample
    ]  # fmt: skip


def _render(options: argparse.Namespace, families: list[Family], results: Results, journal: Journal, recipe: str) -> str:
    command, versions = options.command, journal.versions
    if command == "bundles":
        return bundle_report.render(bundle_report.document(journal))
    if command == "capture":
        return capture_report.render(capture_report.document(families, results, versions))
    if command.startswith("live-"):
        return live_report.render(live_report.document(command.removeprefix("live-"), families, results, versions))
    if command in PEERS:
        return component_report.render(component_report.document(command, families, results, versions, recipe))
    return export_report.render(export_report.document(command, families, results, versions))
