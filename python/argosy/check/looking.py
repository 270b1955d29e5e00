"""What the commands have in common that look at a model's values before it is exported: ``seen`` and ``ranges``."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..errors import ExportError
from ..extensions import load_extensions
from ..terminal import hush_libraries, say_error


def looking_parser(prog: str, description: str | None) -> argparse.ArgumentParser:
    """With the options that both have."""
    parser = argparse.ArgumentParser(prog=prog, description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, required=True, help="folder of the model, with its weights")
    parser.add_argument("--trust-remote-code", action="store_true", help="run code that comes with the model")
    parser.add_argument("--progress", choices=("text", "json", "off"), default="text")
    parser.add_argument("-o", "--output", type=Path, required=True, help="where the file goes")
    return parser


def look(options: argparse.Namespace, find: Callable[[Callable[[str], None]], dict[str, Any]]) -> int:
    """Writes the document that ``find`` gives, which is handed a function to report with; the exit code."""

    def report(stage: str) -> None:
        if options.progress != "off":
            print(json.dumps({"stage": stage}) if options.progress == "json" else stage, file=sys.stderr, flush=True)

    hush_libraries()
    try:
        load_extensions()
        document = find(report)
    except ExportError as error:
        say_error(error)
        return 1
    write_document(document, options.output)
    return 0


def write_document(document: dict[str, Any], file: Path) -> None:
    file.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
