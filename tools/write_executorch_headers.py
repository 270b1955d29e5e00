#!/usr/bin/env python3
"""Rewrites src/backends/executorch/generated: readers and writers of ExecuTorch's file formats, from the schemas in the
installed Python package executorch, and the list of the runtime's kernels, from its own registry.

    tools/write_executorch_headers.py             rewrites the files
    tools/write_executorch_headers.py --check     changes nothing; exit code 1 if a file is not what would be written

Needs Debian's flatc: the headers say which version of flatbuffers they are of, and it is that of libflatbuffers-dev.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

FOLDER = Path(__file__).resolve().parents[1] / "src/backends/executorch/generated"
FLATC = "/usr/bin/flatc"  # not the one that the package executorch puts before it
#: Where the package has a schema, and the name that tells here what it is of.
SCHEMAS = {
    "schema/scalar_type.fbs": "scalar_type",
    "schema/program.fbs": "program",
    "backends/xnnpack/serialization/schema.fbs": "xnnpack",
    "extension/flat_tensor/serialize/flat_tensor.fbs": "flat_tensor",
}


def schema_headers() -> dict[str, str]:
    spec = find_spec("executorch")
    folders = [Path(each) for each in (spec and spec.submodule_search_locations) or ()]  # several: it is a namespace
    package = next((each for each in folders if (each / "schema/program.fbs").exists()), None)
    if package is None:
        raise SystemExit("the Python package executorch is not installed; run tools/setup")
    with tempfile.TemporaryDirectory() as folder:
        for schema, name in SCHEMAS.items():
            shutil.copy(package / schema, Path(folder) / f"{name}.fbs")
        for name in SCHEMAS.values():
            subprocess.run([FLATC, "--cpp", "--cpp-std", "c++17", "--scoped-enums", "-o", folder, f"{folder}/{name}.fbs"], check=True)
        return {path.name: path.read_text() for path in Path(folder).glob("*_generated.h")}


def kernel_list() -> str:
    """The names of all kernels, sorted, as the rows of a C++ array."""
    import executorch.kernels.quantized  # noqa: F401  # registers its kernels
    from executorch.extension.pybindings.portable_lib import _get_operator_names

    names = sorted(set(_get_operator_names()))
    if len(names) < 200:
        raise SystemExit(f"only {len(names)} kernels are registered: a library of the package was not loaded")
    return "".join(f'"{name}",\n' for name in names)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="compare only")
    check = parser.parse_args().check
    files = {**schema_headers(), "kernel_list_generated.h": kernel_list()}
    stale = [name for name, text in sorted(files.items())
             if not (FOLDER / name).is_file() or (FOLDER / name).read_text() != text]  # fmt: skip
    if check:
        for name in stale:
            print(f"{name} is not of the installed executorch; run tools/write_executorch_headers.py", file=sys.stderr)
        return 1 if stale else 0
    FOLDER.mkdir(exist_ok=True)
    for name in stale:
        (FOLDER / name).write_text(files[name])
        print(f"{name}: written")
    return 0


if __name__ == "__main__":
    sys.exit(main())
