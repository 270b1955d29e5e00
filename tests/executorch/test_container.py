"""Programs made by hand (write_programs.cpp), run in ExecuTorch's runtime: the writer without anything before it."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")

REPOSITORY = Path(__file__).parents[2]
WRITERS = [REPOSITORY / "build" / preset / "tests/argosy_write_programs" for preset in ("release", "dev")]
WRITER = next((path for path in WRITERS if path.exists()), None)

pytestmark = pytest.mark.skipif(WRITER is None, reason="the writer is not built: cmake --build --preset release")


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    subprocess.run([WRITER, folder], check=True)
    return folder


def load(programs: Path, name: str):
    """The module of a program, with its data where it is beside it, verified as strictly as the runtime can."""
    data = programs / f"{name}.ptd"
    return portable._load_for_executorch(
        str(programs / f"{name}.pte"),
        str(data) if data.exists() else None,
        program_verification=portable.Verification.InternalConsistency,
    )


@pytest.mark.parametrize("name", ["add", "add_beside"])
def test_sizes_vary_up_to_their_bound(programs: Path, name: str) -> None:
    module = load(programs, name)
    for rows in (4, 1, 3):
        x = torch.rand(rows, 8)
        (result,) = module.run_method("forward", (x,))
        assert torch.equal(result, x + torch.arange(8.0))


def test_what_exceeds_a_bound_is_an_error(programs: Path) -> None:
    module = load(programs, "add")
    with pytest.raises(RuntimeError):
        module.run_method("forward", (torch.rand(5, 8),))
    with pytest.raises(RuntimeError):
        module.run_method("forward", (torch.rand(4, 8).double(),))


def test_constants_are_methods(programs: Path) -> None:
    module = load(programs, "add")
    assert module.run_method("get_max_seq_len", ()) == [128]
    assert module.run_method("use_kv_cache", ()) == [True]
    assert module.run_method("get_scale", ()) == [0.125]
    assert module.run_method("get_eos_ids", ()) == [2, 3]


@pytest.mark.parametrize("name", ["state", "state_beside"])
def test_states_persist_between_calls(programs: Path, name: str) -> None:
    module = load(programs, name)
    expected = torch.tensor([1.0, 2, 3, 4])
    for call in range(3):
        x = torch.rand(4)
        expected = expected + x
        total, calls = module.run_method("forward", (x,))
        assert torch.equal(total, expected)
        assert calls.item() == call + 1
    # A module of its own begins anew.
    total, calls = load(programs, name).run_method("forward", (torch.zeros(4),))
    assert total.tolist() == [1, 2, 3, 4] and calls.item() == 1


@pytest.mark.parametrize("name", ["shared", "shared_beside"])
def test_data_of_several_shapes_and_uses(programs: Path, name: str) -> None:
    module = load(programs, name)
    for _ in range(2):
        joined, constants = module.run_method("forward", (torch.tensor([[1.0, 2], [3, 4]]),))
        assert joined.tolist() == [1, 2, 3, 4, 10, 20, 30, 40]
        assert constants.tolist() == [[10, 20], [30, 40], [10, 20], [30, 40]]


def test_jumps_back(programs: Path) -> None:
    module = load(programs, "loop")
    for start, end in ((3.0, 192.0), (60.0, 120.0), (1000.0, 2000.0)):
        (result,) = module.run_method("forward", (torch.tensor([start]),))
        assert result.item() == end


def test_data_beside_is_missed(programs: Path) -> None:
    module = portable._load_for_executorch(str(programs / "add_beside.pte"))
    with pytest.raises(RuntimeError):
        module.run_method("forward", (torch.rand(4, 8),))
