"""Which jobs may start while others run."""

from __future__ import annotations

from argosy.sweep.jobs import Limits, Needs, parse_job
from argosy.sweep.order import Order, Waiting


def waiting(name: str, configuration: str, capture: str = "", check: str = "", limits: Limits | None = None) -> Waiting:
    needs = Needs(configuration, capture or f"{configuration}/onnx", check or f"{configuration}/onnx/check")
    return Waiting(parse_job(f'{{"model": "{name}"}}', ""), name, limits or Limits(), needs=needs)


def started(order: Order) -> list[Waiting]:
    """All that may start now."""
    found = []
    while each := order.next():
        found.append(each)
    return found


def names(found: list[Waiting]) -> list[str]:
    return [each.key for each in found]


GOOD = {"status": "right", "reason": ""}


def test_one_of_a_configuration_goes_first_and_the_others_follow_together() -> None:
    order = Order([waiting("a1", "a"), waiting("a2", "a"), waiting("b1", "b"), waiting("a3", "a")])
    first = started(order)
    assert names(first) == ["a1", "b1"] and len(order) == 2
    order.ended(first[0], GOOD)
    assert names(started(order)) == ["a2", "a3"]


def test_another_check_of_a_captured_configuration_is_made_once_too() -> None:
    order = Order([waiting("a1", "a"), waiting("a2", "a", check="other"), waiting("a3", "a", check="other")])
    (first,) = started(order)
    order.ended(first, GOOD)
    assert names(started(order)) == ["a2"]


def test_where_the_first_one_fails_in_its_own_the_next_one_leads() -> None:
    order = Order([waiting("a1", "a"), waiting("a2", "a"), waiting("a3", "a")])
    (first,) = started(order)
    order.ended(first, {"status": "killed", "reason": "", "captured": False})
    (second,) = started(order)
    order.ended(second, {"status": "failed", "reason": "no such weight", "captured": True})
    # Its capture is made, its check is not.
    (third,) = started(order)
    assert third.leads == ("a/onnx/check",) and not third.refused


def test_what_cannot_be_captured_is_refused_for_its_backend() -> None:
    order = Order([waiting("a1", "a"), waiting("a2", "a"), waiting("a3", "a", "a/pt2", "a/pt2/check")])
    (first,) = started(order)
    order.ended(first, {"status": "failed", "reason": "it branches", "captured": False})
    second, third = started(order)
    assert second.refused == "its configuration was not captured: it branches" and not third.refused


def test_what_no_model_can_be_made_of_is_refused_for_all() -> None:
    order = Order([waiting("a1", "a"), waiting("a2", "a", "a/pt2", "a/pt2/check")])
    (first,) = started(order)
    order.ended(first, {"status": "failed", "reason": "no such type", "captured": False, "step": "twin"})
    (second,) = started(order)
    assert second.refused


def test_a_capture_over_its_limits_is_tried_with_others_and_after_errors_of_the_machine() -> None:
    more = Limits(memory=1 << 40)
    order = Order([waiting("a1", "a"), waiting("a2", "a"), waiting("a3", "a", limits=more), waiting("b1", "b"), waiting("b2", "b")])
    first, other = started(order)
    order.ended(first, {"status": "over memory", "reason": "more than 1 GB", "captured": False})
    order.ended(other, {"status": "failed", "reason": "no network", "captured": False, "code": "io"})
    found = {each.key: bool(each.refused) for each in started(order)}
    assert found == {"a2": True, "a3": False, "b2": False}


def test_what_is_tried_again_comes_last_and_alone() -> None:
    order = Order([waiting("a", "a"), waiting("b", "b"), waiting("c", "c")])
    first, second, third = started(order)
    order.ended(first, {"status": "killed", "reason": "", "captured": True})
    order.again(first)
    order.ended(second, {"status": "killed", "reason": "", "captured": True})
    order.again(second)
    assert not started(order) and len(order) == 2
    order.ended(third, GOOD)
    (again,) = started(order)
    assert again is first and again.attempt == 2
    order.ended(again, GOOD)
    assert names(started(order)) == ["b"] and len(order) == 0
