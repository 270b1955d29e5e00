"""Runs on the meta device in which what depends on sizes and inputs alone has values."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")

from argosy.capture.patches import experts_implementation  # noqa: E402
from argosy.capture.shapes_only import ShapesOnly  # noqa: E402


def test_values_of_inputs_are_known_on_meta():
    lengths = torch.tensor([5, 9, 2])
    with ShapesOnly(), torch.no_grad():
        moved = lengths.to("meta")
        chunks = torch.ceil(moved / 4).long()
        assert chunks.tolist() == [2, 3, 1]
        assert [int(each) for each in moved] == [5, 9, 2]
        assert moved.cumsum(0)[-1].item() == 16
        assert torch.full((chunks.sum(),), 4, device="meta").shape == (6,)
        assert (moved > 3).nonzero().shape == (2, 1)
        assert torch.empty(16, 3, device="meta").split(moved.tolist())[1].shape == (9, 3)


def test_tensors_made_of_numbers_have_them():
    with ShapesOnly(), torch.no_grad():
        assert torch.tensor([[1, 4, 6]], device="meta").prod(-1).tolist() == [24]
        assert torch.zeros(2, device="meta").new_tensor([3, 4]).tolist() == [3.0, 4.0]
        assert torch.arange(4, device="meta").view(2, 2).t().tolist() == [[0, 2], [1, 3]]


def test_writes_change_values_of_all_views():
    with ShapesOnly(), torch.no_grad():
        table = torch.zeros(2, 3, dtype=torch.long, device="meta")
        row = table[1]
        table[:, 1] = torch.tensor([7, 8], device="meta")
        assert row.tolist() == [0, 8, 0]


def test_what_depends_on_weights_is_ones():
    weight = torch.empty(3, device="meta")
    with ShapesOnly(), torch.no_grad():
        assert weight.tolist() == [1, 1, 1] and (weight.sum() > 2).item() is True
        known = torch.zeros(3, device="meta")
        known.add_(weight)
        assert known.tolist() == [1, 1, 1], "its values are no longer known"
        assert torch.rand(2, device="meta").tolist() == [1, 1]


def test_descriptions_on_the_cpu_meet_tensors_on_meta():
    with ShapesOnly(), torch.no_grad():
        places = torch.arange(6, device="meta")
        bounds = torch.tensor([2, 6])
        assert (places[None, :] >= bounds[:, None]).sum(0).tolist() == [0, 0, 1, 1, 1, 1]


def test_large_tensors_have_no_values():
    with ShapesOnly() as shapes, torch.no_grad():
        assert torch.zeros(1 << 12, 1 << 12, device="meta").sum().item() == 1
        assert torch.arange(1 << 30, device="meta")[5].item() == 1
        assert not shapes._values


class _Part(torch.nn.Module):
    """What transformers' models are to the choice of experts."""

    def __init__(self, inside=None, can=True):
        super().__init__()
        self.inside, self.can, self.chosen = inside, can, "first"

    def _can_set_experts_implementation(self):
        return self.can

    def get_experts_implementation(self):
        return self.chosen

    def set_experts_implementation(self, name):
        assert self.can
        self.chosen = name


def test_experts_are_chosen_in_parts_of_models_that_have_none():
    language = _Part()
    model = _Part(inside=language, can=False)
    with experts_implementation(model, "batched_mm"):
        assert (model.chosen, language.chosen) == ("first", "batched_mm")
    assert language.chosen == "first"
