"""Code of others that exports are made with: packages with entry points of the group ``argosy.extensions``.

``python -m argosy.extensions`` lists those of this Python as JSON: the command asks once, and again when one of the paths that
are named there has changed.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import json
import os
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .errors import ExportError

GROUP = "argosy.extensions"


@dataclass(frozen=True)
class Extension:
    """One entry point: a module that is imported, or a function that is called, before a trace."""

    name: str
    value: str
    """``package.module`` or ``package.module:function``."""
    package: str
    version: str
    entry: importlib.metadata.EntryPoint

    def __str__(self) -> str:
        return f"extension {self.name!r} of {self.package} {self.version}"


_LOCK = threading.RLock()
_loaded: set[Extension] = set()
_is_begun = False


def installed_extensions() -> list[Extension]:
    """Those of the packages that this Python has, by name; nothing of theirs is run."""
    found: dict[str, list[Extension]] = {}
    for package in importlib.metadata.distributions(path=_search_path()):
        name = package.metadata["Name"]
        if name in found:
            continue  # the first on the path is the one that is imported
        entries = package.entry_points.select(group=GROUP)
        found[name] = [Extension(each.name, each.value, name, package.version, each) for each in entries]
    return sorted((each for some in found.values() for each in some), key=lambda each: (each.name, each.package))


def load_extensions() -> None:
    """Imports the modules and calls the functions of all extensions, once in a process. One that fails is an error that names it."""
    global _is_begun
    with _LOCK:
        if _is_begun:
            return  # done, or an extension uses an exporter while it is loaded
        _is_begun = True
        try:
            for extension in installed_extensions():
                if extension not in _loaded:
                    _load(extension)
                    _loaded.add(extension)
        except ExportError:
            _is_begun = False
            raise


def loaded_versions() -> dict[str, str]:
    """The packages whose extensions were loaded."""
    return {each.package: each.version for each in sorted(_loaded, key=lambda each: each.package)}


def package_of(function: Any) -> str:
    """``package version`` of the loaded extension that a function is of; the name of its module, if it is of none."""
    module = str(getattr(function, "__module__", "?"))
    top = module.partition(".")[0]
    found = [f"{each.package} {each.version}" for each in _loaded if _top(each) == top]
    return min(found, default=module)


def _load(extension: Extension) -> None:
    try:
        with contextlib.redirect_stdout(sys.stderr):  # stdout is for results, which other programs may read
            loaded: Any = extension.entry.load()
            if not isinstance(loaded, ModuleType):
                loaded()
    except (Exception, SystemExit) as error:
        message = error.message if isinstance(error, ExportError) else f"{type(error).__name__}: {error}"
        raise ExportError(
            f"{extension} cannot be loaded: {' '.join(message.split())}",
            code="invalid-input",
            hint=f"correct {extension.value}, or uninstall it: pip uninstall {extension.package}",
        ) from error


def _search_path() -> list[str]:
    """Where packages are looked for. Not in the folder that a program is started in: it may be anybody's."""
    return sys.path[1:] if sys.path and sys.path[0] in ("", os.getcwd()) else list(sys.path)


def _top(extension: Extension) -> str:
    """The name that its package is imported by."""
    return extension.value.partition(":")[0].partition(".")[0].strip()


def _sources(extension: Extension) -> list[Path]:
    """The Python files of its package, or that of its module."""
    top = _top(extension)
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        return []
    folders = [Path(each) for each in spec.submodule_search_locations or ()]
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return sorted(files) if folders else [Path(spec.origin)] if spec.origin and Path(spec.origin).is_file() else []


def _hash(files: list[Path]) -> str:
    found = hashlib.sha256()
    for file in files:
        data = file.read_bytes()
        found.update(f"{file.name}\n{len(data)}\n".encode() + data)
    return found.hexdigest()


def _modified(path: Path) -> int:
    """When it was changed last; 0 if it is not there."""
    try:
        return path.stat().st_mtime_ns
    except OSError:
        return 0


def main() -> int:
    watched = {path: _modified(path) for path in map(Path, _search_path())}  # before they are read: they may change meanwhile
    listed = []
    for each in installed_extensions():
        files = _sources(each)
        watched |= {path: _modified(path) for file in files for path in (file.parent, file)}
        listed.append(
            {"name": each.name, "value": each.value, "package": each.package, "version": each.version, "hash": _hash(files)}
        )
    times = [{"path": str(path), "modified": modified} for path, modified in watched.items()]
    print(json.dumps({"version": 1, "extensions": listed, "watched": times}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
