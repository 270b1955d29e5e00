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
import warnings
from pathlib import Path

# Modules that register ops which models of transformers call.
TRANSFORMERS_MODULES = ("transformers.integrations.moe", "transformers.integrations.msa_attention")


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
    """The schemas of every registered op, as torch prints them, sorted by name."""
    import torch

    schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        # TorchScript's own ops on lists and strings have no place in exported graphs.
        if schema.name.split("::")[0] in ("prim", "onnx", "_test"):
            continue
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        schemas[name] = str(schema)
    return [schemas[name] for name in sorted(schemas)]


def import_ops(modules: list[str]) -> list[str]:
    """Imports what registers ops: parts of transformers, where it is installed, and `modules`. Returns versions."""
    import torch

    versions = [f"torch {torch.__version__}"]
    for name in TRANSFORMERS_MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    if transformers := sys.modules.get("transformers"):
        versions.append(f"transformers {transformers.__version__}")
    for name in modules:
        module = importlib.import_module(name)
        versions.append(f"{name} {getattr(module, '__version__', '')}".strip())
    return versions


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
    parser.add_argument("-o", "--output", default=None, help=f"- is stdout; default: {default_path()}")
    parser.add_argument(
        "--import",
        dest="modules",
        action="append",
        default=[],
        metavar="MODULE",
        help="import this first, because it registers ops; may be given several times",
    )
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    try:
        versions = ", ".join(import_ops(options.modules))
    except ImportError as error:
        print(f"argosy.schemas: {error}; install it into this Python, then run this again", file=sys.stderr)
        return 1
    schemas = collect()
    text = "\n".join([f"# op schemas of {versions}", *schemas]) + "\n"
    if options.output == "-":
        sys.stdout.write(text)
        return 0
    path = Path(options.output) if options.output else default_path()
    write_file(path, text)
    print(f"{len(schemas)} op schemas of {versions}: {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
