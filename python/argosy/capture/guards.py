"""What a trace relied on: conditions on sizes that decided which branch of the model's code became the graph.

torch writes down every comparison of sizes that was made while it traced. Most of them say nothing: sizes of one name are
equal, a batch of one is no special case, memory is laid out one way or another. What is left after these is where the graph
is right: ranges of named dims where they can be, conditions otherwise.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch.export import ExportedProgram
from torch.utils._sympy.functions import FloorDiv, Max, Mod, PythonMod
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRanges, bound_sympy

from .companion import portable_path
from .conditions import value_of
from .dims import Dims

_TORCH = os.path.dirname(torch.__file__) + os.sep
#: Code of torch that branches as a model's does.
_LAYERS = _TORCH + "nn" + os.sep
#: Where torch decides whether a slice is cut short by the end of its tensor.
_SLICES = "_compute_slice_index"
#: Where torch asks how tensors are laid out in memory.
_LAYOUT = _TORCH + "_prims_common" + os.sep
#: The largest chunk whose remainders are tried.
_CHUNK = 1 << 10
#: The largest size that a search for a bound looks at.
_MOST = 1 << 31


@dataclass(frozen=True)
class Guard:
    """One condition that the graph needs."""

    #: in names of dims: "total_sequence <= 2048"
    condition: str
    #: the line of the model's code that asked, "transformers/models/x/modeling_x.py:123"; "" where torch does not tell
    where: str
    #: the same in torch's words: "L['attention_mask'].size()[1] <= 2048"
    code: str
    #: the dim that it bounds, with its smallest and largest size; "" for a condition that is no range
    dim: str = ""
    low: int | None = None
    high: int | None = None
    #: how long a text may become that grows call by call, where the condition is about that
    longest: int | None = None


def kept_guards(program: ExportedProgram, dims: Dims) -> list[Guard]:
    """What the graph needs of named dims beyond ``dims``, each bound once."""
    environment = _environment(program)
    if environment is None:
        return []
    translator = _Translator(program, environment, dims)
    bounds: dict[tuple[str, bool], Guard] = {}
    conditions: dict[str, Guard] = {}
    for guard in environment.guards:
        for part in sympy.And.make_args(guard.expr):
            for found in translator.translate(part, guard.sloc.framework_loc):
                if not found.dim:
                    conditions.setdefault(found.condition, found)
                    continue
                key = (found.dim, found.high is not None)
                known = bounds.get(key)
                if known is None or _is_tighter(found, known):
                    bounds[key] = found
    return [*(bounds[key] for key in sorted(bounds)), *(conditions[key] for key in sorted(conditions))]


def _is_tighter(one: Guard, other: Guard) -> bool:
    """Of two that bound a dim on the same side."""
    if one.high is not None and other.high is not None and one.high < other.high:
        return True
    return one.low is not None and other.low is not None and one.low > other.low


def padded_lengths(program: ExportedProgram, dims: Dims) -> list[str]:
    """Conditions that a length is no multiple of a chunk. ``kept_guards`` has none of them: a graph that pads is to be right
    at a multiple too, which somebody has to try."""
    environment = _environment(program)
    if environment is None:
        return []
    translator = _Translator(program, environment, dims)
    found = (translator.padded(guard.expr, guard.sloc.framework_loc) for guard in environment.guards)
    return sorted({text for text in found if text})


def sizes_made_numbers(program: ExportedProgram) -> int:
    """How many sizes of inputs the model's own code fixed."""
    environment = _environment(program)
    parts = [(part, guard.sloc.framework_loc) for guard in environment.guards for part in sympy.And.make_args(guard.expr)] if environment else []
    return sum(isinstance(part, sympy.Eq) and any(side.is_Integer for side in part.args) and _is_models(frame) for part, frame in parts)


def equal_sizes(
    program: ExportedProgram, order: list[sympy.Symbol], more: Iterable[sympy.Expr] = ()
) -> dict[sympy.Symbol, sympy.Expr]:
    """Symbols of ``order`` that the trace found equal to others before them, or to sums of others. ``more`` are differences that
    are known to be none."""
    environment = _environment(program)
    parts = [part for guard in environment.guards for part in sympy.And.make_args(guard.expr)] if environment else []
    zeros = [*more, *(part.lhs - part.rhs for part in parts if isinstance(part, sympy.Eq))]
    found: dict[sympy.Symbol, sympy.Expr] = {}
    for zero in zeros:
        zero = sympy.expand(zero.xreplace(environment.replacements).xreplace(found))
        # Equal to another one, or a sum: no size is told as a difference.
        sums = {each: each - zero / zero.coeff(each) for each in reversed(order) if abs(zero.coeff(each)) == 1}
        is_sum = {each: size.is_Symbol or (size.is_Add and all(part in order for part in size.args)) for each, size in sums.items()}
        for each in [each for each in sums if is_sum[each]][:1]:
            size = sympy.expand(sums[each])
            found = {symbol: sympy.expand(other.xreplace({each: size})) for symbol, other in found.items()} | {each: size}
    return found


def guards_to_check(program: ExportedProgram) -> list[str]:
    """Of the conditions that a program of torch checks when it is called, those that its graph relies on: what the model's code
    asked for, but for amounts of padding that are not none, and limits of kernels. The rest is about memory."""
    environment = _environment(program)
    if environment is None:
        return program._guards_code
    own = [symbol for symbol, sources in environment.var_to_sources.items() if not any(map(_is_constant, sources))]
    guards = [guard for guard in environment.guards if guard.expr.free_symbols.issubset(own)]
    if len(guards) != len(program._guards_code):  # some speak of sizes of weights
        return program._guards_code
    return [code for code, guard in zip(program._guards_code, guards, strict=True)
            if _is_to_check(guard.expr, guard.sloc.framework_loc)]  # fmt: skip


def _is_to_check(condition: sympy.Basic, frame: Any) -> bool:
    if _is_models(frame):
        # A graph that pads by a remainder, or by what is missing, is right where that is nothing.
        is_missing = isinstance(condition, (sympy.Gt, sympy.Lt)) and condition.lts == 0 and isinstance(condition.gts, Max)
        return isinstance(condition, sympy.Eq) or not (is_missing or condition.has(Mod, PythonMod))
    if isinstance(condition, (sympy.Eq, sympy.Ne, sympy.Or)) or getattr(frame, "filename", "").startswith(_LAYOUT):
        return False
    # What kernels need at least, the model needs too. Where a slice ends is another matter.
    return getattr(frame, "name", "") == _SLICES or not condition.lts.is_Integer


def within_guards(dims: Dims, guards: list[Guard]) -> Dims:
    """``dims`` with ranges that the guards allow; a bound of a sum bounds its parts too."""
    ranges = dict(dims.ranges)

    def narrow(name: str, low: int | None, high: int | None) -> None:
        least, most = ranges[name]
        least = least if low is None else max(least, low)
        ranges[name] = (least, min((bound for bound in (most, high) if bound is not None), default=None))

    for guard in guards:
        if guard.dim in ranges:
            narrow(guard.dim, guard.low, guard.high)
    for guard in guards:
        if guard.high is None:
            continue
        parts = [part for part in dims.sums.get(guard.dim, ()) if part in ranges]
        for part in parts:
            others = sum(ranges[other][0] for other in parts if other != part)
            narrow(part, None, guard.high - others)
    return Dims(dims.names, ranges, dims.sums)


def restart_guard(restart: tuple[int, str], dims: Dims) -> Guard | None:
    """The condition of a model whose ``generate`` begins anew where a text grows beyond a length (``restart``: it, and the
    line that does so): keys of the past are then other ones. None where ``dims`` end before."""
    length, where = restart
    used = {name for axes in dims.names.values() for name in axes.values()}
    most = dims.ranges.get("total_sequence", (1, None))[1]
    if not {"total_sequence", "past_sequence"} <= used or (most is not None and most <= length):
        return None
    condition = f"total_sequence <= {length} or past_sequence == 0 or past_sequence > {length}"
    return Guard(condition, where, with_sources(condition, _sources(dims)), longest=length)


def _sources(dims: Dims) -> dict[str, str]:
    """How torch writes each name of a dim."""
    found: dict[str, str] = {}
    for name, axes in dims.names.items():
        for axis, dim in axes.items():
            found.setdefault(dim, f"L['{name}'].size()[{axis}]")
    return found


def with_sources(condition: str, sources: Mapping[str, str]) -> str:
    """A condition in torch's words."""
    return re.sub(r"[A-Za-z_][\w.]*", lambda match: sources.get(match[0], match[0]), condition)


def _environment(program: ExportedProgram) -> Any:
    """torch's record of the symbols of a program; None where every size is a number."""
    for node in program.graph.nodes:
        value = node.meta.get("val")
        for size in value.shape if isinstance(value, torch.Tensor) else (value,):
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


class _Translator:
    """From torch's symbols to names of dims. A sum is written as the sum of its parts until it is printed."""

    def __init__(self, program: ExportedProgram, environment: Any, dims: Dims) -> None:
        self.dims = dims
        #: what each dim was in the trace
        self.sizes: dict[str, int] = {}
        self.names: dict[str, sympy.Symbol] = {}
        self.replaced = dict(environment.replacements)
        self.by_symbol: dict[sympy.Symbol, sympy.Expr] = {}
        #: how torch writes each name: "L['input_ids'].size()[1]"
        self.sources: dict[str, str] = {}
        inputs = {node.name: node.meta.get("val") for node in program.graph.nodes if node.op == "placeholder"}
        for symbol, sources in environment.var_to_sources.items():
            for text in (_name_of(source) for source in sources):
                found = re.fullmatch(r"L(?:\['kwargs'\])?\['(\w+)'\]\.size\(\)\[(\d+)\]", text)
                if found is None:
                    continue
                axis = int(found[2])
                name = dims.names.get(found[1], {}).get(axis)
                if name is None or not isinstance(inputs.get(found[1]), torch.Tensor):
                    continue
                if isinstance(size := inputs[found[1]].shape[axis], int):
                    self.by_symbol[symbol] = sympy.Integer(size)
                else:
                    self.by_symbol[symbol] = self.expression(name)
                    self.sizes[name] = size.node.hint
                    self.sources.setdefault(name, f"L['{found[1]}'].size()[{axis}]")

    def expression(self, name: str) -> sympy.Expr:
        parts = self.dims.sums.get(name)
        if parts:
            return sympy.Add(*(self.expression(part) for part in parts))
        if name not in self.names:
            low = self.dims.ranges.get(name, (0 if name.startswith("past") else 1, None))[0]
            sign = {"positive": True} if low else {"nonnegative": True}
            self.names[name] = sympy.Symbol(name, integer=True, **sign)
        return self.names[name]

    def translate(self, guard: sympy.Basic, frame: Any) -> Iterator[Guard]:
        if not _is_models(frame) and isinstance(guard, (sympy.Eq, sympy.Ne, sympy.Or)):
            return  # sizes that kernels need equal are what the model needs anyway; the rest is about memory
        condition = self._in_names(guard)
        if condition is None or condition in (sympy.true, sympy.false) or not self._is_real(condition, frame):
            return
        for name in self._single(condition):
            yield from self._bounds(condition, name, frame)
            return
        yield self._guard(condition, frame)

    def padded(self, guard: sympy.Basic, frame: Any) -> str:
        """A guard of the model's code that says that a length is no multiple, in names; "": another one."""
        condition = self._in_names(guard) if _is_models(frame) else None
        is_one = isinstance(condition, sympy.core.relational.Relational) and _is_remainder(condition)
        return PythonPrinter().doprint(condition) if is_one else ""

    def _in_names(self, guard: sympy.Basic) -> sympy.Basic | None:
        """``guard`` in names; None if it speaks of anything else, such as sizes that depend on data."""
        for _ in range(8):
            if all(symbol in self.by_symbol for symbol in guard.free_symbols):
                return _tidied(guard.xreplace(self.by_symbol))
            known = {symbol: self.replaced[symbol] for symbol in guard.free_symbols
                     if symbol not in self.by_symbol and symbol in self.replaced}  # fmt: skip
            if not known:
                return None
            guard = guard.xreplace(known)
        return None

    def _is_real(self, condition: sympy.Basic, frame: Any) -> bool:
        """Whether ``condition`` can fail, and the graph would then be another."""
        if isinstance(condition, sympy.Or):
            return all(self._is_real(part, frame) for part in condition.args)
        if not isinstance(condition, sympy.core.relational.Relational):
            return False
        # One and none are special to torch wherever it looks at a size. The check runs graphs at these sizes.
        if _is_above_one(condition) or _is_remainder(condition) or self._always_holds(condition):
            return False
        if _is_models(frame) or getattr(frame, "name", "") == _SLICES:
            return True
        # What kernels need at least, the model needs too; at most is a limit of the graph.
        return any(
            guard.high is not None for name in self._single(condition) for guard in self._bounds(condition, name, frame)
        )

    def _always_holds(self, condition: sympy.Basic) -> bool:
        ranges = {}
        for name, symbol in self.names.items():
            low, high = self.dims.ranges.get(name, (1, None))
            high = int_oo if high is None else max(high, 2)
            ranges[symbol] = ValueRanges(min(max(low, 2), high), high)  # as torch takes it; see _is_real
        try:
            if bound_sympy(condition, ranges).lower == sympy.true:
                return True
        except Exception:  # noqa: BLE001 - functions that torch has no bounds for
            return False
        return _holds_at_every_size(condition)

    def _single(self, condition: sympy.Basic) -> list[str]:
        """The one dim that ``condition`` is about; a sum counts as one."""
        if condition.has(Mod, PythonMod) or isinstance(condition, (sympy.Eq, sympy.Ne, sympy.Or)):
            return []
        if len(condition.free_symbols) == 1:
            return [str(next(iter(condition.free_symbols)))]
        for name, parts in self.dims.sums.items():
            if self._in_sum(condition, name, parts).free_symbols == {sympy.Symbol(name, integer=True, positive=True)}:
                return [name]
        return []

    def _in_sum(self, condition: sympy.Basic, name: str, parts: tuple[str, ...]) -> sympy.Basic:
        whole = sympy.Symbol(name, integer=True, positive=True)
        first, *others = (self.expression(part) for part in parts)
        return _tidied(condition.subs(first, whole - sympy.Add(*others)))

    def _bounds(self, condition: sympy.Basic, name: str, frame: Any) -> Iterator[Guard]:
        """The range of ``name`` around the traced size in which ``condition`` holds."""
        if name in self.dims.sums:
            condition = self._in_sum(condition, name, self.dims.sums[name])
        if name not in self.sizes or len(condition.free_symbols) != 1:
            yield self._guard(condition, frame)
            return
        symbol, size = next(iter(condition.free_symbols)), self.sizes[name]

        def holds(value: int) -> bool:
            try:
                return condition.subs(symbol, value) == sympy.true
            except ZeroDivisionError:  # a size at which nothing can be computed
                return False

        least = self.dims.ranges.get(name, (0, None))[0]
        if not holds(size):
            return
        high = None if holds(_MOST) else _last(holds, size, _MOST)
        low = None if holds(least) else _last(holds, size, least)
        if condition.has(FloorDiv, sympy.Min, sympy.Max) and not all(map(holds, _between(size, low or least, high))):
            yield self._guard(condition, frame)  # no range: it holds for some sizes and not for those between them
            return
        if high is not None:
            yield Guard(f"{name} <= {high}", _where(frame), self._code(f"{name} <= {high}"), name, high=high)
        if low is not None and low > 2:
            yield Guard(f"{name} >= {low}", _where(frame), self._code(f"{name} >= {low}"), name, low=low)

    def _guard(self, condition: sympy.Basic, frame: Any) -> Guard:
        for name, parts in self.dims.sums.items():
            shorter = self._in_sum(condition, name, parts)
            if len(shorter.free_symbols) < len(condition.free_symbols):
                condition = shorter
        text = PythonPrinter().doprint(condition)
        return Guard(text, _where(frame), self._code(text))

    def _code(self, text: str) -> str:
        sums = {name: [self.sources.get(part, "") for part in parts] for name, parts in self.dims.sums.items()}
        known = {name: f"({' + '.join(parts)})" for name, parts in sums.items() if all(parts)}
        return with_sources(text, known | self.sources)


def _between(size: int, low: int, high: int | None) -> Iterator[int]:
    """Sizes around a traced one, in small steps and in larger ones."""
    for step in (1, max(size // 50, 1)):
        yield from range(max(size - 100 * step, low), min(size + 100 * step, high or _MOST) + 1, step)


def _tidied(condition: sympy.Basic) -> sympy.Basic:
    """Comparisons of sums with everything that varies on one side."""
    if isinstance(condition, sympy.Or):
        return sympy.Or(*(_tidied(part) for part in condition.args))
    if not isinstance(condition, sympy.core.relational.Relational):
        return condition
    difference = sympy.expand(condition.lhs - condition.rhs)
    number, rest = difference.as_coeff_Add()
    if not rest.free_symbols:
        return condition.func(difference, 0)
    if not number.is_Integer:
        return condition.func(difference, 0)
    if rest.could_extract_minus_sign():
        return condition.reversed.func(-rest, number)
    return condition.func(rest, -number)


def _is_above_one(condition: sympy.Basic) -> bool:
    """Says that a size is neither none nor one, in any words: ``size > 1``, ``size >= 2``, ``size != 1``."""
    if condition.has(Mod, PythonMod):
        return False
    if not condition.lhs.is_nonnegative and condition.rhs != 1:
        return False  # a difference of two dims, which may be anything
    bounds = {sympy.Gt: (0, 1), sympy.Ge: (1, 2), sympy.Ne: (0, 1)}
    return any(isinstance(condition, kind) and condition.rhs in values for kind, values in bounds.items())


def _holds_at_every_size(condition: sympy.Basic) -> bool:
    """Whether a condition on remainders of one dim holds: what it says repeats from chunk to chunk, so that some chunks are
    tried in place of all."""
    numbers = [abs(int(number)) for number in condition.atoms(sympy.Integer)]
    if len(condition.free_symbols) != 1 or not condition.has(Mod, PythonMod) or max(numbers, default=0) > _CHUNK:
        return False
    name, text = str(next(iter(condition.free_symbols))), PythonPrinter().doprint(condition)
    return all(value_of(text, {name: size}) is True for size in range(1, 4 * max(numbers, default=1) + 2))


def _is_remainder(condition: sympy.Basic) -> bool:
    """Says that a length is no multiple of a chunk: the graph pads it and cuts off what was padded, which at a multiple is
    nothing. The check runs graphs at a multiple, see ``padded_lengths``."""
    left, right = condition.lhs, condition.rhs
    return right == 0 and isinstance(left, (Mod, PythonMod)) and isinstance(condition, (sympy.Gt, sympy.Ne))


def _last(holds: Any, good: int, bad: int) -> int:
    """The size nearest to ``bad`` at which a condition that changes once still holds."""
    while abs(bad - good) > 1:
        middle = (good + bad) // 2
        good, bad = (middle, bad) if holds(middle) else (good, middle)
    return good


def _is_constant(source: Any) -> bool:
    from torch._dynamo.source import ConstantSource

    return isinstance(source, ConstantSource)


def _name_of(source: Any) -> str:
    name = source.name
    return name() if callable(name) else name


def _is_models(frame: Any) -> bool:
    """Whether a line is of the model's code and not of torch's kernels."""
    path = getattr(frame, "filename", "")
    return bool(path) and (not path.startswith(_TORCH) or path.startswith(_LAYERS))


def _where(frame: Any) -> str:
    path = getattr(frame, "filename", "")
    if not path or path.startswith(_TORCH):
        return ""
    return f"{portable_path(path)}:{frame.lineno}"
