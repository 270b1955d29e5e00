"""``python -m argosy.coverage capture``: measures which families can be captured and writes the report."""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from ..errors import ExportError
from .families import read_families
from .processes import Job, Limits, run_jobs
from .report import Results, write_report
from .worker import preload


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.coverage", description=__doc__.split(":", 1)[1].strip())
    commands = parser.add_subparsers(dest="command", required=True)
    capture = commands.add_parser("capture", help="captures of twins, beside transformers' DynamoExporter")
    capture.add_argument("--families", type=Path, help="CSV with family,model_type,kind; default: the popular families")
    capture.add_argument("--only", default="", metavar="A,B", help="only these of the list")
    capture.add_argument("--jobs", type=int, default=1, help="processes at a time")
    capture.add_argument("--resume", action="store_true", help="keep what an earlier run of the same versions found")
    capture.add_argument("--seconds", type=float, default=300.0, help="CPU time for one model and tool")
    capture.add_argument("--memory", type=int, default=6000, metavar="MB", help="memory for one process")
    capture.add_argument("--tools", default="ours,peer", help="ours, peer or both")
    capture.add_argument("--work", type=Path, default=Path("build/coverage"), help="logs and results as they come")
    capture.add_argument("--output", type=Path, default=Path("docs/coverage"), help="where the report goes")
    options = parser.parse_args(arguments)
    try:
        return run_capture(options)
    except ExportError as error:
        print(f"argosy.coverage: {error}; {error.hint}", file=sys.stderr)
        return 1


def run_capture(options: argparse.Namespace) -> int:
    families = read_families(options.families, options.only)
    versions = {name: importlib.metadata.version(name) for name in ("torch", "transformers")}
    options.work.mkdir(parents=True, exist_ok=True)
    journal = options.work / "capture.jsonl"
    results = _read_journal(journal, versions) if options.resume else {}
    if not options.resume:
        journal.unlink(missing_ok=True)
    tools = [tool for tool in ("ours", "peer") if tool in options.tools.split(",")]
    jobs = [
        Job(family.name, family.model_type, tool)
        for family in families
        for tool in tools
        if (family.name, tool) not in results
    ]
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
        preload()
    run_jobs(jobs, Limits(options.seconds, options.memory), options.jobs, options.work / "logs", done)
    write_report(families, results, versions, options.output)
    ours = sum(results.get((family.name, "ours"), {}).get("status") == "ok" for family in families)
    print(f"{ours} of {len(families)} families captured: {options.output / 'capture.md'}")
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


if __name__ == "__main__":
    # An end from outside unwinds, so that running jobs end too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    sys.exit(main())
