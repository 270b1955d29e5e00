"""Branches and loops."""

from __future__ import annotations

import torch
from op_case import Rows, b8, exactly, f32, i64

ROWS = Rows("control_flow")
fn = ROWS.fn

COND, LOOP = "higher_order.cond", "higher_order.while_loop"
NO, YES = b8(v=exactly(False)), b8(v=exactly(True))
for label, flag in (("true", YES), ("false", NO)):
    fn(COND, f"on a flag that is {label}", lambda p, x: torch.cond(p, lambda x: x + 1, lambda x: x * 2, (x,)), flag, f32("b", 4))
fn(COND, "on a value", lambda x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)), f32("b", 4))
fn(COND, "on a size", lambda x: torch.cond(x.shape[0] > 4, lambda x: x + 1, lambda x: x - 1, (x,)), f32("b", 4))
fn(COND, "two results, none of them an input", lambda p, x, y: torch.cond(p, lambda x, y: (x + y, x * 2), lambda x, y: (x - y, y * 3), (x, y)), NO, f32("b", 4), f32("b", 4))
fn(COND, "one in another", lambda p, x: torch.cond(p, lambda x: torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,)), lambda x: x * 2, (x,)), YES, f32("b", 4))
fn(COND, "with constants", lambda p, x: torch.cond(p, lambda x: x + torch.ones(4), lambda x: x.clone(), (x,)), YES, f32("b", 4))


def _count(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    def condition(i: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        return i < 3

    def body(i: torch.Tensor, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return i + 1, x * 2

    return torch._higher_order_ops.while_loop(condition, body, (torch.zeros((), dtype=torch.int64), x))


def _until(x: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, ...]:
    def condition(total: torch.Tensor) -> torch.Tensor:
        return total.sum() < 20.0

    return torch._higher_order_ops.while_loop(condition, lambda total: (total + 1,), (x.abs(),))


def _over_tokens(x: torch.Tensor) -> torch.Tensor:
    """A recurrence over the second dim, as linear attention has it."""

    def condition(i: torch.Tensor, state: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        return i < x.shape[1]

    def body(i: torch.Tensor, state: torch.Tensor, out: torch.Tensor) -> tuple[torch.Tensor, ...]:
        token = torch.index_select(x, 1, i.reshape(1)).squeeze(1)
        state = 0.5 * state + token
        return i + 1, state, out.scatter(1, i.reshape(1, 1, 1).expand(x.shape[0], 1, 4), state[:, None])

    start = torch.zeros((), dtype=torch.int64)
    return torch._higher_order_ops.while_loop(condition, body, (start, torch.zeros_like(x[:, 0]), torch.zeros_like(x)))[2]


fn(LOOP, "a fixed count", _count, f32("b", 4))
fn(LOOP, "until a sum is reached", _until, f32(4), i64())
fn(LOOP, "over tokens", _over_tokens, f32("b", "s", 4))


def _states(x: torch.Tensor, gate: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """A recurrence with two sequences, a state and a constant."""
    from argosy.capture.patches.recurrent import scan

    def step(state: torch.Tensor, token: torch.Tensor, gate: torch.Tensor, scale: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = state * gate.sigmoid() + token * scale
        return state, state.tanh()

    scale = torch.arange(4.0)
    (last,), outputs = scan(step, (torch.zeros_like(x[:, 0]),), (x.movedim(1, 0), gate.movedim(1, 0)), (scale,))
    return last, outputs.movedim(0, 1)


def _two_states(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
    from argosy.capture.patches.recurrent import scan

    def step(total: torch.Tensor, largest: torch.Tensor, token: torch.Tensor) -> tuple[torch.Tensor, ...]:
        total, largest = total + token, torch.maximum(largest, token)
        return total, largest, total - largest

    start = (torch.zeros_like(x[0]), torch.full_like(x[0], -100.0))
    (total, largest), outputs = scan(step, start, (x,))
    return total, largest, outputs


SCAN = "higher_order.scan"
fn(SCAN, "over tokens", _states, f32("b", "s", 4), f32("b", "s", 4))
fn(SCAN, "two states", _two_states, f32("s", 4))


def _no_grad(x: torch.Tensor) -> torch.Tensor:
    with torch.enable_grad():
        y = x * x + 1
    return y * 2


fn("higher_order.wrap_with_set_grad_enabled", "", _no_grad, f32("b", 4))


def _autocast_off(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", enabled=False):
        y = x.float() @ x.float().transpose(-1, -2)
    return y + 1


fn("higher_order.wrap_with_autocast", "off", _autocast_off, f32("b", 4))


def _autocast_on(x: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        y = x @ x.transpose(-1, -2) + x.sum()
    return y + 1


fn("higher_order.wrap_with_autocast", "on", _autocast_on, f32("b", 4), tolerance=2e-2)
