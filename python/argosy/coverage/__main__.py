"""``python -m argosy.coverage capture|pt2|onnx|executorch|live-…|bundles``: measures which families can be captured or exported and writes the report."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import shutil
import signal
import sys
from pathlib import Path
from typing import Any

from ..check.engines import ENGINES
from ..errors import ExportError
from ..run.runners import RUNNERS
from .bundle_report import write_bundle_report
from .bundles import PREFIX, bundle_families
from .component_report import write_component_report
from .export_report import write_export_report
from .families import first_of_kinds, read_families
from .live_report import KINDS_OF_PROGRAMS, write_live_report
from .processes import Job, Limits, run_jobs
from .report import Results, write_report
from .worker import preload


#: Packages of each engine whose versions matter.
_PACKAGES = {"onnx": ("onnxruntime",), "executorch": ("executorch",), "genai": ("onnxruntime-genai",)}
#: The tools of each command that has a peer to compare with: our own and the peer.
PEERS = {"capture": ("ours", "peer"), "onnx": ("onnx", "onnx_peer"), "executorch": ("executorch", "executorch_peer"),
         **{f"live-{kind}": (f"live-{kind}", f"{kind}_peer") for kind in KINDS_OF_PROGRAMS}}  # fmt: skip
#: A peer that takes long runs on the first families of each kind, so many in all.
PEER_SAMPLES = {"executorch": 44, "live-executorch": 44, "live-dynamo": 44}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.coverage", description=__doc__.split(":", 1)[1].strip())
    commands = parser.add_subparsers(dest="command", required=True)
    for name, summary in (
        ("capture", "captures of twins, beside transformers' DynamoExporter"),
        ("bundles", "twins exported for an engine and run in it, greedy tokens compared with eager"),
        *((engine, f"twins exported and run in {engine}, compared with eager") for engine in ENGINES),
        *((f"live-{kind}", f"live models exported by the {kind} exporter, beside transformers'") for kind in KINDS_OF_PROGRAMS),
    ):
        command = commands.add_parser(name, help=summary)
        command.add_argument("--families", type=Path, help="CSV with family,model_type,kind; default: popular families")
        command.add_argument("--only", default="", metavar="A,B", help="only these of the list")
        command.add_argument("--jobs", type=int, default=1, help="processes at a time")
        command.add_argument(
            "--resume", action="store_true", help="keep what an earlier run, or the report, has of the same versions"
        )
        command.add_argument("--seconds", type=float, default=300.0, help="CPU time for one model and tool")
        command.add_argument("--memory", type=int, default=6000, metavar="MB", help="memory for one process")
        if name == "bundles":
            command.add_argument("--for", dest="engine", required=True, choices=tuple(RUNNERS), help="which engine")
            command.add_argument("--engine-python", default="", help="the Python of an engine that has its own environment")
        if name in PEERS:
            command.add_argument("--tools", default="ours,peer", help="ours, peer or both; the report keeps what it has of the other")
        if name == "executorch":
            command.add_argument("--recipe", default="xnnpack", choices=("xnnpack", "portable"), help="as export takes it")
            command.add_argument("--twins", type=Path, default=Path("build/coverage/twins"),
                                 help="where twins are kept, for other recipes and programs; delete it after changes of the capture")  # fmt: skip
        if name != "capture" and not name.startswith("live-"):
            command.add_argument("--program", default="argosy", help="the command-line program that exports")
        command.add_argument("--work", type=Path, default=Path("build/coverage"), help="logs and results as they come")
        command.add_argument("--output", type=Path, default=Path("docs/coverage"), help="where the report goes")
    options = parser.parse_args(arguments)
    try:
        return run(options)
    except ExportError as error:
        print(f"argosy.coverage: {error.message}; {error.hint}", file=sys.stderr)
        return 1


def run(options: argparse.Namespace) -> int:
    is_bundles = options.command == "bundles"
    if is_bundles and options.families is None:
        families = bundle_families(options.engine, options.only)
    else:
        families = read_families(options.families, options.only)
    names = ("torch", "transformers", *_PACKAGES.get(options.engine if is_bundles else options.command.removeprefix("live-"), ()))
    versions = {name: importlib.metadata.version(name) for name in names}
    options.work.mkdir(parents=True, exist_ok=True)
    recipe = getattr(options, "recipe", "")
    name = f"{options.command}-{recipe}" if recipe not in ("", "xnnpack") else options.command
    journal = options.work / f"{name}.jsonl"
    results = _read_journal(journal, versions) if options.resume else {}
    if not options.resume:
        journal.unlink(missing_ok=True)
    tools, program = [], ""
    if options.command not in PEERS:
        tools = [f"{PREFIX}{options.engine}" if is_bundles else options.command]
    else:
        pairs = zip(("ours", "peer"), PEERS[options.command], strict=True)
        chosen = options.tools.split(",")
        for side, tool in pairs:
            if side in chosen:
                tools.append(tool)
            if side not in chosen or options.resume:
                results = {**read_published(options.output, name, versions, side, tool), **results}
    if is_bundles or (options.command in tools and hasattr(options, "program")):
        program = shutil.which(options.program)
        if program is None:
            raise ExportError(f"there is no program {options.program}", code="not-found", hint="name it by --program")
    sample = {family.name for family in first_of_kinds(families, PEER_SAMPLES.get(options.command, len(families)))}
    jobs = [
        Job(family.name, family.model_type, tool, program, options.engine_python if is_bundles else "",
            ("--recipe", recipe) if recipe else (), options.twins / family.name if recipe and tool == options.command else None)
        for tool in tools
        for family in families
        if (family.name, tool) not in results and (not tool.endswith("_peer") or family.name in sample)
    ]  # fmt: skip
    count = 0

    def done(job: Job, outcome: dict[str, Any]) -> None:
        nonlocal count
        count += 1
        results[job.family, job.tool] = outcome
        line = {"family": job.family, "tool": job.tool, "versions": versions, "outcome": outcome}
        with journal.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, ensure_ascii=False) + "\n")
        reason = f": {outcome['reason']}" if outcome.get("reason") else ""
        text = f"[{count}/{len(jobs)}] {job.family} {job.tool}: {outcome['status']}{reason}"
        print(f"{text[:200]} ({outcome['cpu_seconds']} s, {outcome['peak_mb']} MB)", flush=True)

    if jobs:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        preload(tools)
    run_jobs(jobs, Limits(options.seconds, options.memory), options.jobs, options.work / "logs", done)
    report = options.output / f"{name}.md"
    if is_bundles:
        write_bundle_report(options.engine, tools[0], families, results, versions, options.output)
    elif options.command == "capture":
        write_report(families, results, versions, options.output)
    elif options.command.startswith("live-"):
        write_live_report(options.command.removeprefix("live-"), families, results, versions, options.output)
    elif options.command in PEERS:
        write_component_report(options.command, families, results, versions, options.output, recipe)
    else:
        write_export_report(options.command, families, results, versions, options.output)
    good = sum(results.get((family.name, tools[0]), {}).get("status") == "ok" for family in families) if tools else 0
    print(f"{good} of {len(families)} families {'captured' if options.command == 'capture' else 'exported'}: {report}")
    return 0


def _read_journal(path: Path, versions: dict[str, str]) -> Results:
    results: Results = {}
    if path.exists():
        for text in path.read_text(encoding="utf-8").splitlines():
            try:
                line = json.loads(text)
            except ValueError:  # The run was ended while it wrote this line.
                continue
            if line["versions"] == versions:
                results[line["family"], line["tool"]] = line["outcome"]
    return results


def read_published(folder: Path, name: str, versions: dict[str, str], side: str, tool: str) -> Results:
    """What the report has of a side that is not run now: it stays, unless it was measured with other versions. A peer in live
    models is also the one of the report of exports."""
    for path in (folder / f"{name}.json", folder / f"{name.removeprefix('live-')}.json" if side == "peer" else None):
        published = json.loads(path.read_text(encoding="utf-8")) if path is not None and path.exists() else {}
        if published.get("versions") == versions:
            rows = {(row["family"], tool): row[side] for row in published["families"] if row[side]["status"] != "not run"}
            if rows:
                return rows
    return {}


if __name__ == "__main__":
    # An end from outside unwinds, so that running jobs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
