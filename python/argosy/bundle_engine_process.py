"""``python -m argosy.bundle_engine_process NAME``: carries out what a registered engine does with bundles.

First it writes a line of JSON: what the engine is, or an ``error`` and a ``hint``. Then each line of stdin is a request with a
``folder``: ``complete`` adds the engine's files to it, ``lint`` looks for what the engine would fail on. Answers are lines, too.
"""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from .bundle_engines import RegisteredEngine, complete_bundle, lint_bundle, registered_engines
from .extension_process import answers, error_of, find, send
from .extensions import package_of


def main(name: str) -> int:
    with answers() as stream:
        engine = find("engines", name, registered_engines, _about, stream)
        if engine is None:
            return 1
        for line in sys.stdin:
            send(stream, _answer(engine, json.loads(line)))
    return 0


def _about(engine: RegisteredEngine) -> dict[str, Any]:
    about = {"title": engine.title, "base": engine.base, "graphs": dict(engine.graphs)}
    return {**about, **package_of(engine.function)}


def _answer(engine: RegisteredEngine, request: dict[str, str]) -> dict[str, Any]:
    folder = Path(request["folder"])
    try:
        if request["do"] == "lint":
            return {"findings": [asdict(each) for each in lint_bundle(engine, folder)]}
        return {"files": complete_bundle(engine, folder)}
    except Exception as error:
        return error_of(error, f"engine {engine.name!r}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
