"""Publishes a bundle on the Hub, in one commit.

python -m argosy.push FOLDER ORG/NAME [--revision BRANCH] [--private] [--all-files] [--dry-run]

Tokens are huggingface_hub's business: HF_TOKEN, or what ``hf auth login`` left.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from ..command import find_program
from ..errors import ExportError
from ..summary import Summary
from ..terminal import say, say_error
from .contents import Contents, File, lint, printable, read_contents, size_text

_PART = r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,94}[A-Za-z0-9])?"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="argosy push", description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=Path, help="the folder that argosy export wrote")
    parser.add_argument("repository", help="ORG/NAME; made if there is none")
    parser.add_argument("--revision", default="main", help="the branch (default: main); made if there is none")
    parser.add_argument("--private", action="store_true", help="if the repository is made, only its owners see it")
    parser.add_argument("--all-files", action="store_true", help="everything in the folder, also what no export wrote")
    parser.add_argument("--dry-run", action="store_true", help="say what would be sent, and ask nothing of any server")
    parser.add_argument("--json", action="store_true", help="what was done, as one JSON object")
    parser.add_argument("--program", type=Path, help="argosy, for its lint (default: the one that is installed)")
    options = parser.parse_args(arguments)
    summary = Summary("push")
    try:
        text = run(options, summary)
    except ExportError as error:
        say_error(error)
        if options.json:
            summary.print(1, error)
        return 1
    except KeyboardInterrupt:
        say("argosy: broken off before the commit; run it again to go on")
        return 130
    summary.print() if options.json else print(text)
    return 0


def run(options: argparse.Namespace, summary: Summary) -> str:
    """Pushes, or says what would be pushed."""
    check_names(options.repository, options.revision)
    contents = read_contents(options.folder, options.all_files)
    for warning in lint(contents, options.program or find_program()):
        _report(f"argosy lint warns: {warning}")
    summary.fields |= {"folder": str(contents.folder), "repository": options.repository, "revision": options.revision,
                       "dry_run": options.dry_run}  # fmt: skip
    if options.dry_run:
        summary.fields |= {"files": _fields(contents.files), "total_bytes": contents.size, "title": contents.title}
        return plan_text(contents, options.repository, options.revision, options.private)
    if not sys.stderr.isatty():
        os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")  # read when huggingface_hub is imported
    from .upload import push

    done = push(contents, options.repository, revision=options.revision, private=options.private, report=_report)
    total = sum(file.size for file in done.changed)
    summary.fields |= {"url": done.url, "commit": done.commit, "sent": _fields(done.changed), "total_bytes": total,
                       "removed": list(done.removed)}  # fmt: skip
    if not done.changed and not done.removed:
        return f"{done.url} has this bundle already, at commit {done.commit}; nothing was sent"
    size = size_text(total)
    removed = f", {_files(len(done.removed))} of an earlier export removed" if done.removed else ""
    return f"{done.url}: commit {done.commit} with {_files(len(done.changed))}, {size}{removed}"


def _fields(files: Sequence[File]) -> list[dict[str, object]]:
    return [{"name": file.name, "bytes": file.size} for file in files]


def check_names(repository: str, revision: str) -> None:
    """`ExportError` for what cannot be names on the Hub."""
    if not re.fullmatch(f"{_PART}/{_PART}", repository) or ".." in repository or "--" in repository or repository.endswith(".git"):
        raise ExportError(
            f"{printable(repository)!r} is no name on the Hub",
            code="invalid-input",
            hint="give ORG/NAME: letters, digits, -, _ and .",
        )
    if _COMMIT.fullmatch(revision):
        raise ExportError(f"{revision} is a commit", code="invalid-input", hint="--revision is the branch to commit to")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._/-]{0,199}", revision) or ".." in revision or revision.endswith("/"):
        raise ExportError(
            f"{printable(revision)!r} is no name of a branch", code="invalid-input", hint="--revision is a branch, such as q4"
        )


def plan_text(contents: Contents, repository: str, revision: str, private: bool) -> str:
    """What a push would do, without a look at the Hub."""
    sizes = [size_text(file.size) for file in contents.files]
    width = max(len(size) for size in sizes)
    lines = [f"{contents.folder} to {repository}, branch {revision}: {_files(len(sizes))}, {size_text(contents.size)}"]
    lines += [f"  {size:>{width}}  {printable(file.name, 200)}" for size, file in zip(sizes, contents.files, strict=True)]
    head = contents.card_head()
    lines += ["the card's metadata:", *(f"  {printable(line)}" for line in head)] if head else ["there is no card with metadata"]
    visible = "private" if private else "as visible as its owner's settings say"
    lines += [
        "a push would",
        f"  make {repository}, {visible}, if there is none{'' if revision == 'main' else f', and its branch {revision}'}",
        "  send the files that the branch lacks or has with other content",
        *(["  remove files of an earlier export that this one lacks"] if contents.manifest else []),
        f'  make one commit, "{contents.title}"',
        "this was a dry run: no server was asked",
    ]
    return "\n".join(lines)


def _files(count: int) -> str:
    return f"{count} file{'' if count == 1 else 's'}"


def _report(text: str) -> None:
    say(f"argosy: {text}")


if __name__ == "__main__":
    sys.exit(main())
