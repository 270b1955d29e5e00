"""``python -m argosy.capture.twin CONFIGURATION -o FOLDER``: a small model with random weights, as a folder of the Hub has it."""

from __future__ import annotations

import argparse
import os
import sys
import warnings
from pathlib import Path
from typing import Any

from ...errors import ExportError
from ...terminal import say_error


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.capture.twin", description=__doc__)
    parser.add_argument("configuration", help="a folder with config.json, or a model type such as bert")
    parser.add_argument("--task", help="such as text-generation; by default what the configuration's class is for")
    parser.add_argument("-o", "--output", type=Path, required=True, help="the folder to write")
    options = parser.parse_args(arguments)
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    warnings.filterwarnings("ignore")
    try:
        from . import build, save

        save(build(_configuration(options.configuration), task=options.task), options.output)
    except ExportError as error:
        say_error(error)
        return 1
    return 0


def _configuration(named: str) -> Any:
    from transformers import CONFIG_MAPPING

    from ..configuration import load_config

    if Path(named).is_dir():
        return load_config(Path(named))
    try:
        return CONFIG_MAPPING[named]()
    except KeyError as error:
        raise ExportError(f"transformers has no model type {named!r}, and there is no such folder", code="not-found",
                          hint="give a folder with config.json, or a type such as bert") from error  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
