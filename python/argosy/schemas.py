"""Writes the schemas of all ops that the installed torch knows, one text a line.

A ``.pt2`` archive names its ops but leaves out arguments that have their default, so that reading one needs these
schemas. ``python -m argosy.schemas`` puts them where the ``argosy`` command looks. Uses nothing of this package, so that
the file also runs by its path.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import tempfile
from pathlib import Path


def default_path() -> Path:
    """Where the command looks: ``$ARGOSY_SCHEMAS``, else ``op_schemas.txt`` in the cache folder."""
    if path := os.environ.get("ARGOSY_SCHEMAS"):
        return Path(path)
    if cache := os.environ.get("ARGOSY_CACHE"):
        return Path(cache) / "op_schemas.txt"
    base = Path(os.environ.get("XDG_CACHE_HOME") or "")
    if not base.is_absolute():
        base = Path.home() / ".cache"
    return base / "argosy" / "op_schemas.txt"


def collect() -> list[str]:
    """The schemas of every registered op, as torch prints them, sorted."""
    import torch

    return sorted({str(schema) for schema in torch._C._jit_get_all_schemas()})


def text_of(schemas: list[str], made_from: str) -> str:
    return f"# Op schemas of {made_from}, one a line.\n" + "".join(f"{schema}\n" for schema in schemas)


def write_file(path: Path, text: str) -> None:
    """Writes by rename: whoever reads the file at the same time sees the old one or the new one, whole."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=path.name + ".", suffix=".tmp")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except BaseException:
        os.unlink(temporary)
        raise


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m argosy.schemas", description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=None, help=f"default: {default_path()}")
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this first, so that the ops that it registers are there; may be given several times",
    )
    options = parser.parse_args(arguments)
    try:
        import torch
    except ImportError:
        print("argosy.schemas: torch is not installed in this Python; install it, then run this again", file=sys.stderr)
        return 1
    for module in options.modules:
        importlib.import_module(module)
    made_from = ", ".join([f"torch {torch.__version__}", *options.modules])
    schemas = collect()
    path = options.output or default_path()
    write_file(path, text_of(schemas, made_from))
    print(f"{len(schemas)} schemas of {made_from} -> {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
