"""Programs made by hand (write_programs.cpp), run in ExecuTorch's runtime: the writer without anything before it."""

from __future__ import annotations

import json
import os
import random
import subprocess
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = [REPOSITORY / "build" / preset / "apps/cli/argosy" for preset in ("release", "dev")]
PROGRAM = os.environ.get("ARGOSY_BIN") or next((str(path) for path in PROGRAMS if path.exists()), "argosy")
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


def outcome(program: bytes, path: Path) -> str:
    """What becomes of a program, loaded and run in a process of its own: "ran", "error", or the signal that ended it."""
    child = os.fork()
    if child == 0:
        try:
            quiet = os.open(os.devnull, os.O_WRONLY)
            os.dup2(quiet, 1)
            os.dup2(quiet, 2)
            path.write_bytes(program)
            loaded = portable._load_program(
                str(path), program_verification=portable.Verification.InternalConsistency
            )
            loaded.load_method("forward")([torch.rand(3, 8)])
            os._exit(0)
        except BaseException:
            os._exit(1)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return f"signal {os.WTERMSIG(status)}"
    return "ran" if os.WEXITSTATUS(status) == 0 else "error"


def test_damaged_programs_end_in_an_error(programs: Path, tmp_path: Path) -> None:
    whole = (programs / "add.pte").read_bytes()
    assert outcome(whole, tmp_path / "x.pte") == "ran"
    for size in range(0, len(whole), len(whole) // 12):
        assert outcome(whole[:size], tmp_path / "x.pte") == "error", size
    # Of the tables, which end where the header says; wrong weights are nobody's to find.
    tables = int.from_bytes(whole[16:24], "little")
    dice = random.Random(1)
    outcomes: Counter[str] = Counter()
    for _ in range(40):
        damaged = bytearray(whole)
        damaged[dice.randrange(8, tables)] ^= 1 << dice.randrange(8)
        outcomes[outcome(bytes(damaged), tmp_path / "x.pte")] += 1
    assert set(outcomes) <= {"ran", "error"} and outcomes["error"] > 10, outcomes


def inspect(*arguments: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run([PROGRAM, "inspect", *map(str, arguments)], capture_output=True, text=True)


def test_inspect_shows_what_a_program_consists_of(programs: Path, tmp_path: Path) -> None:
    page = tmp_path / "memory.html"
    text = inspect(programs / "add.pte", "--html", page)
    assert text.returncode == 0, text.stderr
    for line in ("aten::add.out", "f32[≤4, ≤8]", "get_max_seq_len  128", "get_eos_ids      2, 3", "256 B"):
        assert line in text.stdout
    drawing = page.read_text()
    assert drawing.count("<rect") == 2 and "peak 256 B" in drawing and "<script" not in drawing
    report = json.loads(inspect(programs / "state.pte", "--json").stdout)
    (method,) = report["methods"]
    assert {entry["kernel"]: entry["count"] for entry in method["kernels"]} == {
        "aten::copy_": 2,
        "aten::add.out": 1,
        "aten::add.Scalar_out": 1,
    }
    assert method["states"] == 2 and method["arenas"][1] == 32
    assert [entry["key"] for entry in report["data"]] == ["sum"]


def test_inspect_refuses_damaged_programs(programs: Path, tmp_path: Path) -> None:
    path = tmp_path / "x.pte"
    path.write_bytes((programs / "add.pte").read_bytes()[:500])
    result = inspect(path)
    assert result.returncode == 1 and "corrupt" in result.stderr
