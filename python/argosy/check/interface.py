"""Flat inputs of a graph from what a caller has: sizes by name, empty states, masks, outputs of earlier components."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..capture.components import Component, Shape, positions
from ..capture.conditions import all_hold

DTYPES = {"f64": torch.float64, "f32": torch.float32, "f16": torch.float16, "bf16": torch.bfloat16, "i64": torch.int64,
           "i32": torch.int32, "i8": torch.int8, "u8": torch.uint8, "bool": torch.bool}  # fmt: skip


def complete(interface: Mapping[str, Any], given: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """All inputs of a graph. States that are not given are those of an empty past; a mask hides nothing; positions follow
    the mask. Raises ``LookupError`` for what nobody can know, and for sizes that contradict each other."""
    sizes = _sizes(interface, given)
    states = {state["input"]: state for state in (interface.get("cache") or {}).get("states", ())}
    inputs = {}
    for item in interface["inputs"]:
        name = item["name"]
        if name in given:
            inputs[name] = given[name]
        elif name in states and states[name]["output"] is not None:
            inputs[name] = torch.zeros([_size(dim, sizes) for dim in item["dims"]], dtype=DTYPES[item["dtype"]])
        elif name == "attention_mask":
            inputs[name] = torch.ones([_size(dim, sizes) for dim in item["dims"]], dtype=DTYPES[item["dtype"]])
        elif name == "position_ids" and len(item["dims"]) == 2:
            mask = inputs.get("attention_mask", given.get("attention_mask"))
            whole = positions(mask) if mask is not None else torch.arange(sizes["total_sequence"])[None]
            inputs[name] = whole[:, -sizes["sequence"] :].expand(sizes["batch"], -1).contiguous()
        else:
            raise LookupError(f"nothing gives {name}")
    return inputs


def _sizes(interface: Mapping[str, Any], given: Mapping[str, torch.Tensor]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for item in interface["inputs"]:
        tensor = given.get(item["name"])
        if tensor is None:
            continue
        if tensor.dim() != len(item["dims"]):
            raise LookupError(f"{item['name']} has {tensor.dim()} dims instead of {len(item['dims'])}")
        for dim, size in zip(item["dims"], tensor.shape, strict=True):
            if isinstance(dim, str) and sizes.setdefault(dim, size) != size:
                raise LookupError(f"{dim} is both {sizes[dim]} and {size}")
    sizes.setdefault("past_sequence", 0)
    for name, parts in (interface.get("sums") or {}).items():
        if all(part in sizes for part in parts):
            total = sum(sizes[part] for part in parts)
            if sizes.setdefault(name, total) != total:
                raise LookupError(f"{name} is {sizes[name]} instead of {total}")
    sizes.setdefault("total_sequence", sizes["past_sequence"] + sizes.get("sequence", 0))
    for name, limits in (interface.get("dims") or {}).items():
        if name in sizes and not _is_within(sizes[name], limits):
            raise LookupError(f"the export is not for a {name} of {sizes[name]}")
    return sizes


def _size(dim: int | str, sizes: Mapping[str, int]) -> int:
    if isinstance(dim, int):
        return dim
    if dim not in sizes:
        raise LookupError(f"nothing says how long {dim} is")
    return sizes[dim]


def wired(wiring: list[dict[str, str]], source: str, target: str, outputs: Mapping[str, torch.Tensor],
          interface: Mapping[str, Any]) -> dict[str, torch.Tensor]:  # fmt: skip
    """Those inputs of ``target`` that outputs of ``source`` feed."""
    names = {item.get("path", item["name"]): item["name"] for item in interface["inputs"]}
    found = {}
    for wire in wiring:
        (one, output), (other, path) = wire["from"].split(".", 1), wire["to"].split(".", 1)
        if one == source and other == target and output in outputs and path in names:
            found[names[path]] = outputs[output]
    return found


def next_states(interface: Mapping[str, Any], outputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """The states of the next call."""
    states = (interface.get("cache") or {}).get("states", ())
    return {state["input"]: outputs[state["output"]] for state in states if state["output"] is not None}


# ---- which shapes an export promises -------------------------------------------------------------------------------


def promised_shapes(component: Component, shapes: list[Shape], interface: Mapping[str, Any]) -> list[Shape]:
    """``shapes`` brought within the dims that the user narrowed; each once, and without those that cannot be, or that the
    graphs are not for."""
    ranges = interface.get("dims") or {}
    conditions = [guard["condition"] for guard in interface.get("guards") or ()]
    found: list[Shape] = []
    for shape in shapes:
        shape = shape if component.given else _narrowed(component, shape, ranges)
        is_promised = _is_promised(component, shape, ranges) and all_hold(conditions, component.symbols(shape))
        if is_promised and shape not in found:
            found.append(shape)
    return found


def _narrowed(component: Component, shape: Shape, ranges: Mapping[str, Any]) -> Shape:
    sizes = component.symbols(shape)

    def within(name: str, size: int) -> int:
        limits = ranges.get(name) or {}
        low, high = limits.get("min"), limits.get("max")
        size = size if low is None else max(size, low)
        return size if high is None else min(size, high)

    sequence, past = within("sequence", shape.sequence), within("past_sequence", shape.past)
    if "encoder_sequence" in sizes:
        sequence += within("encoder_sequence", sizes["encoder_sequence"]) - sizes["encoder_sequence"]
    return Shape(within("batch", shape.batch), max(sequence, 1), past, shape.padding, shape.media)


def _is_promised(component: Component, shape: Shape, ranges: Mapping[str, Any]) -> bool:
    return all(_is_within(size, ranges.get(name) or {}) for name, size in component.symbols(shape).items())


def _is_within(size: int, limits: Mapping[str, Any]) -> bool:
    low, high = limits.get("min"), limits.get("max")
    return (low is None or size >= low) and (high is None or size <= high)


def single_sizes(interface: Mapping[str, Any], calls: list[Mapping[str, torch.Tensor]]) -> dict[str, int]:
    """Dims that callers may vary, by the word of the export, but that all ``calls`` have one size of: nobody knows whether
    they really vary."""
    seen: dict[str, set[int]] = {}
    fixed = {(item["input"], item["dim"]) for item in interface.get("specialized") or []}
    for inputs in calls:
        for item in interface["inputs"]:
            tensor = inputs.get(item["name"])
            if tensor is None:
                continue
            for axis, dim in enumerate(item["dims"]):
                if isinstance(dim, str) and (item["name"], axis) not in fixed:
                    seen.setdefault(dim, set()).add(tensor.shape[axis])
    ranges = interface.get("dims") or {}
    single = {dim: next(iter(sizes)) for dim, sizes in seen.items() if len(sizes) == 1}
    return {dim: size for dim, size in single.items()
            if (limits := ranges.get(dim) or {}).get("max") is None or limits.get("min") != limits["max"]}  # fmt: skip


def fits(inputs: Mapping[str, torch.Tensor], interface: Mapping[str, Any]) -> bool:
    """Whether a call has the sizes that the trace fixed although they may vary (``specialized`` of the interface)."""
    for item in interface.get("specialized") or []:
        tensor = inputs.get(item["input"])
        if tensor is not None and tensor.shape[item["dim"]] != item["value"]:
            return False
    return True
