"""The page of all public names of the Python package, from its sources: nothing of it is imported but its lists of names."""

from __future__ import annotations

import ast
import inspect
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from links import REPOSITORY
from reference_commands import find_program

PACKAGE = REPOSITORY / "python/argosy"
_WIDTH = 100


@dataclass
class Definition:
    """A public name, or a member of a class that is one."""

    name: str
    #: as code, without a body
    code: str
    doc: str
    members: list[Definition]


def public_names() -> dict[str, str]:
    """Each public name and the module that has it."""
    sys.path.insert(0, str(PACKAGE.parent))
    import argosy

    names = {name: f"argosy{argosy._MODULES.get(name, '.errors')}" for name in argosy.__all__}
    names["__version__"] = "argosy"  # its type; the extension has the value
    return names | {name: f"argosy.exporters{argosy.exporters._MODULES[name]}" for name in argosy.exporters.__all__}


def definitions() -> list[Definition]:
    """All public names, as their modules define them. One that is not found is a LookupError."""
    return [find(name, module) for name, module in sorted(public_names().items(), key=lambda each: each[0].lower())]


def page() -> str:
    """Generated from the docstrings and signatures."""
    found = definitions()
    exporters = {name for name, module in public_names().items() if module.startswith("argosy.exporters.")}
    names = {each.name for each in found}
    text = (
        "# All names of the Python package\n\nFrom its docstrings; [the guide](../python.md) shows how they are used. "
        "All can be imported from `argosy`, and those of `argosy.exporters` from there, too.\n"
    )
    for each in found:
        place = "argosy.exporters" if each.name in exporters else "argosy"
        text += f"\n## `{each.name}`\n\n~~~~~~python\nfrom {place} import {each.name}\n~~~~~~\n"
        text += _entry(each, names - {member.name for member in each.members})
        for member in each.members:
            text += f"\n### `{each.name}.{member.name}`\n{_entry(member, names - {each.name})}"
    return text


def _entry(each: Definition, names: set[str]) -> str:
    code = f"\n~~~~~~python\n{each.code}\n~~~~~~\n" if each.code else ""
    # Names of other entries become links.
    doc = re.sub(r"``(.+?)``", r"`\1`", each.doc.replace("\n::\n", ""))
    doc = re.sub(r"(?<!`)`(?:argosy\.)?(\w+)((?:\.\w+)?)`(?!`)", lambda at: _link(at, names - {each.name}), doc)
    return f"{code}\n{doc}\n" if doc else code


def _link(at: re.Match[str], names: set[str]) -> str:
    return f"[{at[0]}](#{at[1].lower()})" if at[1] in names else at[0]


def find(name: str, module: str) -> Definition:
    file = file_of(module)
    tree = _parsed(file)
    for node in _statements(tree.body):
        if isinstance(node, ast.ClassDef) and node.name == name:
            return _class(node)
        if isinstance(node, ast.FunctionDef) and node.name == name:
            return _function(node)
        if isinstance(node, (ast.Assign, ast.AnnAssign)) and _target(node) == name:
            return _constant(name, node, file)
    # Also those within functions, which import what is used late.
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any((each.asname or each.name) == name for each in node.names):
            original = next(each.name for each in node.names if (each.asname or each.name) == name)
            return find(original, _module_of(node, module))
    raise LookupError(f"{file} does not define {name}")


def file_of(module: str) -> Path:
    """The source of a module; the extension has a stub, which its build makes."""
    if module == "argosy._core":
        program = find_program().resolve()
        places = [program.parents[1] / "python", *program.parents[1].glob("lib/python*/site-packages/argosy")]
        stub = next((place / "_core.pyi" for place in places if (place / "_core.pyi").is_file()), None)
        if stub is None:
            raise FileNotFoundError(f"there is no _core.pyi beside {program}: build the target argosy_stub")
        return stub
    path = PACKAGE.joinpath(*module.split(".")[1:])
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"


@cache
def _parsed(file: Path) -> ast.Module:
    return ast.parse(file.read_text())


def _module_of(node: ast.ImportFrom, module: str) -> str:
    is_package = file_of(module).name == "__init__.py"
    parts = module.split(".")
    start = parts[: len(parts) - node.level + is_package] if node.level else []
    return ".".join([*start, *filter(None, [node.module])])


def _statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Also those within `if TYPE_CHECKING`."""
    for node in body:
        yield node
        if isinstance(node, ast.If):
            yield from node.body


def _target(node: ast.Assign | ast.AnnAssign) -> str | None:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target
    return target.id if isinstance(target, ast.Name) else None


def _constant(name: str, node: ast.Assign | ast.AnnAssign, file: Path) -> Definition:
    """Of a constant the type and the comment above it; of another name for a function that function."""
    if isinstance(node, ast.Assign) and isinstance(node.value, ast.Name):
        for other in _parsed(file).body:
            if isinstance(other, ast.FunctionDef) and other.name == node.value.id:
                found = _function(other)
                return Definition(name, found.code.replace(f"def {other.name}(", f"def {name}("), found.doc, [])
    lines = file.read_text().splitlines()
    doc: list[str] = []
    for line in reversed(lines[: node.lineno - 1]):
        if not line.strip().startswith("#:"):
            break
        doc.insert(0, line.strip()[2:].strip())
    code = f"{name}: {ast.unparse(node.annotation)}" if isinstance(node, ast.AnnAssign) else ""
    return Definition(name, code, "\n".join(doc), [])


def _class(node: ast.ClassDef) -> Definition:
    bases = ", ".join(ast.unparse(base) for base in node.bases)
    members = []
    for before, each in zip([None, *node.body], node.body, strict=False):
        if isinstance(each, ast.FunctionDef) and (not each.name.startswith("_") or each.name == "__call__"):
            if not any(ast.unparse(decorator).endswith(".setter") for decorator in each.decorator_list):
                members.append(_function(each, of_class=True))
        elif isinstance(each, ast.Expr) and isinstance(before, ast.AnnAssign) and members and not members[-1].doc:
            members[-1].doc = _text(each)
        elif isinstance(each, (ast.Assign, ast.AnnAssign)) and (target := _target(each)) and not target.startswith("_"):
            members.append(Definition(target, ast.unparse(each), "", []))
    code = f"class {node.name}({bases})" if bases else f"class {node.name}"
    made = next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)
    if made is not None:
        code += f"\n\n{_signature(node.name, made, of_class=True).removesuffix(' -> None').removeprefix('def ')}"
    return Definition(node.name, code, _doc(node), members)


def _function(node: ast.FunctionDef, of_class: bool = False) -> Definition:
    kept = ("classmethod", "staticmethod", "property", "contextlib.contextmanager")
    decorators = [text for text in map(ast.unparse, node.decorator_list) if text in kept]
    code = "\n".join([*(f"@{text}" for text in decorators), _signature(node.name, node, of_class)])
    return Definition(node.name, code, _doc(node), [])


def _signature(name: str, node: ast.FunctionDef, of_class: bool = False) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    arguments = list(_arguments(node.args))
    if of_class and arguments and arguments[0].partition(":")[0] in ("self", "cls"):
        arguments = arguments[1:]
    if arguments[:1] == ["/"]:
        arguments = arguments[1:]
    line = f"def {name}({', '.join(arguments)}){returns}"
    if len(line) <= _WIDTH:
        return line
    return f"def {name}(\n" + "".join(f"    {each},\n" for each in arguments) + f"){returns}"


def _arguments(all_of_them: ast.arguments) -> Iterator[str]:
    by_place = [*all_of_them.posonlyargs, *all_of_them.args]
    defaults = [*[None] * (len(by_place) - len(all_of_them.defaults)), *all_of_them.defaults]
    for i, (each, default) in enumerate(zip(by_place, defaults, strict=True), 1):
        yield _argument(each, default)
        if i == len(all_of_them.posonlyargs):
            yield "/"
    if all_of_them.vararg:
        yield f"*{ast.unparse(all_of_them.vararg)}"
    elif all_of_them.kwonlyargs:
        yield "*"
    for each, default in zip(all_of_them.kwonlyargs, all_of_them.kw_defaults, strict=True):
        yield _argument(each, default)
    if all_of_them.kwarg:
        yield f"**{ast.unparse(all_of_them.kwarg)}"


def _argument(each: ast.arg, default: ast.expr | None) -> str:
    if default is None:
        return ast.unparse(each)
    return f"{ast.unparse(each)}{' = ' if each.annotation else '='}{ast.unparse(default)}"


def _doc(node: ast.ClassDef | ast.FunctionDef) -> str:
    return ast.get_docstring(node) or ""


def _text(node: ast.Expr) -> str:
    value = node.value
    return inspect.cleandoc(value.value) if isinstance(value, ast.Constant) and isinstance(value.value, str) else ""
