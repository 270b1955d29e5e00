"""Mixtures of experts as plain ATen.

transformers multiplies tokens with the weights of their experts by an op of its own while a model is traced; in the program
it becomes ``aten._grouped_mm``, which every torch since 2.9 has.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import torch

from ..capture.swap import replaced
from ..patching import register_fx_node_fix, register_patch

#: Row lengths of both operands of ``aten._grouped_mm`` have to be multiples of this.
_ALIGNMENT_BYTES = 16
#: How experts can be computed without asking which of them have tokens.
_TRACEABLE = ("grouped_mm", "batched_mm")
#: What the patch and the fix below are registered for: live models. Captures, which have those of "dynamo", keep the op.
EXPERTS = "experts"
#: Where transformers 5 keeps which of them a model uses.
_SETTING = "_experts_implementation_internal"


@register_patch(
    EXPERTS,
    "transformers.integrations.moe._can_use_grouped_mm",
    reason="one op for all dtypes and sizes, which the fix below replaces; torch's own has a fake kernel for bfloat16 alone",
)
def _always_use_the_fallback(original: Callable[..., bool]) -> Callable[..., bool]:
    return lambda input, weight, offs: False


@register_fx_node_fix(EXPERTS)
def _use_torch_s_grouped_mm(module: torch.fx.GraphModule, node: torch.fx.Node) -> bool:
    """``grouped_mm_fallback(input, weight, offsets)`` becomes ``aten._grouped_mm``. Rows behind the last offset, which the
    one sets to zero and the other leaves undefined, exist only where experts are spread over machines."""
    if str(node.target) != "transformers.grouped_mm_fallback.default":
        return False
    rows, weight, offsets = _arguments(node)
    graph = module.graph
    with graph.inserting_before(node):
        if not (_is_aligned(rows) and _is_aligned(weight)):
            depth, width = weight.meta["val"].shape[-2:]
            more_depth, more_width = _to_alignment(weight, depth), _to_alignment(weight, width)
            rows = _call(graph, torch.ops.aten.constant_pad_nd.default, rows, [0, more_depth])
            weight = _call(graph, torch.ops.aten.constant_pad_nd.default, weight, [0, more_width, 0, more_depth])
        node.target = torch.ops.aten._grouped_mm.default
        node.args, node.kwargs = (rows, weight, offsets), {}
    width, wanted = weight.meta["val"].shape[-1], node.meta["val"].shape[-1]
    if width != wanted:
        with graph.inserting_after(node):
            kept = graph.call_function(torch.ops.aten.slice.Tensor, (node, 1, 0, wanted))
        kept.meta = dict(node.meta)
        node.replace_all_uses_with(kept, delete_user_cb=lambda user: user is not kept)
        with node.meta["val"].fake_mode:
            node.meta["val"] = torch.empty(*node.meta["val"].shape[:-1], width, dtype=node.meta["val"].dtype)
    return True


def _arguments(node: torch.fx.Node) -> list[torch.fx.Node]:
    names = ("input", "weight", "offs")
    return [node.args[i] if i < len(node.args) else node.kwargs[name] for i, name in enumerate(names)]


def _is_aligned(node: torch.fx.Node) -> bool:
    value = node.meta["val"]
    strides = [stride for stride in value.stride()[-2:] if not (isinstance(stride, int) and stride == 1)]
    return all(isinstance(s, int) and s * value.element_size() % _ALIGNMENT_BYTES == 0 for s in strides)


def _to_alignment(node: torch.fx.Node, size: int) -> int:
    elements = _ALIGNMENT_BYTES // node.meta["val"].element_size()
    return -size % elements


def _call(graph: torch.fx.Graph, op: Any, tensor: torch.fx.Node, *arguments: Any) -> torch.fx.Node:
    result = graph.call_function(op, (tensor, *arguments))
    value = tensor.meta["val"]
    with value.fake_mode:
        result.meta["val"] = op(value, *arguments)
    return result


@contextlib.contextmanager
def traceable_experts(model: torch.nn.Module) -> Iterator[None]:
    """Experts that are computed one after the other, as their tokens come, are computed by groups for a with block."""
    found = (getattr(module, "config", None) for module in model.modules())
    configs = {id(config): config for config in found if getattr(config, _SETTING, None) not in (None, *_TRACEABLE)}
    with contextlib.ExitStack() as stack:
        for config in configs.values():
            stack.enter_context(replaced(config, _SETTING, _TRACEABLE[0]))
        yield
