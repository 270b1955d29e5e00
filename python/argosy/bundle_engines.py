"""Registry of engines of users' own: what a bundle has for them besides graphs and weights.

Importing this module imports nothing else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

from .errors import ExportError
from .registering import register_once

#: Engines of our own; a registered one's bundles are based on those of one for ONNX.
_OURS = ("genai", "transformersjs", "optimum", "executorch", "plain")
_BASES = ("plain", "optimum", "transformersjs", "genai")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}")
_GRAPH_FILE = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9_.-]*\.onnx")


@dataclass(frozen=True)
class EngineBundle:
    """A bundle, as an engine's function gets it: complete but for what that adds, and not in its place yet."""

    folder: Path
    manifest: Mapping[str, Any]
    """bundle.json: components with their inputs and outputs, graphs, wiring, files."""
    config: Mapping[str, Any]
    """config.json of the model; empty if the bundle has none."""


@dataclass(frozen=True)
class BundleFinding:
    """What an engine would fail on, or a warning."""

    what: str
    file: str = ""
    hint: str = ""
    is_warning: bool = False


#: Files that a bundle gets, by their names.
Complete = Callable[[EngineBundle], Mapping[str, str | bytes]]
Lint = Callable[[EngineBundle], Iterable[BundleFinding]]
F = TypeVar("F", bound=Complete)


@dataclass(frozen=True)
class RegisteredEngine:
    name: str
    function: Complete
    title: str
    base: str
    graphs: Mapping[str, str] = field(default_factory=dict)
    lint: Lint | None = None


_ENGINES: dict[str, RegisteredEngine] = {}


def register_engine(
    name: str, *, title: str = "", base: str = "plain", graphs: Mapping[str, str] | None = None, lint: Lint | None = None
) -> Callable[[F], F]:
    """Registers the decorated function as the engine that ``argosy export onnx --for NAME`` writes bundles for.

    The bundle is that of ``base``, one of our engines, with the files that the function returns: texts or bytes by their names in
    the bundle. It is called when all else is written, and before the bundle appears in its place; an error leaves nothing behind.
    ``graphs`` are names of files by components, such as ``{"decode": "network.onnx"}``, of a plain bundle. ``lint`` tells what the
    engine would fail on; ``argosy lint`` calls it as well.
    """
    if not _NAME.fullmatch(name) or name in _OURS:
        raise ExportError(f"{name!r} cannot be the name of an engine", code="invalid-input",
                          hint="use small letters, digits and _, and no name that --for has already")  # fmt: skip
    if base not in _BASES:
        raise ExportError(f"the engine {name!r} is based on {base!r}", code="invalid-input", hint=f"use one of {', '.join(_BASES)}")
    files = dict(graphs or {})
    if files and base != "plain":
        raise ExportError(f"the engine {name!r} names graphs of {base}, whose other files name them as well", code="invalid-input",
                          hint="leave out graphs, or use the base plain")  # fmt: skip
    if not all(_GRAPH_FILE.fullmatch(file) for file in files.values()) or len(set(files.values())) < len(files):
        raise ExportError(f"the engine {name!r} names graphs {', '.join(map(repr, files.values()))}", code="invalid-input",
                          hint="use a name for each that ends in .onnx, without folders")  # fmt: skip

    def decorate(function: F) -> F:
        register_once(_ENGINES, name, RegisteredEngine(name, function, title or name, base, files, lint), "engine")
        return function

    return decorate


def registered_engines() -> dict[str, RegisteredEngine]:
    """By name; extensions are loaded first."""
    from .extensions import load_extensions

    load_extensions()
    return dict(_ENGINES)


def read_bundle(folder: Path) -> EngineBundle:
    def read(name: str) -> dict[str, Any]:
        file = folder / name
        return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}

    return EngineBundle(folder, read("bundle.json"), read("config.json"))


def complete_bundle(engine: RegisteredEngine, folder: Path) -> list[str]:
    """Writes the engine's files. Their names are inside the folder, and none that is there."""
    files = engine.function(read_bundle(folder))
    if not isinstance(files, Mapping):
        raise _wrong(engine, f"returns {type(files).__name__}, not files by their names")
    for name, content in files.items():
        path = PurePosixPath(name) if isinstance(name, str) else PurePosixPath()
        if not path.parts or path.is_absolute() or ".." in path.parts or str(path) != name or "\\" in name:
            raise _wrong(engine, f"returns a file {name!r}, which is no name inside the bundle")
        if (folder / path).exists():
            raise _wrong(engine, f"returns the file {name!r}, which the bundle has already")
        if not isinstance(content, str | bytes):
            raise _wrong(engine, f"returns {type(content).__name__} for the file {name!r}, not text or bytes")
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        with (folder / path).open("xb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
    return list(files)


def lint_bundle(engine: RegisteredEngine, folder: Path) -> list[BundleFinding]:
    findings = list(engine.lint(read_bundle(folder))) if engine.lint else []
    if not all(isinstance(each, BundleFinding) for each in findings):
        raise _wrong(engine, "finds something that is no BundleFinding")
    return findings


def _wrong(engine: RegisteredEngine, what: str) -> ExportError:
    return ExportError(f"the engine {engine.name!r} {what}", code="invalid-input", hint=f"correct {engine.function.__module__}")
