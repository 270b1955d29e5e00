"""What a trace relied on is kept: as ranges of named dims where it can be, as conditions otherwise, and nothing else."""

from __future__ import annotations

import json
import zipfile

import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from captured import capture, differences, twin_config  # noqa: E402
from thorough import thorough  # noqa: E402

from argosy.check.captures import compare, edge_shapes, within  # noqa: E402
from argosy.capture.components import Shape  # noqa: E402
from argosy.capture.conditions import all_hold  # noqa: E402
from argosy.capture.dims import Dims  # noqa: E402
from argosy.capture.guards import kept_guards, within_guards  # noqa: E402
from argosy.capture.session import open_session, reaching, require_limits, trace_session  # noqa: E402
from argosy.structures import named_leaves  # noqa: E402
from argosy.check.calls import expected_call  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

NAMES = {"x": {0: "batch", 1: "sequence"}, "past": {0: "batch", 1: "past_sequence"}, "mask": {1: "total_sequence"}}
SIZES = {"batch": 3, "sequence": 19, "past_sequence": 23, "total_sequence": 42}
DIMS = Dims(
    NAMES,
    {"batch": (1, None), "sequence": (1, None), "past_sequence": (0, None), "total_sequence": (1, None)},
    {"total_sequence": ("past_sequence", "sequence")},
)


def guards_of(branch):
    """The guards of a module whose code does ``branch(x, past, mask)``."""

    class Branching(torch.nn.Module):
        def forward(self, x, past, mask):
            return branch(x, past, mask)

    given = {"x": torch.zeros(3, 19), "past": torch.zeros(3, 23), "mask": torch.zeros(3, 42)}
    auto = {name: {axis: torch.export.Dim.AUTO for axis in axes} for name, axes in NAMES.items()}
    program = torch.export.export(Branching(), (), given, dynamic_shapes=auto, strict=False)
    return kept_guards(program, DIMS)


def in_chunks(x):
    """Means of chunks of four, one for each token, as state-space layers pad and cut."""
    padding = (4 - x.shape[1] % 4) % 4
    chunks = torch.nn.functional.pad(x, (0, padding)).reshape(x.shape[0], -1, 4)
    means = chunks.mean(dim=-1, keepdim=True).expand(chunks.shape).reshape(x.shape[0], -1)
    return means[:, : x.shape[1]] if padding > 0 else means


def test_an_upper_bound_becomes_a_range():
    (guard,) = guards_of(lambda x, past, mask: x * 2 if x.shape[1] > 100 else x * 3)
    assert (guard.condition, guard.dim, guard.low, guard.high) == ("sequence <= 100", "sequence", None, 100)
    assert guard.code == "L['x'].size()[1] <= 100"
    assert guard.where.startswith("test_guards.py:")
    assert within_guards(DIMS, [guard]).ranges["sequence"] == (1, 100)


def test_what_holds_for_some_sizes_in_between_is_no_range():
    """SEW pads where a length does not come out even: its sounds have lengths of one kind and of the other side by side."""
    (guard,) = guards_of(lambda x, past, mask: x * (2 if (x.shape[1] // 2) * 2 < x.shape[1] else 3))
    assert guard.dim == ""
    assert all_hold([guard.condition], {"sequence": 21}) and not all_hold([guard.condition], {"sequence": 20})


def test_a_lower_bound_becomes_a_range():
    (guard,) = guards_of(lambda x, past, mask: x * 2 if x.shape[1] >= 10 else x * 3)
    assert (guard.condition, guard.low) == ("sequence >= 10", 10)


@pytest.mark.parametrize(
    "branch",
    [
        lambda x, past, mask: x * (2 if mask.shape[1] <= 64 else 3),
        lambda x, past, mask: x * (2 if x.shape[1] + past.shape[1] <= 64 else 3),
        lambda x, past, mask: x * (2 if (x.shape[1] + past.shape[1] + 3) // 4 <= 16 else 3),
    ],
)
def test_a_sum_is_called_by_its_name_and_bounds_its_parts(branch):
    (guard,) = guards_of(branch)
    assert guard.dim == "total_sequence" and guard.high in (61, 64)
    assert guard.code == f"L['mask'].size()[1] <= {guard.high}"
    ranges = within_guards(DIMS, [guard]).ranges
    assert ranges["sequence"] == (1, guard.high) and ranges["past_sequence"] == (0, guard.high - 1)


def test_of_two_bounds_the_tighter_one_is_kept():
    (guard,) = guards_of(lambda x, past, mask: x * (2 if x.shape[1] <= 100 else 3) * (2 if x.shape[1] < 50 else 3))
    assert guard.condition == "sequence <= 49"


@pytest.mark.parametrize(
    ("branch", "condition"),
    [
        (lambda x, past, mask: x * (2 if x.shape[1] % 4 == 3 else 3), "(sequence % 4) == 3"),
        (lambda x, past, mask: x * (2 if x.shape[1] % 4 == 1 else 3), "(sequence % 4) != 1"),
        (lambda x, past, mask: x * (2 if x.shape[0] == 7 else 3), "batch != 7"),
        (lambda x, past, mask: x * (2 if x.shape[1] < past.shape[1] else 3), "past_sequence > sequence"),
    ],
)
def test_what_is_no_range_is_a_condition(branch, condition):
    (guard,) = guards_of(branch)
    assert not guard.dim
    for sizes in (SIZES, {**SIZES, "sequence": 24}, {**SIZES, "batch": 7}, {**SIZES, "sequence": 21}):
        assert all_hold([guard.condition], sizes) == all_hold([condition], sizes), guard.condition
    assert "L['x']" in guard.code


@pytest.mark.parametrize(
    "branch",
    [
        lambda x, past, mask: torch.cat([past, x], dim=1) + mask,  # sizes that are equal by their names
        lambda x, past, mask: x if mask.shape[1] == x.shape[1] + past.shape[1] else x * 2,
        lambda x, past, mask: mask[:, -x.shape[1] :] + x,  # cut within what a sum is known to be
        lambda x, past, mask: x.reshape(-1).reshape(x.shape).transpose(0, 1).contiguous(),  # memory
        lambda x, past, mask: x * (2 if x.shape[0] == 1 else 3) * (2 if past.shape[1] == 0 else 3),  # none and one
        lambda x, past, mask: x.reshape(x.shape[0], -1, 19)[:, 0] if False else x.expand(3, *x.shape)[0],
        lambda x, past, mask: in_chunks(x),  # what is padded is cut off, at a multiple nothing
    ],
)
def test_what_always_holds_is_no_guard(branch):
    assert guards_of(branch) == []


def test_a_graph_that_pads_is_checked_at_a_multiple(tmp_path):
    session, graphs = capture(twin_config("longt5"), tmp_path)
    component = session.components[0]
    (shape,) = component.shapes
    block = session.twin.config.local_radius + 1
    assert component.symbols(shape)["encoder_sequence"] % block == 0
    assert session.traced[0].guards == []
    assert compare(component, graphs[component.name], session.twin, shape).ok


def test_a_table_that_is_cut_is_a_limit():
    table = torch.zeros(1, 512)
    (guard,) = guards_of(lambda x, past, mask: x + table[:, : x.shape[1]])
    assert guard.condition == "sequence <= 512"


def test_conditions_are_computed_and_never_executed():
    assert all_hold(["total_sequence <= 24 or past_sequence == 0"], {"total_sequence": 30, "past_sequence": 0})
    assert not all_hold(["total_sequence <= 24 or past_sequence == 0"], {"total_sequence": 30, "past_sequence": 3})
    assert not all_hold(["(pixel_values.3 // 4) % 2 == 0"], {"pixel_values.3": 4})
    assert not all_hold(["min(64, -a + 100) == 64"], {"a": 40})
    # What cannot be told counts as met.
    assert all_hold(["unknown > 3", "__import__('os').abort()", "a.b(c", "(1).bit_length() == 9"], {"a": 1})


# ---- models --------------------------------------------------------------------------------------------------------


def components_of(folder):
    with zipfile.ZipFile(folder / "model.capture") as archive:
        return {each["name"]: each for each in json.loads(archive.read("capture.json"))["components"]}


def test_block_sparse_attention_is_right_up_to_where_it_begins(tmp_path):
    config = twin_config("big_bird")
    config.attention_type = "block_sparse"
    limit = (5 + 2 * config.num_random_blocks) * config.block_size
    session, graphs = capture(config, tmp_path)
    (model,) = components_of(tmp_path).values()
    assert model["dims"]["sequence"] == {"min": 1, "max": limit}
    (guard,) = model["guards"]
    assert guard["condition"] == f"sequence <= {limit}" and "modeling_big_bird.py:" in guard["where"]
    (traced,) = session.traced
    inside, beyond = Shape(1, limit, 1, 0), Shape(1, limit + 8, 1, 0)
    assert within(traced, [inside, beyond]) == [inside]

    # A fresh model each: the first short text turns sparse attention off for good.
    def difference(shape):
        fresh = open_session(config).twin
        fresh.bert.set_attention_type("block_sparse")
        return compare(session.components[0], graphs["model"], fresh, shape)

    assert difference(inside).ok
    assert not difference(beyond).ok  # why the limit is there


def test_a_range_beyond_a_limit_is_refused_and_told():
    config = twin_config("big_bird")
    session = open_session(config, shape="sequence=1..100")
    trace_session(session)
    with pytest.raises(ExportError, match=r"sequence=1\.\.100.*sequence <= 88.*modeling_big_bird\.py") as raised:
        require_limits(session)
    assert "sequence=1..88" in raised.value.hint and "sequence=89..100" in raised.value.hint
    session = open_session(config, shape="sequence=1..88")
    trace_session(session)
    require_limits(session)


@pytest.mark.parametrize("family", ["deepseek_v32", thorough("glm_moe_dsa")])
def test_sparse_attention_over_picked_tokens_is_right_on_both_sides(family, tmp_path):
    """The trace is where all tokens are picked, as that of the full model is; the graph has the smaller of both numbers."""
    config = twin_config(family)
    picked = config.index_topk
    session, graphs = capture(config, tmp_path)
    shapes = [Shape(1, 1, 0, 0), Shape(2, 4, 20, 0), Shape(2, 4, picked - 4, 0), Shape(2, 1, picked, 0)]
    assert within(session.traced[0], shapes) == shapes
    assert differences(session, graphs, shapes) == []
    assert sum(map(len, (traced.guards for traced in session.traced))) == 0
    # Tokens whose scores are equal, as many are that a ReLU made zero, are picked by their place: eager in two pieces is not
    # eager at once, so the graph is held against the same two pieces.
    component, beyond = session.components[-1], Shape(2, 5, picked + 20, 0)
    inputs = component.inputs(session.twin, beyond)
    with torch.no_grad():
        expected = named_leaves(component.run(session.twin, session.twin.forward, inputs))
    found = graphs[component.name](expected_call(component, session.twin, beyond).inputs)
    for name, want in expected.items():
        assert torch.allclose(found[name], want, atol=1e-5), name


@pytest.mark.parametrize("family", ["llama", "gemma3_text", *map(thorough, ("bart", "mamba", "wav2vec2"))])
def test_families_without_branches_have_no_limits(family, tmp_path):
    session, _ = capture(twin_config(family), tmp_path)
    for traced in session.traced:
        assert traced.guards == [], traced.component.name
        shapes = edge_shapes(traced.component, (8,))
        assert within(traced, shapes) == shapes


def test_ranges_of_sums_are_not_those_of_the_trace(tmp_path):
    """BLOOM: torch wants its total length to be four at least, since that is what was traced."""
    capture(twin_config("bloom"), tmp_path)
    with zipfile.ZipFile(next(tmp_path.glob("*.capture"))) as archive:
        ranges = json.loads(archive.read("graphs/decode.json"))["range_constraints"]
    assert ranges
    assert all(name.isidentifier() for name in ranges)


def test_a_range_beyond_a_limit_is_traced_at_its_own_sizes():
    """So code that branches on a length takes the other way."""
    component = open_session(twin_config("llama")).components[0]
    shape = Shape(2, 19, 23, 3)
    assert reaching(component, shape, {}) == reaching(component, shape, {"sequence": (1, 64), "batch": (1, 1)}) == shape
    for limits in ({"sequence": (705, 4096)}, {"total_sequence": (4097, None)}, {"past_sequence": (50, 51)}):
        sizes = component.symbols(reaching(component, shape, limits))
        assert all(low <= sizes[name] <= (high or sizes[name]) for name, (low, high) in limits.items())


def test_a_number_that_is_made_of_a_size_is_no_limit(tmp_path):
    """Moonshine computes the length of its mask by ``int``, which would fix the length of the sound."""
    session, graphs = capture(twin_config("moonshine"), tmp_path)
    assert [guard.condition for guard in session.traced[0].guards] == ["input_values.1 >= 191"]
    assert not differences(session, graphs, [Shape(2, 19, 3, 3, media=media) for media in (0, 1)])
