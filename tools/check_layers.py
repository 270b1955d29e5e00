#!/usr/bin/env python3
"""Rejects an #include or import that points upwards or runs in a circle, and third-party headers outside the layer that
they belong to.

    tools/check_layers.py [ROOT]
    tools/check_layers.py --draw     rewrites the picture of the layers in docs/architecture.md
    tools/check_layers.py --drawn    exit code 1 if that picture is not up to date

The tables below are the rule; docs/architecture.md explains it. Prints one line per violation and exits with 1 if any.
"""
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

_BELOW_DRIVER = ["base", "tensor", "io", "ir", "passes", "border", "frontends", "backends/pt2", "backends/onnx", "backends/executorch", "engines"]
# Which layers a layer may include, besides itself.
MAY_INCLUDE = {
    "base": [],
    "tensor": ["base"],
    "io": ["base", "tensor"],
    "ir": ["base", "tensor"],
    "passes": ["base", "tensor", "ir"],
    "border": ["base", "tensor", "ir", "passes"],
    "frontends": ["base", "tensor", "io", "ir"],
    "backends/pt2": ["base", "tensor", "io", "ir", "passes"],
    "backends/onnx": ["base", "tensor", "io", "ir", "passes", "border"],
    "backends/executorch": ["base", "tensor", "io", "ir", "passes", "border"],
    "engines": ["base", "tensor", "io", "ir", "border"],
    "cache": ["base", "tensor", "io", "ir", "frontends"],
    "registry": ["base", "tensor", "io", "cache"],
    "stamp": ["base", "io"],
    "inspect": ["base", "tensor", "io", "ir", "frontends", "backends/executorch"],
    "debug": ["base", "tensor", "io", "ir", "passes", "backends/pt2", "backends/onnx", "backends/executorch"],
    "driver": [*_BELOW_DRIVER, "cache", "debug"],
    "api": [*_BELOW_DRIVER, "cache", "inspect", "driver"],
    "apps": [*_BELOW_DRIVER, "stamp", "cache", "registry", "inspect", "debug", "driver", "api"],
}

# Which parts of the Python package a part may import, besides itself. Functions' imports count too.
_LEAVES = ["errors", "patching", "op_rules", "extensions", "weight_schemes", "structures", "compare", "line_process", "summary", "terminal", "tracebacks"]
MAY_IMPORT = {
    "errors": [],
    "schemas": [],
    "structures": [],
    "compare": [],
    "tracebacks": [],
    "patching": ["errors"],
    "op_rules": ["errors"],
    "extensions": ["errors"],
    "registering": ["errors"],
    "weight_schemes": ["errors", "extensions", "registering"],
    "bundle_engines": ["errors", "extensions", "registering"],
    "extension_process": ["errors"],
    "weight_scheme_process": ["errors", "extension_process", "extensions", "weight_schemes"],
    "bundle_engine_process": ["bundle_engines", "extension_process", "extensions"],
    "line_process": ["errors"],
    "summary": ["errors"],
    "terminal": ["errors"],
    "hub": ["errors"],
    "command": ["errors"],
    "observer": _LEAVES,
    "run": _LEAVES,
    "push": ["errors", "command", "run", "summary", "terminal"],
    "sweep": ["errors", "command", "summary", "terminal"],
    "capture": [*_LEAVES, "observer"],
    "check": [*_LEAVES, "observer", "capture", "run"],
    "exporters": [*_LEAVES, "observer", "capture", "check"],
}

# Where third-party headers may appear: (pattern of the header, path prefixes).
THIRD_PARTY = [
    (r"tl/expected\.hpp", ["src/base/"]),
    (r"fmt/", ["src/base/"]),
    (r"simdjson", ["src/io/json"]),
    (r"zlib\.h", ["src/io/crc32"]),
    (r"sodium\.h", ["src/registry/signing"]),
    (r"protozero/", ["src/io/onnx/", "src/backends/onnx/"]),
    (r"(flatbuffers/|.*_generated\.h)", ["src/backends/executorch/"]),
    (r"CLI/", ["apps/cli/"]),
    (r"nanobind/", ["apps/python/"]),
    (r"g(test|mock)/", ["src/", "apps/", "tests/"]),
]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
PICTURE = ("<!-- not run: drawn by tools/check_layers.py --draw -->\n", "<!-- end of the drawing -->\n")


def layer_of(path: str) -> str | None:
    """The layer a file or an included header belongs to, by its path below src/ (or apps/)."""
    return next((layer for layer in MAY_INCLUDE if path == layer or path.startswith(layer + "/")), None)


def sources(root: Path) -> list[Path]:
    folders = ("src", "apps", "include")
    found = [p for folder in folders for p in sorted((root / folder).rglob("*")) if p.suffix in (".h", ".cpp")]
    return [p for p in found if p.parent.name != "generated"]


def includes(root: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Which files include which, by their paths below the root; and what is wrong with it."""
    graph: dict[str, set[str]] = {}
    found = []
    for path in sources(root):
        name = path.relative_to(root).as_posix()
        layer = "base" if name.startswith("include/") else layer_of(name.removeprefix("src/"))
        if layer is None:
            found.append(f"{name}: belongs to no known layer; add it to tools/check_layers.py")
            continue
        targets = graph.setdefault(name, set())
        for bracket, header in INCLUDE.findall(path.read_text()):
            for pattern, places in THIRD_PARTY:
                if re.match(pattern, header) and not name.startswith(tuple(places)):
                    found.append(f"{name}: includes {header}, which belongs to {', '.join(places)} only")
            if bracket == "<" or header.startswith("argosy/"):
                continue
            target = layer_of(header)
            targets.add(f"src/{header}" if target else (path.parent / header).relative_to(root).as_posix())
            if target is None and not (path.parent / header).exists():
                found.append(f"{name}: includes {header}, which is in no layer")
            elif target is not None and target != layer and target not in MAY_INCLUDE[layer]:
                found.append(f"{name}: layer {layer} may not include {header} (layer {target})")
    return graph, found


def imports(root: Path) -> tuple[dict[str, set[str]], list[str]]:
    """Which modules of the Python package import which; and what is wrong with it."""
    package = root / "python"
    modules = {_module(path.relative_to(package)): path for path in sorted(package.glob("argosy/**/*.py"))}
    graph: dict[str, set[str]] = {}
    found = []
    for module, path in modules.items():
        graph[module] = {each for each in _imported(module, path, set(modules)) if each != module}
        part = _part(module)
        if part and part not in MAY_IMPORT:
            found.append(f"{module}: belongs to no known part of the package; add it to tools/check_layers.py")
        if any(name.partition(".")[0] == "sweeps" for name in _names(module, path)):
            found.append(f"{module}: the package may not import sweeps, which users do not have")
        for target in sorted(graph[module]):
            other = _part(target)
            if part in MAY_IMPORT and other and other != part and other not in MAY_IMPORT[part]:
                found.append(f"{module}: {part} may not import {target}")
    return graph, found


def _module(path: Path) -> str:
    return ".".join(path.with_suffix("").parts).removesuffix(".__init__")


def _part(module: str) -> str:
    """The folder or module below argosy; empty for argosy itself."""
    return module.split(".")[1] if "." in module else ""


def _imported(module: str, path: Path, modules: set[str]) -> Iterator[str]:
    """Those of ``modules`` that a module imports."""
    for name in _names(module, path):
        while name and name not in modules:
            name = name.rpartition(".")[0]
        if name and name != "argosy":
            yield name


def _names(module: str, path: Path) -> Iterator[str]:
    """Full names of all that a module imports."""
    home = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in _nodes(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        else:
            parts = home.split(".")
            base = ".".join([*parts[: len(parts) - node.level + 1], *filter(None, [node.module])]) if node.level else node.module
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _nodes(tree: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """All imports but those for type checkers alone."""
    for child in ast.iter_child_nodes(tree):
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
            continue
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        yield from _nodes(child)


def circle(graph: dict[str, set[str]]) -> list[str]:
    """The files or modules of one circle, in order; empty if there is none."""
    done: set[str] = set()
    for start in sorted(graph):
        way: list[str] = []
        stack = [(start, iter(sorted(graph[start])))]
        while stack:
            name, rest = stack[-1]
            if name not in way:
                way.append(name)
            following = next((each for each in rest if each in graph and each not in done), None)
            if following is None:
                done.add(name)
                way.pop()
                stack.pop()
            elif following in way:
                return [*way[way.index(following) :], following]
            else:
                stack.append((following, iter(sorted(graph[following]))))
    return []


def picture(graph: dict[str, set[str]]) -> str:
    """Layers from the top, each with what it really includes: arrows that another one implies are left out."""
    used = set()
    for name, targets in graph.items():
        here = layer_of(name.removeprefix("src/"))
        for target in targets:
            there = layer_of(target.removeprefix("src/"))
            if here and there and here != there:
                used.add((here, there))
    below = {layer: {there for here, there in used if here == layer} for layer in MAY_INCLUDE}
    lines = ["```mermaid", "flowchart TD"]
    for layer in reversed(MAY_INCLUDE):
        reached = set().union(*(_all_below(below, each) for each in below[layer])) if below[layer] else set()
        lines += [f"  {_id(layer)}[{layer}] --> {_id(each)}[{each}]" for each in sorted(below[layer] - reached)]
    return "\n".join([*lines, "```", ""])


def _all_below(below: dict[str, set[str]], layer: str) -> set[str]:
    return below[layer].union(*(_all_below(below, each) for each in below[layer]))


def _id(layer: str) -> str:
    return layer.replace("/", "_")


def draw(root: Path, graph: dict[str, set[str]], *, writes: bool) -> bool:
    """Whether the picture in the document is that of the code; with ``writes`` it is afterwards."""
    file = root / "docs/architecture.md"
    text = file.read_text(encoding="utf-8")
    before, _, rest = text.partition(PICTURE[0])
    drawn = before + PICTURE[0] + picture(graph) + PICTURE[1] + rest.partition(PICTURE[1])[2]
    if writes:
        file.write_text(drawn, encoding="utf-8")
    return drawn == text


def main(arguments: list[str]) -> int:
    root = Path(__file__).resolve().parent.parent
    roots = [each for each in arguments if not each.startswith("--")]
    if roots:
        root = Path(roots[0])
    graph, found = includes(root)
    modules, wrong = imports(root)
    found += wrong
    for which in (graph, modules):
        if around := circle(which):
            found.append(f"a circle: {' -> '.join(around)}")
    if "--draw" in arguments:
        draw(root, graph, writes=True)
    if "--drawn" in arguments and not draw(root, graph, writes=False):
        found.append("docs/architecture.md: the picture of the layers is not that of the code; run tools/check_layers.py --draw")
    print("\n".join(found) if found else "layers: in order")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
