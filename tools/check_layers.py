#!/usr/bin/env python3
"""Rejects an #include that points upwards, and third-party headers outside the layer they belong to.

    tools/check_layers.py [ROOT]

The tables below are the rule; docs/architecture.md explains it. Prints one line per violation and exits with 1 if any.
"""
import re
import sys
from pathlib import Path

# Which layers a layer may include, besides itself.
MAY_INCLUDE = {
    "base": [],
    "tensor": ["base"],
    "io": ["base", "tensor"],
    "ir": ["base", "tensor"],
    "passes": ["base", "tensor", "ir"],
    "frontends": ["base", "tensor", "io", "ir"],
    "backends/pt2": ["base", "tensor", "io", "ir", "passes"],
    "backends/onnx": ["base", "tensor", "io", "ir", "passes"],
    "backends/executorch": ["base", "tensor", "io", "ir", "passes"],
    "engines": ["base", "tensor", "io", "ir"],
    "driver": ["base", "tensor", "io", "ir", "passes", "frontends", "backends/pt2", "backends/onnx", "backends/executorch", "engines"],
    "apps": ["base", "tensor", "io", "ir", "passes", "frontends", "backends/pt2", "backends/onnx", "backends/executorch", "engines", "driver"],
}

# Where third-party headers may appear: (pattern of the header, path prefixes).
THIRD_PARTY = [
    (r"tl/expected\.hpp", ["src/base/"]),
    (r"fmt/", ["src/base/"]),
    (r"simdjson", ["src/io/json"]),
    (r"zlib\.h", ["src/io/crc32"]),
    (r"protozero/", ["src/io/onnx/", "src/backends/onnx/"]),
    (r"(flatbuffers/|.*_generated\.h)", ["src/backends/executorch/"]),
    (r"CLI/", ["apps/cli/"]),
    (r"nanobind/", ["apps/python/"]),
    (r"g(test|mock)/", ["src/", "apps/", "tests/"]),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)


def layer_of(path: str) -> str | None:
    """The layer a file or an included header belongs to, by its path below src/ (or apps/)."""
    return next((layer for layer in MAY_INCLUDE if path == layer or path.startswith(layer + "/")), None)


def violations(root: Path) -> list[str]:
    found = []
    sources = [p for folder in ("src", "apps", "include") for p in sorted((root / folder).rglob("*")) if p.suffix in (".h", ".cpp")]
    for path in sources:
        name = path.relative_to(root).as_posix()
        layer = "base" if name.startswith("include/") else layer_of(name.removeprefix("src/"))
        if layer is None:
            found.append(f"{name}: belongs to no known layer; add it to tools/check_layers.py")
            continue
        for bracket, header in INCLUDE.findall(path.read_text()):
            for pattern, places in THIRD_PARTY:
                if re.match(pattern, header) and not name.startswith(tuple(places)):
                    found.append(f"{name}: includes {header}, which belongs to {', '.join(places)} only")
            if bracket == "<" or header.startswith("argosy/"):
                continue
            target = layer_of(header)
            if target is None and not (path.parent / header).exists():
                found.append(f"{name}: includes {header}, which is in no layer")
            elif target is not None and target != layer and target not in MAY_INCLUDE[layer]:
                found.append(f"{name}: layer {layer} may not include {header} (layer {target})")
    return found


def main() -> int:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent
    found = violations(root)
    print("\n".join(found) if found else "include layers: in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
