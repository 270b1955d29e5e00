"""`InputObserver`: what a module was really called with, and what an export of it needs."""

from __future__ import annotations

import contextlib
import functools
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

import torch

from ..errors import ExportError
from .alignment import Alignment
from .calls import Call, copy_value, record
from .dims import DimExpr
from .discrepancies import check_calls, split_arguments
from .shapes import dynamic_shapes, nest_extra


class InputObserver:
    """Records calls of a module's method and infers arguments and dynamic axes for an export from them.

    ::

        observer = InputObserver()
        with observer(model):                      # or: with observer:
            model.generate(**inputs, max_new_tokens=3)
        program = torch.export.export(
            model, (), kwargs=observer.infer_arguments(), dynamic_shapes=observer.infer_dynamic_shapes()
        )
        rows = observer.check_discrepancies(program)

    Several observers may watch at once, and one observer may watch several times: its calls add up. Calls of different
    sizes (two prompts, two batches) tell which axes vary. `missing` gives values for arguments that some calls lack, such
    as the images of a model that sees them in the first call only; without one, an empty tensor stands for them.
    """

    def __init__(self, missing: Mapping[str, Any] | None = None) -> None:
        self.missing: dict[str, Any] = dict(missing or {})
        self.calls: list[Call] = []
        """What was recorded, in order."""
        self.module: torch.nn.Module | None = None
        """The module that was observed; known once a with block was entered or, for ``with observer:``, left."""
        self.method_name = "forward"
        self._positional = True
        self._blocks: list[contextlib.ExitStack] = []

    def __len__(self) -> int:
        return len(self.calls)

    def num_obs(self) -> int:
        """How many calls were recorded."""
        return len(self.calls)

    # ---- recording ----

    @contextlib.contextmanager
    def __call__(
        self, module: torch.nn.Module, store_n_calls: int = 3, method_name: str = "forward"
    ) -> Iterator[InputObserver]:
        """Watches calls of `method_name` of `module` in a with block and keeps the first `store_n_calls` of them.

        The module is as it was before when the block is left, also by an exception.
        """
        self._watch(module, method_name)
        original = getattr(module, method_name)
        own = vars(module).get(method_name)
        kept = 0

        @functools.wraps(original)
        def observed(*args: Any, **kwargs: Any) -> Any:
            nonlocal kept
            if kept >= store_n_calls:
                return original(*args, **kwargs)
            kept += 1
            call, outputs = _observe(original, args, kwargs)
            self._add(call)
            return outputs

        # Past nn.Module.__setattr__, which would register a module-valued attribute.
        vars(module)[method_name] = observed
        try:
            yield self
        finally:
            if own is None:
                vars(module).pop(method_name, None)
            else:
                vars(module)[method_name] = own

    def __enter__(self) -> InputObserver:
        """Watches whatever module is called in the block: the outermost one, that is the one whose call is not made by
        another module. Where several are (an encoder, then the model that owns it), the one that contains the others."""
        stack = contextlib.ExitStack()
        stack.enter_context(self._observe_outermost())
        self._blocks.append(stack)
        return self

    def __exit__(self, *exception: Any) -> None:
        self._blocks.pop().close()

    @contextlib.contextmanager
    def _observe_outermost(self, store_n_calls: int = 3) -> Iterator[None]:
        seen: dict[int, tuple[torch.nn.Module, list[Call]]] = {}
        depth = 0
        original = torch.nn.Module.__call__

        @functools.wraps(original)
        def observed(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
            nonlocal depth
            calls = seen.setdefault(id(module), (module, []))[1] if depth == 0 else None
            depth += 1
            try:
                if calls is None or len(calls) >= store_n_calls:
                    return original(module, *args, **kwargs)
                call, outputs = _observe(functools.partial(original, module), args, kwargs, module.forward)
                calls.append(call)
                return outputs
            finally:
                depth -= 1

        torch.nn.Module.__call__ = observed
        try:
            yield
        finally:
            torch.nn.Module.__call__ = original
            if seen:
                module, calls = _outermost(list(seen.values()))
                self._watch(module, "forward")
                for call in calls:
                    self._add(call)

    def _watch(self, module: torch.nn.Module, method_name: str) -> None:
        if not isinstance(module, torch.nn.Module) or not callable(getattr(module, method_name, None)):
            raise ExportError(
                f"{type(module).__name__} is no torch.nn.Module with a method {method_name!r}",
                code="invalid-input",
                hint="observe a module: observer(model) or observer(model.encoder, method_name='forward')",
            )
        if self.module is not None and (self.module is not module or self.method_name != method_name):
            raise ExportError(
                f"this observer has calls of {type(self.module).__name__}.{self.method_name} already",
                code="invalid-input",
                hint="use one InputObserver for each module",
            )
        self.module, self.method_name = module, method_name

    def _add(self, call: Call) -> None:
        self._positional = self._positional and not call.kwargs and None not in call.args
        self.calls.append(call)

    # ---- inference ----

    def infer_arguments(
        self,
        index: int | None = None,
        *,
        set_batch_dimension_for: bool | Iterable[str] | None = None,
        enlarge: bool = True,
        as_args_kwargs: bool = False,
    ) -> Any:
        """Arguments for an export: all that any call had, in the structure of the fullest call.

        A tuple if every call had positional arguments only, else a dict by name; with `as_args_kwargs` always ``(args,
        kwargs)``. With `index`, those of one call as it was. Axes that vary get a size of at least 2, as torch.export
        takes 0 and 1 for constants; `enlarge=False` leaves sizes as observed. Give `set_batch_dimension_for` the same
        value as `infer_dynamic_shapes` if all calls had a batch of 1.
        """
        alignment = self._alignment(set_batch_dimension_for)
        if index is not None:
            call = self.calls[index]
            arguments = alignment.complete(call)
        else:
            arguments = alignment.sample() if enlarge else alignment.complete(alignment.base)
        return self._shaped(copy_value(arguments), as_args_kwargs)

    def infer_dynamic_shapes(self, set_batch_dimension_for: bool | Iterable[str] | None = None) -> Any:
        """Which axes vary, in the structure of `infer_arguments`, for the ``dynamic_shapes`` of torch.export.

        `set_batch_dimension_for`: True makes the first axis of all tensors that share the batch's size vary, names those
        of these arguments (caches included), although all calls had the same size. Arguments that the method takes by
        ``**kwargs`` are nested under that name, as torch.export wants it.
        """
        alignment = self._alignment(set_batch_dimension_for)
        shapes = self._shaped(dynamic_shapes(alignment.complete(alignment.base), alignment.dims), False)
        return nest_extra(getattr(self.module, self.method_name), shapes) if isinstance(shapes, dict) else shapes

    def infer_dimensions(
        self, set_batch_dimension_for: bool | Iterable[str] | None = None
    ) -> dict[str, dict[int, DimExpr]]:
        """For each tensor by dotted name and each axis: a fixed size, a named dimension or a sum of these.

        ``attention_mask: {0: batch, 1: past_sequence + sequence}``; `argosy.observer.dims` has the rules.
        """
        return self._alignment(set_batch_dimension_for).dims

    def check_discrepancies(
        self, program: Any, atol: float = 1e-4, rtol: float = 0.1, progress_bar: bool = False
    ) -> list[dict[str, Any]]:
        """Runs every recorded call through `program` and compares with what the module returned.

        `program`: a path to a ``.pt2`` or ``.onnx`` file, an ExportedProgram or a callable. One row per call, ready for a
        data frame: ``ok``, ``abs`` and ``rel`` (largest differences), ``>0.1`` and ``>0.01`` (share of elements that
        differ by more), seconds of both, shapes of the inputs, and ``error`` where the program could not be run.
        """
        return check_calls(program, self.calls, self._alignment(None), atol, rtol, progress_bar)

    def _alignment(self, batched: bool | Iterable[str] | None) -> Alignment:
        return Alignment(self.calls, self.missing, batched)

    def _shaped(self, arguments: dict[str, Any], as_args_kwargs: bool) -> Any:
        if self._positional:
            return (tuple(arguments.values()), {}) if as_args_kwargs else tuple(arguments.values())
        args, kwargs = split_arguments(arguments)
        if as_args_kwargs:
            return args, kwargs
        if args:
            raise ExportError(
                "the calls have both positional and named arguments, which no single tuple or dict holds",
                code="invalid-input",
                hint="ask for infer_arguments(as_args_kwargs=True)",
            )
        return kwargs


def _observe(
    method: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], named: Callable[..., Any] | None = None
) -> tuple[Call, Any]:
    call = record(named or method, args, kwargs)
    start = time.perf_counter()
    outputs = method(*args, **kwargs)
    call.seconds = time.perf_counter() - start
    call.outputs = copy_value(outputs)
    return call, outputs


def _outermost(seen: list[tuple[torch.nn.Module, list[Call]]]) -> tuple[torch.nn.Module, list[Call]]:
    called = {id(module) for module, _ in seen}

    def contained(item: tuple[torch.nn.Module, list[Call]]) -> int:
        return sum(id(part) in called for part in item[0].modules())

    return max(seen, key=contained)
