"""What every layer of a model calls in a run on the meta device, in words by which layers of models of any depth can be compared.

A call is an op, the layouts and numbers that it is given, and where each tensor comes from: seen from the layer, so that "of the
layer before" is the same for all. What runs between two layers of a list belongs to the one that follows. What runs outside of
layers is written down in the same way.
"""

from __future__ import annotations

import contextlib
import hashlib
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, NamedTuple

import torch

from ..structures import flatten, leaf_name
from .remembered_shapes import RememberedShapes, call_key
from .shapes_only import Run

#: A list of layers, by its path, and the place in it.
Layer = tuple[str, int]
_DIGITS = re.compile(r"\d+")


@dataclass(eq=False)
class _Home:
    """A layer, or all that is outside of layers."""

    layer: Layer | None
    parts: list[_Part] = field(default_factory=list)
    #: where each result of the run comes from that it makes
    outputs: dict[str, Any] = field(default_factory=dict)

    def add(self, part: _Part) -> None:
        part.home, part.number = self, len(self.parts)
        self.parts.append(part)


@dataclass(eq=False)
class _Part:
    """Ops that run one after the other."""

    home: _Home | None = None
    number: int = 0
    #: op and arguments, and where its tensors come from
    ops: list[tuple[Any, list[Any]]] = field(default_factory=list)
    made: int = 0


class _Calls:
    """Writes down what is called: how ``ShapesOnly`` calls ops in the run."""

    def __init__(self, shapes: RememberedShapes, names: list[tuple[str, torch.Tensor]]) -> None:
        self.shapes = shapes
        self.outside = _Home(None)
        self.homes: dict[Layer, _Home] = {}
        self.running: list[Layer] = []
        self.last: Layer | None = None
        self.part = _Part()
        #: where each tensor was made: part and number, or name
        self.origins: dict[int, Any] = {}
        self.kept = [tensor for _, tensor in names]  # so that ids stay unique
        for name, tensor in names:
            self.origins.setdefault(id(tensor), name)

    def begin(self, layer: Layer) -> None:
        if not self.running:
            home = self.homes.setdefault(layer, _Home(layer))
            between = self.last is not None and self.last[0] == layer[0]
            if self.part.ops:
                (home if between else self.outside).add(self.part)
            self.part = _Part()
            home.add(self.part)
        self.running.append(layer)

    def end(self) -> None:
        self.last = self.running.pop()
        if not self.running:
            self.part = _Part()

    def finish(self, results: list[tuple[str, torch.Tensor]]) -> None:
        if self.part.home is None:
            self.outside.add(self.part)
        for name, tensor in results:
            origin = self.origins.get(id(tensor), "")
            if isinstance(origin, str) and _DIGITS.findall(name) == _DIGITS.findall(origin):  # a state that nobody changes
                name, origin = _DIGITS.sub("#", name), _DIGITS.sub("#", origin)
            home = origin[0].home if isinstance(origin, tuple) else self.outside
            home.outputs[name] = origin

    def __call__(self, function: Any, args: tuple, kwargs: dict) -> Any:
        tensors: list[torch.Tensor] = []
        key = call_key(function, args, kwargs, tensors)
        result = self.shapes.call(function, args, kwargs, key, tensors)
        if key is None:
            key = (function, repr((args, kwargs)))
        if function is torch.ops.aten.lift_fresh.default and not args[0].is_meta:
            key = (key, str(args[0].tolist()))  # numbers in the code become tensors by this op
        self.part.ops.append((key, [self.origins.get(id(each), "") for each in tensors]))
        for each in result if isinstance(result, (list, tuple)) else (result,):
            if isinstance(each, torch.Tensor) and id(each) not in self.origins:
                self.origins[id(each)] = (self.part, self.part.made)
                self.part.made += 1
                self.kept.append(each)
        return result


class _Near(NamedTuple):
    """What is read of the first layer, counted from its start, or of the layer before, from its end. To the second layer they
    are the same, so that it has both."""

    first: tuple | None
    before: tuple | None

    def can_be(self, other: _Near) -> bool:
        return self.first == other.first if other.before is None else self.before == other.before


class _Words:
    """Says where tensors come from as seen from one home."""

    def __init__(self, home: _Home, depths: Mapping[str, int]) -> None:
        self.home, self.depths = home, depths
        #: of what comes from the first layer or from the one before: which of both
        self.near: list[_Near] = []

    def origin(self, origin: Any) -> Any:
        if isinstance(origin, str):
            return self._name(origin)
        part, number = origin
        home, front = part.home, (part.number, number)
        if home is self.home or home.layer is None:
            return ("own" if home is self.home else "outside", *front)
        # Layers may begin with what only they do; what a later one reads is counted from the end.
        back = (len(home.parts) - part.number, part.made - number)
        path, place = home.layer
        if self.home.layer is not None and self.home.layer[0] == path:
            return self._distance(self.home.layer[1], place, front, back)
        return (path, "first", front) if place == 0 else (path, self.depths[path] - place, back)

    def _name(self, name: str) -> str:
        """The name of a weight or an input. Numbers of layers count from the layer."""
        if self.home.layer is None:
            return name
        path, place = self.home.layer
        if name.startswith(f"{path}.{place}."):
            return f"own {name[len(path) + len(str(place)) + 2 :]}"
        return ".".join(str(self._distance(place, int(part))) if part.isdigit() else part for part in name.split("."))

    def _distance(self, here: int, place: int, front: Any = (), back: Any = ()) -> Any:
        if here == place:
            return "own"
        if place in (0, here - 1):
            self.near.append(_Near(front if place == 0 else None, back if place == here - 1 else None))
            return "near"
        return (here - place, back)

    def hash(self, numbers: dict[Any, int]) -> str:
        found = hashlib.sha256()
        for part in self.home.parts:
            for key, origins in part.ops:
                line = (numbers.setdefault(key, len(numbers)), [self.origin(each) for each in origins])
                found.update(repr(line).encode())
            found.update(b"|")
        for name, origin in sorted(self.home.outputs.items(), key=lambda each: each[0]):
            found.update(repr((self._name(name), self.origin(origin))).encode())
        return found.hexdigest()


class CallsOfLayers:
    """Runs models and describes what their layers call. Descriptions of one object can be compared."""

    def __init__(self) -> None:
        self.shapes = RememberedShapes()
        self._numbers: dict[Any, int] = {}

    def __call__(self, model: torch.nn.Module, paths: list[str], inputs: Mapping[str, Any], run: Callable[[Run], Any]) -> dict[Layer | None, str]:
        """What each layer of the lists at ``paths`` calls while ``run`` runs on ``inputs``, where it calls ops by what it is given;
        None: what is called outside."""
        _forget_results(model)
        calls = _Calls(self.shapes, _names(model, inputs))
        with _watched(model, paths, calls), torch.no_grad():
            result = run(calls)
        calls.finish([(leaf_name(path), tensor) for path, tensor in flatten(result)[0]])
        depths = {path: len(model.get_submodule(path)) for path in paths}
        found: dict[Layer | None, tuple[str, list[_Near]]] = {}
        for home in (calls.outside, *calls.homes.values()):
            words = _Words(home, depths)
            found[home.layer] = (words.hash(self._numbers), words.near)
        return {layer: f"{text} {_settled(layer, text, near, found)}" for layer, (text, near) in found.items()}


def _settled(layer: Layer | None, text: str, near: list[_Near], found: Mapping[Layer | None, tuple[str, list[_Near]]]) -> list[_Near]:
    """What the second layer reads of the first is the same as what a later one does that calls the same, if it can be; else it
    is what it reads of the layer before."""
    if layer is None or layer[1] != 1:
        return near
    for key, (other, reads) in found.items():
        if key and key[0] == layer[0] and key[1] > 1 and other == text and all(map(_Near.can_be, near, reads)):
            return reads
    return [_Near(None, each.before) for each in near]


def _forget_results(model: torch.nn.Module) -> None:
    """Functions beside the model's classes that remember results would be called in the first run only."""
    for name in {type(module).__module__ for module in model.modules()}:
        for value in list(vars(sys.modules.get(name, object)).values()):
            for each in _inside(value):
                if getattr(each, "__module__", None) == name and hasattr(each, "cache_clear"):
                    each.cache_clear()


def _inside(value: Any) -> Iterator[Any]:
    """A value, and what it wraps if it is a function."""
    yield value
    for cell in (value.__closure__ or ()) if isinstance(value, FunctionType) else ():
        with contextlib.suppress(ValueError):  # it is empty
            yield cell.cell_contents


def _names(model: torch.nn.Module, inputs: Mapping[str, Any]) -> list[tuple[str, torch.Tensor]]:
    given = [(f"input {leaf_name(path)}", tensor) for path, tensor in flatten(dict(inputs))[0]]
    return [*given, *model.named_parameters(remove_duplicate=False), *model.named_buffers(remove_duplicate=False)]


@contextlib.contextmanager
def _watched(model: torch.nn.Module, paths: list[str], calls: _Calls) -> Iterator[None]:
    handles = []
    for path in paths:
        for i, layer in enumerate(model.get_submodule(path)):
            for module in layer.modules():
                key = (path, i)
                handles.append(module.register_forward_pre_hook(lambda *_, key=key: calls.begin(key)))
                handles.append(module.register_forward_hook(lambda *_: calls.end()))
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
