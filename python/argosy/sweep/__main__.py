"""Runs many exports, and reports how they end.

python -m argosy.sweep JOBS.jsonl -o FOLDER [--jobs N] [--seconds S] [--memory SIZE] [--disk SIZE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import signal
import sys
from pathlib import Path

from ..command import find_program
from ..errors import ExportError
from ..summary import Summary
from ..terminal import say, say_error
from .driver import Report, Settings, run_sweep, shard_suffix
from .jobs import Job, Limits, parse_size, read_jobs, shard
from .journal import Line
from .local import LocalWorkers, Workers
from .machine import cores, memory_bytes
from .markdown import counts_text, sweep_table
from .page import sweep_page
from .results import collect
from .runner import size_text

#: What a capture takes, with room to spare; so many jobs run at a time by default as there is memory for.
_USUAL_MEMORY = 4 << 30


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="argosy sweep", description=__doc__.split("\n", 1)[0])
    parser.add_argument("jobs_file", type=Path, help="one JSON object a line, each a job")
    parser.add_argument("-o", "--output", type=Path, help="the folder for results and exports (default: as the file, without .jsonl)")
    parser.add_argument("--jobs", type=_count, help="at a time (default: as cores and memory allow)")
    parser.add_argument("--seconds", type=_seconds, default=3600.0, help="for one job (default: 3600; 0: any)")
    parser.add_argument("--memory", type=_size, help="for one job (default: its share of the machine's; 0: any)")
    parser.add_argument("--disk", type=_size, default=0, help="for one job (default: any)")
    parser.add_argument("--retries", type=int, default=1, help="of jobs that the machine ended (default: 1)")
    parser.add_argument("--retry-failed", action="store_true", help="run jobs that ended badly again")
    parser.add_argument("--discard", action="store_true", help="keep results alone, no exports")
    parser.add_argument("--shard", default="", help="I/N: only this part of the jobs, from 1")
    parser.add_argument("--ray", nargs="?", const="", metavar="ADDRESS", help="hand the jobs to a Ray cluster")
    parser.add_argument("--report", type=Path, action="append", default=[], metavar="FOLDER",
                        help="run nothing, report on the results there; again for another")  # fmt: skip
    parser.add_argument("--compare", type=Path, metavar="FOLDER", help="an earlier sweep, to say what is different")
    parser.add_argument("--progress", choices=("text", "json", "off"), default="text")
    parser.add_argument("--json", action="store_true", help="what came of it, as one JSON object")
    parser.add_argument("--program", type=Path, help="argosy (default: the one that is installed)")
    parser.add_argument("--sources", default="", help="a hash of the program's sources (default: of the program)")
    options = parser.parse_args(arguments)
    summary = Summary("sweep")
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, _broken_off)
    try:
        exit_code = run(options, summary)
    except ExportError as error:
        say_error(error)
        if options.json:
            summary.print(1, error)
        return 1
    except KeyboardInterrupt:
        say("argosy: broken off; run it again to go on")
        return 130
    if options.json:
        summary.print(exit_code)
    return exit_code


def run(options: argparse.Namespace, summary: Summary) -> int:
    jobs = read_jobs(options.jobs_file)
    folder = options.output or options.jobs_file.with_suffix("")
    if folder == options.jobs_file:
        raise ExportError(f"{folder} is the file of jobs itself", code="invalid-input", hint="name a folder by -o")
    for each in (*options.report, *filter(None, [options.compare])):
        if not each.is_dir():
            raise ExportError(f"{each} is no folder", code="not-found", hint="give one that a sweep wrote")
    mine = _part(jobs, options.shard)
    if not options.report:
        run_jobs(mine, folder, options)
    return report(mine, folder, options, summary)


def run_jobs(jobs: list[Job], folder: Path, options: argparse.Namespace) -> None:
    program = (options.program or find_program()).absolute()
    at_a_time = options.jobs or usual_jobs()
    # Other machines have other sizes.
    share = memory_bytes() * 9 // 10 // at_a_time if options.ray is None else 0
    settings = Settings(
        folder=folder,
        program=program,
        sources=options.sources or hashlib.sha256(program.read_bytes()).hexdigest(),
        limits=Limits(options.seconds, share if options.memory is None else options.memory, options.disk),
        retries=options.retries,
        retries_failed=options.retry_failed,
        keeps=not options.discard,
        threads=max(1, cores() // at_a_time) if options.ray is None else 0,
        shard=options.shard,
    )  # fmt: skip

    def workers() -> Workers:
        if options.ray is None:
            return LocalWorkers(at_a_time)
        from .cluster import RayWorkers

        return RayWorkers(options.ray, options.retries)

    run_sweep(jobs, settings, workers, _reporter(options.progress))


def report(jobs: list[Job], folder: Path, options: argparse.Namespace, summary: Summary) -> int:
    """Writes the table and the page; 3 if not all jobs are as they should be. A shard's are beside those of others."""
    results = collect(jobs, options.report or [folder], options.compare)
    folder.mkdir(parents=True, exist_ok=True)
    part = shard_suffix(options.shard)
    table, page = folder / f"table{part}.md", folder / f"index{part}.html"
    table.write_text(sweep_table(results), encoding="utf-8", errors="backslashreplace")
    page.write_text(sweep_page(results, options.jobs_file.stem), encoding="utf-8", errors="backslashreplace")
    changes = len(results.changes())
    summary.fields |= {"folder": str(folder), "table": str(table), "page": str(page), "jobs": len(jobs), "ended": results.counts(), "different": changes}
    if not options.json:
        print(f"{len(jobs)} jobs: {counts_text(results)}; {table}, {page}")
    return 0 if not results.bad() else 3


def _reporter(progress: str) -> Report:
    def text(line: Line, done: int, count: int) -> None:
        took = f" ({line['seconds']:.1f} s, {size_text(line['peak_bytes'])})" if "seconds" in line else ""
        reason = f": {line['reason']}" if line.get("reason") else ""
        say(f"[{done}/{count}] {line['name']} {line['target']}: {line['status']}{reason}{took}")

    def as_json(line: Line, done: int, count: int) -> None:
        print(json.dumps({"done": done, "count": count} | line, ensure_ascii=False), file=sys.stderr, flush=True)

    return {"text": text, "json": as_json}.get(progress, lambda line, done, count: None)


def _part(jobs: list[Job], text: str) -> list[Job]:
    if not text:
        return jobs
    found = re.fullmatch(r"([0-9]{1,7})/([0-9]{1,7})", text)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise ExportError(f"{text!r} is no part of a sweep", code="invalid-input", hint="write --shard 1/8 to --shard 8/8")
    return shard(jobs, int(found[1]), int(found[2]))


def usual_jobs() -> int:
    return max(1, min(cores(), memory_bytes() // _USUAL_MEMORY))


def _count(text: str) -> int:
    value = int(text)
    if value < 1:
        raise ValueError(text)
    return value


def _seconds(text: str) -> float:
    value = float(text)
    if not 0 <= value < float("inf"):
        raise ValueError(text)
    return value


def _size(text: str) -> int:
    return parse_size(int(text) if text.isdigit() else text)


def _broken_off(*_: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main())
