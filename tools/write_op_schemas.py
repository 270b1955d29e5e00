#!/usr/bin/env python3
"""Writes the schemas of all ops of the installed torch, one text a line, for reading plain .pt2 archives.

Archives of torch.export.save name ops and arguments but carry no schemas; Argosy takes them from the file that this
writes. Ops of other packages are included if what registers them is imported: those of transformers, where it is
installed, and what --import names.
"""

import argparse
import importlib
import os
import sys
import warnings


# Modules that register ops which models of transformers call.
TRANSFORMERS_MODULES = ("transformers.integrations.moe", "transformers.integrations.msa_attention")


def collect() -> list[str]:
    import torch

    schemas = {}
    for schema in torch._C._jit_get_all_schemas():
        # TorchScript's own ops on lists and strings have no place in exported graphs.
        if schema.name.split("::")[0] in ("prim", "onnx", "_test"):
            continue
        name = schema.name + ("." + schema.overload_name if schema.overload_name else "")
        schemas[name] = str(schema)
    return [schemas[name] for name in sorted(schemas)]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", required=True, help="file to write, or - for standard output")
    parser.add_argument("--import", dest="imports", action="append", default=[], metavar="MODULE",
                        help="import this first, because it registers ops; repeatable")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    import torch

    versions = [f"torch {torch.__version__}"]
    for name in TRANSFORMERS_MODULES:
        try:
            importlib.import_module(name)
        except ImportError:
            continue
    if "transformers" in sys.modules:
        versions.append(f"transformers {sys.modules['transformers'].__version__}")
    for name in arguments.imports:
        module = importlib.import_module(name)
        versions.append(f"{name} {getattr(module, '__version__', '')}".strip())
    lines = [f"# op schemas of {', '.join(versions)}"] + collect()
    text = "\n".join(lines) + "\n"
    if arguments.output == "-":
        sys.stdout.write(text)
        return 0
    temporary = f"{arguments.output}.{os.getpid()}.tmp"
    with open(temporary, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(temporary, arguments.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
