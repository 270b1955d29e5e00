"""Registries of patches and fixes: what is changed, for how long, and why.

A *patch* replaces an attribute (a method of a model class, an op of torch) while a model is traced, and is undone after; a
*model patch* changes what one model has of its own, found by what its modules are like. A *fix* changes a traced graph in
place. All are kept by backend. Importing this module imports nothing else.
"""

from __future__ import annotations

import contextlib
import fnmatch
import importlib
import importlib.metadata
import inspect
import logging
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from .errors import ExportError

logger = logging.getLogger(__name__)

Factory = Callable[[Any], Any]
"""Takes the original, returns the replacement."""


@dataclass(frozen=True)
class Patch:
    """One attribute and what replaces it."""

    backend: str
    path: str
    """``package.module.Class.attribute`` or ``package.module.attribute``."""
    factory: Factory
    reason: str = ""
    versions: str = ""
    """For which versions it is meant: ``"transformers>=5.13,<5.30; torch>=2.12"``. Empty: for all."""


ModelChange = Callable[[Any], contextlib.AbstractContextManager[None]]
"""Takes the model, gives a with block within which it is changed."""


@dataclass(frozen=True)
class ModelPatch:
    """A change to one model's modules."""

    backend: str
    change: ModelChange
    reason: str


_PATCHES: dict[str, list[Patch]] = {}
_MODEL_PATCHES: dict[str, list[ModelPatch]] = {}
_FX_NODE_FIXES: dict[str, list[Callable[[Any, Any], bool]]] = {}
_FX_PROGRAM_FIXES: dict[str, list[Callable[[Any], None]]] = {}
_LOCK = threading.RLock()


# ---- patches ----


def register_patch(
    backend: str, *dotted_paths: str, reason: str = "", versions: str = ""
) -> Callable[[Factory], Factory]:
    """Registers the decorated ``factory(original) -> replacement`` for each path, to be installed by `apply_patches`.

    The last part of a path is the attribute, the rest the module or class that has it. Paths are looked up when patches
    are applied: one whose module does not exist in the installed version is skipped. A module may be named by a pattern
    (``*.modeling_*.apply_mask``): then every loaded module of such a name that has the attribute (or the class that has it) is meant, and none is
    imported.
    """
    if not dotted_paths or any("." not in path for path in dotted_paths):
        raise ExportError(
            f"a patch for {backend!r} has no dotted path: {dotted_paths}",
            code="invalid-input",
            hint='name what to replace: @register_patch("dynamo", "package.module.Class.method")',
        )

    def decorate(factory: Factory) -> Factory:
        for path in dotted_paths:
            _PATCHES.setdefault(backend, []).append(Patch(backend, path, factory, reason, versions))
        return factory

    return decorate


def register_model_patch(*backends: str, reason: str) -> Callable[[ModelChange], ModelChange]:
    """Registers the decorated ``change(model)``, a with block, to be entered by `apply_patches` for that model.

    For what has no path: classes that many models have under names of their own, and modules that are changed by what they hold.
    """

    def decorate(change: ModelChange) -> ModelChange:
        for backend in backends:
            _MODEL_PATCHES.setdefault(backend, []).append(ModelPatch(backend, change, reason))
        return change

    return decorate


def registered_patches(backend: str) -> tuple[Patch, ...]:
    """The patches of a backend in the order in which they are applied."""
    return tuple(_PATCHES.get(backend, ()))


def registered_model_patches(backend: str) -> tuple[ModelPatch, ...]:
    """The model patches of a backend; they are applied in this order, after the other patches."""
    return tuple(_MODEL_PATCHES.get(backend, ()))


@contextlib.contextmanager
def apply_patches(backend: str, model: Any = None) -> Iterator[tuple[Patch, ...]]:
    """Installs the patches of `backend` for a with block, those of models on `model`, and gives the ones that apply here.

    Originals are put back when the block is left, also by an exception, in reverse order. What is replaced is everybody's, so that
    another thread waits until the block is left.
    """
    with _LOCK, contextlib.ExitStack() as stack:
        applied = []
        for patch in registered_patches(backend):
            if not versions_match(patch.versions):
                logger.debug("patch of %s skipped: it is for %s", patch.path, patch.versions)
                continue
            owners = _find_loaded(patch) if "*" in patch.path else _find_owner(patch)
            for owner in owners:
                stack.enter_context(patched(owner, patch.path.rpartition(".")[2], patch.factory))
            if owners:
                applied.append(patch)
        if model is not None:
            for each in registered_model_patches(backend):
                stack.enter_context(each.change(model))
        yield tuple(applied)


@contextlib.contextmanager
def patched(owner: Any, attribute: str, factory: Factory) -> Iterator[None]:
    """``owner.attribute`` replaced by ``factory(original)`` for a with block. Static and class methods stay such."""
    own = vars(owner) if hasattr(owner, "__dict__") else {}
    had = attribute in own
    raw = own[attribute] if had else inspect.getattr_static(owner, attribute)
    if isinstance(raw, property) and not isinstance(owner, type):
        had, raw = True, getattr(owner, attribute)  # it is set by its setter, and cannot be deleted
    if isinstance(owner, type) and isinstance(raw, (staticmethod, classmethod)):
        replacement = type(raw)(factory(raw.__func__))
    else:
        replacement = factory(raw if isinstance(raw, property) else getattr(owner, attribute))
    setattr(owner, attribute, replacement)
    try:
        yield
    finally:
        if had:
            setattr(owner, attribute, raw)
        else:
            delattr(owner, attribute)


#: The same under the name that users of transformers know.
patch_attribute = patched


@contextlib.contextmanager
def patch_attributes(patches: Iterable[tuple[Any, str, Factory]]) -> Iterator[None]:
    """Several attributes replaced for a with block, each an ``(owner, attribute, factory)``."""
    with contextlib.ExitStack() as stack:
        for owner, attribute, factory in patches:
            stack.enter_context(patched(owner, attribute, factory))
        yield


def versions_match(versions: str) -> bool:
    """Whether the installed packages are among `versions`; a package that is not installed is not."""
    from packaging.requirements import Requirement

    for text in filter(None, (part.strip() for part in versions.split(";"))):
        requirement = Requirement(text)
        try:
            installed = importlib.metadata.version(requirement.name)
        except importlib.metadata.PackageNotFoundError:
            return False
        if not requirement.specifier.contains(installed, prereleases=True):
            return False
    return True


def _find_loaded(patch: Patch) -> list[Any]:
    """The loaded modules, or classes of such, that the pattern of a patch names and that have its attribute."""
    *rest, owner, attribute = patch.path.split(".")
    named = [sys.modules[name] for name in fnmatch.filter(list(sys.modules), ".".join([*rest, owner]))]
    modules = [sys.modules[name] for name in fnmatch.filter(list(sys.modules), ".".join(rest))]
    named += [vars(module)[owner] for module in modules if isinstance(vars(module).get(owner), type)]
    return [each for each in named if attribute in vars(each)]


def _find_owner(patch: Patch) -> list[Any]:
    """The module or class that has the attribute. Empty, with a line in the debug log, where this version has none."""
    parts = patch.path.split(".")
    owner, rest = None, parts[:-1]
    for count in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:count])
        try:
            owner = importlib.import_module(name)
        except ModuleNotFoundError as error:
            # A module that is there but lacks a package of its own is as good as absent, too.
            logger.debug("patch of %s: %s", patch.path, error)
            continue
        rest = parts[count:-1]
        break
    if owner is None:
        logger.debug("patch of %s skipped: its module is not installed", patch.path)
        return []
    for part in (*rest, parts[-1]):
        if not hasattr(owner, part):
            text = f"{patch.path}: {getattr(owner, '__name__', owner)} has no {part!r}"
            if patch.versions:
                raise ExportError(
                    f"patch of {text}, though the installed versions are among {patch.versions}",
                    code="invalid-input",
                    hint="correct the path or narrow versions= of the patch",
                )
            logger.debug("patch of %s skipped", text)
            return []
        if part is not parts[-1]:
            owner = getattr(owner, part)
    return [owner]


# ---- fixes ----


def register_fx_node_fix(backend: str) -> Callable[[Callable], Callable]:
    """Registers the decorated ``fix(graph_module, node) -> bool``; True says that it took care of the node."""

    def decorate(fix: Callable[[Any, Any], bool]) -> Callable[[Any, Any], bool]:
        _FX_NODE_FIXES.setdefault(backend, []).append(fix)
        return fix

    return decorate


def register_fx_program_fix(backend: str) -> Callable[[Callable], Callable]:
    """Registers the decorated ``fix(exported_program) -> None``, for what one node does not tell."""

    def decorate(fix: Callable[[Any], None]) -> Callable[[Any], None]:
        _FX_PROGRAM_FIXES.setdefault(backend, []).append(fix)
        return fix

    return decorate


def apply_fx_node_fixes(backend: str, graph_module: Any) -> None:
    """Offers every call node of the graph and its sub-graphs to the fixes of `backend`, in order, until one takes it.

    Then removes nodes that nothing uses any more and recompiles.
    """
    from torch.fx import GraphModule

    fixes = _FX_NODE_FIXES.get(backend)
    if not fixes:
        return
    for module in list(graph_module.modules()):
        if not isinstance(module, GraphModule):
            continue
        for node in list(module.graph.nodes):
            # A fix may have removed nodes after its own.
            if node.op == "call_function" and not getattr(node, "_erased", False):
                any(fix(module, node) for fix in fixes)
        module.graph.eliminate_dead_code()
        module.recompile()


def apply_fx_program_fixes(backend: str, exported_program: Any) -> None:
    """Applies the program fixes of `backend`, in order and in place."""
    for fix in _FX_PROGRAM_FIXES.get(backend, []):
        fix(exported_program)
