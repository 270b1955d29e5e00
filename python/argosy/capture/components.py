"""The components of a model: which parts become graphs, what each is called with, and how it runs.

A component works on any instance of the model: the twin, whose calls are observed and compared, and the full-size model on
the meta device, of which only shapes matter.
"""

from __future__ import annotations

import contextlib
import inspect
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import torch

from .caches import emptied, full_length_cache
from .patches.rotary import forget_lengths, restart, rotary_limits

Inputs = dict[str, Any]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shape:
    """Sizes of one call. ``padding`` is the number of left-padded tokens in the first row; ``media`` picks one of two sizes
    (of pictures also ``OWN`` and ``TRACED`` of ``twin.inputs``)."""

    batch: int = 2
    sequence: int = 19
    past: int = 23
    padding: int = 3
    media: int = 0


@dataclass(frozen=True)
class Component:
    """One graph of a model."""

    name: str
    #: makes the inputs of a call, structured as the model takes them (caches are objects)
    inputs: Callable[[torch.nn.Module, Shape], Inputs]
    #: runs the component: (model, the model's own forward, inputs) to outputs by name
    run: Callable[[torch.nn.Module, Callable, Inputs], dict[str, Any]]
    #: what eager computes for a shape, by other means than ``run`` where there are any; by default ``run`` itself
    reference: Callable[[torch.nn.Module, Shape], dict[str, Any]] | None = None
    #: sizes that a shape gives names to
    symbols: Callable[[Shape], dict[str, int]] = lambda shape: {"batch": shape.batch, "sequence": shape.sequence}
    #: the argument that holds a cache
    cache: str | None = None
    #: shapes of its own that it has to be right at, besides the usual ones
    shapes: tuple[Shape, ...] = ()
    #: which media it is traced with: not of the size that the model was made for, which code may treat as a special case
    traced_media: int = 1
    #: dims that are fixed, all of them at the sizes of ``own_media``, where a trace cannot keep one of them free
    together: tuple[str, ...] = ()
    own_media: int = 0
    #: why calls have one row only; empty where they may have any number
    one_row: str = ""
    #: called with inputs of the user's, which ``shapes`` name one by one by their ``media``, and with no others
    given: bool = False
    #: axes of given inputs that are fixed, as a capture has them (``specialized``)
    fixed: tuple[dict[str, Any], ...] = ()
    #: the same for calls of one size, to be traced where the code computes with values of ``constants``
    by_values: Component | None = None
    #: inputs that are no inputs of the graph, which has the values that they had in the trace
    constants: tuple[str, ...] = ()


def parameters_of(function: Callable) -> list[str]:
    return [name for name, parameter in inspect.signature(function).parameters.items()
            if parameter.kind not in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL)]  # fmt: skip


def output_dict(output: Any) -> dict[str, Any]:
    """A model's output by name, without what is None."""
    if isinstance(output, torch.Tensor):
        return {"output": output}
    if isinstance(output, (tuple, list)):
        return {f"output_{i}": item for i, item in enumerate(output) if item is not None}
    return {name: item for name, item in output.items() if item is not None}


def call_flags(forward: Callable, **flags: Any) -> dict[str, Any]:
    """Those of ``flags`` that ``forward`` takes, by name or among further ones that its configuration knows too."""
    known = inspect.signature(forward).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    config = getattr(getattr(forward, "__self__", None), "config", None)
    if config is not None and not hasattr(config, "use_cache"):
        flags = {name: value for name, value in flags.items() if name != "use_cache" or name in known}
    return {
        name: value
        for name, value in flags.items()
        if name in known or (open_ended and name in ("use_cache", "return_dict"))
    }


def cache_argument(model: torch.nn.Module, inputs: Inputs) -> str | None:
    """The argument of forward through which a model takes back a state that it returned."""
    with torch.no_grad():
        output = model(**inputs, **call_flags(model.forward, use_cache=True, return_dict=True))
    if not isinstance(output, dict):
        return None
    from ..structures import named_leaves

    takes = set(parameters_of(model.forward)) - set(inputs)
    for name, item in output.items():
        if name in takes and item is not None and named_leaves({name: item}):
            return name
    return None


# ---- one call, no state -------------------------------------------------------------------------------------------


#: More texts than pictures, so that their numbers are told apart.
_MORE_TEXTS = 5
_TEXT_INPUTS = ("input_ids", "attention_mask", "token_type_ids", "position_ids")


def single_forward(model: torch.nn.Module) -> Component:
    from .twin import Sizes, sample_inputs
    from .twin.request import OWN, TRACED

    free = _takes_other_pictures(model)

    def same_number(model: torch.nn.Module, shape: Shape) -> Inputs:
        sizes = Sizes(batch=shape.batch, sequence=shape.sequence, padding=min(shape.padding, shape.sequence - 1),
                      decoder_sequence=shape.past + 1, media=shape.media, free_pictures=free)  # fmt: skip
        return to_device(sample_inputs(model, sizes), model)

    def more_texts(model: torch.nn.Module, shape: Shape) -> Inputs:
        texts = same_number(model, replace(shape, batch=shape.batch + _MORE_TEXTS))
        return same_number(model, shape) | {name: texts[name] for name in _TEXT_INPUTS if name in texts}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        return output_dict(forward(**inputs, **call_flags(forward, use_cache=False, return_dict=True)))

    def symbols(shape: Shape) -> dict[str, int]:
        names = {"batch": shape.batch, "sequence": shape.sequence, "decoder_sequence": shape.past + 1}
        if free:
            names["height"], names["width"] = sides[shape.media]
        return names | ({"text_batch": shape.batch + _MORE_TEXTS} if compares else {})

    compares = _compares_texts_with_pictures(model)
    component = Component("model", more_texts if compares else same_number, run, symbols=symbols)
    if free:
        sides = {media: _sides(model, media) for media in (0, 1, OWN, TRACED)}
        shapes = () if sides[OWN] in (sides[0], sides[1]) else (Shape(1, 13, 1, 0, media=OWN),)
        component = replace(component, shapes=shapes, traced_media=TRACED, together=("height", "width"), own_media=OWN)
    reason = _refuses_more_rows(component, model)
    return one_row_only(component, reason) if reason else component


def _sides(model: torch.nn.Module, media: int) -> tuple[int, ...]:
    """Height and width of pictures of any size, by which ``media`` they are."""
    from .twin import Sizes, sample_inputs

    return tuple(sample_inputs(model, Sizes(batch=1, media=media, free_pictures=True))["pixel_values"].shape[-2:])


def _takes_other_pictures(model: torch.nn.Module) -> bool:
    """Whether the code of ``model``, a twin, runs on pictures of other sizes than its configuration names. Trying it is
    the only way to know: some vision transformers fit their positions to the picture, others refuse it."""
    from .twin import Sizes, sample_inputs

    if "pixel_values" not in parameters_of(model.forward):
        return False
    for media in (0, 1):
        try:
            inputs = sample_inputs(model, Sizes(batch=1, media=media, free_pictures=True))
            if inputs["pixel_values"].dim() < 4:
                return False  # patches in a row
            with torch.no_grad():
                model(**to_device(inputs, model))
        except Exception as error:  # noqa: BLE001 - models refuse pictures in ways of their own
            logger.debug("%s takes no pictures of another size: %s", type(model).__name__, error)
            return False
    return True


def _refuses_more_rows(component: Component, model: torch.nn.Module) -> str:
    """What the model says to a call of two rows that it would take with one; empty if it says nothing."""

    def call(batch: int) -> None:
        with torch.no_grad():
            component.run(model, model.forward, component.inputs(model, Shape(batch=batch)))

    try:
        call(2)
    except Exception as refused:  # noqa: BLE001 - code of the model's own
        with contextlib.suppress(Exception):
            call(1)
            said = str(refused).strip().splitlines() or [type(refused).__name__]
            return said[0].rstrip(".")
    return ""


def one_row_only(component: Component, reason: str) -> Component:
    """The component with calls of one row, whatever batch is asked for."""

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        return component.inputs(model, replace(shape, batch=1))

    return replace(component, inputs=inputs, one_row=reason)


def at_own_sizes(component: Component) -> Component:
    """The component with media of the sizes that the model was made for, whichever are asked for."""

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        return component.inputs(model, replace(shape, media=component.own_media))

    def symbols(shape: Shape) -> dict[str, int]:
        return component.symbols(replace(shape, media=component.own_media))

    return replace(component, inputs=inputs, symbols=symbols, shapes=())


def one_size(component: Component, constants: tuple[str, ...]) -> Component:
    """The component for one row with the larger media, whose graph has the values of ``constants`` and what follows from them."""
    only = Shape(batch=1, padding=0, media=1)

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        made = component.inputs(model, only)
        return made | {name: made[name].cpu() for name in constants}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .fixed_values import FixedValues

        with FixedValues() if torch.compiler.is_exporting() else contextlib.nullcontext():
            return component.run(model, forward, inputs)

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        assert component.reference is not None
        return component.reference(model, only)

    return replace(component, inputs=inputs, run=run, reference=component.reference and reference,
                   symbols=lambda shape: component.symbols(only), shapes=(), constants=constants)  # fmt: skip


def _compares_texts_with_pictures(model: torch.nn.Module) -> bool:
    """Of models like CLIP, which score every picture against every text, however many there are of each."""
    compares = all(hasattr(model, name) for name in ("get_text_features", "get_image_features", "logit_scale"))
    return compares and not hasattr(model, "multimodal_model")


# ---- new tokens on a past ------------------------------------------------------------------------------------------


def decode(model: torch.nn.Module, cache: str) -> Component:
    """Any number of new tokens on any past: one graph serves prompts and single steps."""
    takes = generation_arguments(model) or parameters_of(model.forward)

    def tokens(model: torch.nn.Module, shape: Shape) -> Inputs:
        from .twin import Sizes, sample_inputs

        total = shape.past + shape.sequence
        sizes = Sizes(batch=shape.batch, sequence=total, padding=min(shape.padding, total - 1), media=shape.media)
        inputs = {name: value for name, value in sample_inputs(model, sizes).items() if name in takes}
        if "attention_mask" in takes and "attention_mask" not in inputs:
            inputs["attention_mask"] = torch.ones_like(inputs["input_ids"])
        if "position_ids" in takes and "attention_mask" in inputs:
            inputs["position_ids"] = positions(inputs["attention_mask"])
        return to_device(inputs, model)

    def prefix(inputs: Inputs, length: int) -> Inputs:
        return {name: value[:, :length].contiguous() for name, value in inputs.items()}

    def suffix(inputs: Inputs, start: int) -> Inputs:
        return {
            name: value if name == "attention_mask" else value[:, start:].contiguous() for name, value in inputs.items()
        }

    def filled(model: torch.nn.Module, inputs: Inputs) -> tuple[Any, Any]:
        forget_lengths(model)
        start = full_length_cache(model) if cache in ("past_key_values", "cache_params") else None
        given = {} if start is None else {cache: start}
        with torch.no_grad():
            output = model(**inputs, **given, **call_flags(model.forward, use_cache=True, return_dict=True))
        return output, output[cache]

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        everything = tokens(model, shape)
        _, state = filled(model, prefix(everything, max(shape.past, 1)))
        if shape.past == 0:
            state = emptied(state)
        return {**suffix(everything, shape.past), cache: state}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        output = output_dict(forward(**inputs, **call_flags(forward, use_cache=True, return_dict=True)))
        return {("present" if name == cache else name): value for name, value in output.items()}

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        """All tokens at once, without a past: what the split into past and new tokens must not change. Only rotary
        embeddings that depend on the length do: past keys keep the frequencies of their time, unless the model's
        ``generate`` computes them anew."""
        begins_anew = restart(model) is not None
        if shape.past and not begins_anew and any(limit < shape.past + shape.sequence for limit in rotary_limits(model)):
            with torch.no_grad():
                return run(model, model.forward, inputs(model, shape))
        output, state = filled(model, tokens(model, shape))
        output = output_dict(output)
        output.pop(cache)
        sequences = {name: value[:, shape.past :] for name, value in output.items() if isinstance(value, torch.Tensor)}
        return {**sequences, "present": state}

    def symbols(shape: Shape) -> dict[str, int]:
        return {"batch": shape.batch, "sequence": shape.sequence, "past_sequence": shape.past,
                "total_sequence": shape.past + shape.sequence}  # fmt: skip

    return Component("decode", inputs, run, reference, symbols, cache)


def generation_arguments(model: torch.nn.Module) -> list[str] | None:
    """The arguments that ``generate`` itself gives to forward for a left-padded batch, prompt and next step alike; None
    where the twin cannot generate, so that forward's signature has to say it."""
    from ..observer import InputObserver
    from .twin import Sizes, sample_inputs

    observer = InputObserver()
    try:
        with observer(model, store_n_calls=2):
            model.generate(**sample_inputs(model, Sizes(padding=3)), max_new_tokens=2, do_sample=False)
        return list(observer.infer_arguments())
    except Exception as error:  # noqa: BLE001 - generate runs code of the model's own
        logger.debug("generate of %s fails: %s", type(model).__name__, error)
        return None


def without_past(decode: Component) -> Component:
    """``decode`` for prompts only: the same outputs, and no cache among the inputs."""

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        made = decode.inputs(model, replace(shape, past=0))
        return {name: value for name, value in made.items() if name != decode.cache}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        start = full_length_cache(model) if decode.cache in ("past_key_values", "cache_params") else None
        if start is None or decode.cache is None:
            return decode.run(model, forward, inputs)
        return decode.run(model, forward, {**inputs, decode.cache: start})

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        assert decode.reference is not None, "a component with a cache has one"
        return decode.reference(model, replace(shape, past=0))

    return Component("prefill", inputs, run, reference)


def positions(mask: torch.Tensor) -> torch.Tensor:
    """Position ids of left-padded rows, as generation makes them."""
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


def to_device(inputs: Inputs, model: torch.nn.Module) -> Inputs:
    """``inputs`` where the model's weights are, floating ones in the model's dtype."""
    device, dtype = next(iter(model.parameters())).device, model.dtype

    def moved(value: Any) -> Any:
        if not isinstance(value, torch.Tensor):
            return value
        return value.to(device, dtype) if value.is_floating_point() else value.to(device)

    return {name: moved(value) for name, value in inputs.items()}
