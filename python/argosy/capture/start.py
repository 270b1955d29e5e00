"""Starting the program that captures: torch and transformers without what they import for uses that a capture has none of.

Only for processes that do nothing else: what is left out here stays left out of the modules that looked for it.
"""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib.metadata
import importlib.util
import os
import sys
from collections.abc import Callable, Iterator
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import Any

#: What transformers looks for to compute losses (scipy) and to load checkpoints of that library (torchao).
_UNUSED = ("scipy", "torchao")


def import_libraries() -> None:
    """torch, transformers and what both have of models. Nothing that is imported is ever freed, so that the collector of
    garbage has not to look at it."""
    gc.disable()
    try:
        import torch  # noqa: F401  # first: what it brings along is missing with it, and not to be named

        with _distributions_looked_up(), _changed("transformers.utils.import_utils", _list_models_faster):
            import transformers  # noqa: F401

        with _hidden(_UNUSED):
            import transformers.modeling_utils  # noqa: F401
        with _without_graphs_for_training():
            import torch.export._trace  # noqa: F401
    finally:
        gc.freeze()
        gc.enable()


@contextlib.contextmanager
def _hidden(names: tuple[str, ...]) -> Iterator[None]:
    """Packages seem not to be installed to transformers, but for those that are imported already."""
    hidden = [name for name in names if name not in sys.modules]
    sys.modules.update(dict.fromkeys(hidden))  # type: ignore[arg-type]  # None: importing it is an ImportError
    found = sys.modules["transformers.utils.import_utils"]
    try:
        _look_again(found)
        for name in hidden:
            if getattr(found, f"is_{name}_available", bool)():  # before transformers 5 it does not look again
                del sys.modules[name]
        yield
    finally:
        for name in hidden:
            if name in sys.modules and sys.modules[name] is None:
                del sys.modules[name]
        _look_again(found)


def _look_again(found: ModuleType) -> None:
    """transformers remembers which packages there are."""
    for name, each in vars(found).items():
        if name.startswith(("is_", "_is_")) and hasattr(each, "cache_clear"):
            each.cache_clear()


class _Distributions(dict):
    """Names of distributions by the packages that they have. To know them all, the lists of files of all are read; most have the
    name of their package, and many packages that are asked for are not there."""

    def __missing__(self, name: str) -> list[str]:
        if importlib.util.find_spec(name) is None:
            raise KeyError(name)
        try:
            self[name] = [importlib.metadata.distribution(name).metadata["Name"]]
        except importlib.metadata.PackageNotFoundError:
            self[name] = _all_distributions().get(name, [])
        return self[name]

    def get(self, name: str, default: Any = None) -> Any:
        try:
            return self[name]
        except KeyError:
            return default


_all_distributions = functools.cache(importlib.metadata.packages_distributions)


@contextlib.contextmanager
def _distributions_looked_up() -> Iterator[None]:
    """Whoever asks for all packages gets ``_Distributions``."""
    original = importlib.metadata.packages_distributions
    importlib.metadata.packages_distributions = _Distributions
    try:
        yield
    finally:
        importlib.metadata.packages_distributions = original


@contextlib.contextmanager
def _changed(name: str, change: Callable[[ModuleType], None]) -> Iterator[None]:
    """``change`` is called with the module of that name as soon as it is imported."""

    class Finder:
        @staticmethod
        def find_spec(wanted: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
            spec = PathFinder.find_spec(wanted, path) if wanted == name else None
            if spec is not None and spec.loader is not None:
                run = spec.loader.exec_module

                def run_and_change(module: ModuleType) -> None:
                    run(module)
                    change(module)

                spec.loader.exec_module = run_and_change  # type: ignore[method-assign]
            return spec

    sys.meta_path.insert(0, Finder)
    try:
        yield
    finally:
        sys.meta_path.remove(Finder)


def _list_models_faster(found: ModuleType) -> None:
    """transformers reads all of its files, twice, for what each exports. Now once, and only the end of each is taken apart."""
    read_exports, read_folder = found.fetch__all__, found.create_import_structure_from_path

    def exports(content: str) -> list[str]:
        return read_exports(content[content.rfind("\n__all__") + 1 :])

    def folder(path: str | os.PathLike) -> Any:
        return read_folder(os.path.dirname(path) if os.path.isfile(path) else os.fspath(path))

    vars(found).update(fetch__all__=exports, create_import_structure_from_path=folder)


@contextlib.contextmanager
def _without_graphs_for_training() -> Iterator[None]:
    """networkx, by which torch decides what a backward pass computes again, is imported with ``torch.export``."""
    if "networkx" in sys.modules:
        yield
        return
    stand_in = ModuleType("networkx")
    stand_in.__getattr__ = lambda name: object  # type: ignore[method-assign]  # its classes are named in signatures
    sys.modules["networkx"] = stand_in
    try:
        yield
    finally:
        del sys.modules["networkx"]
