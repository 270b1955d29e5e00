"""Models of the corpus, all of them if ARGOSY_E2E_ALL is set: exported by torch, read, verified, printed, parsed and written
back by `argosy opt`, then loaded by torch again. The written archive must give the same bits as the original, at two sizes of
input. Some go through passes on the way."""

from __future__ import annotations

import os
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from export_models import export_all
from models import ALL_CASES, LOWERED, SOME_CASES
from round_trip import RoundTrip
from worker_pool import run_jobs

NAMES = [case.name for case in (ALL_CASES if os.environ.get("ARGOSY_E2E_ALL") else SOME_CASES)]


@pytest.mark.parametrize("model", NAMES)
def test_written_archive_is_bit_equal(model: str, round_trip: RoundTrip) -> None:
    row = round_trip.rows[model]
    assert not row.error, row.error
    assert row.values > 0


# Archives of torch say little of who shares memory with whom, so schemas decide.
@pytest.mark.parametrize("lowered_model", LOWERED)
def test_lowered_archive_is_bit_equal(lowered_model: str, lowered: RoundTrip) -> None:
    row = lowered.rows[lowered_model]
    assert not row.error, row.error
    assert row.values > 0


def flip_last_bit(data: bytes) -> bytes:
    return data[:-1] + bytes([data[-1] ^ 1])


def replacing(old: bytes, new: bytes) -> Callable[[bytes], bytes]:
    return lambda data: data.replace(old, new, 1)


# By what is changed in an archive: the entry, how its bytes change, and what the comparison must then say.
CHANGES = {
    "nothing": ("", bytes, ""),
    "weight": ("data/weights/weight_1", flip_last_bit, "weights, turned: 1 of 256 bytes differ"),
    "op": ("models/model.json", replacing(b"aten.sub.Tensor", b"aten.add.Tensor"), "output 0: "),
    "range": ("models/model.json", replacing(b'"max_val": null', b'"max_val": 9'), "range_constraints: "),
}


def change_entry(archive: Path, changed: Path, entry: str, change: Callable[[bytes], bytes]) -> None:
    with zipfile.ZipFile(archive) as source, zipfile.ZipFile(changed, "w") as target:
        for info in source.infolist():
            data = source.read(info)
            target.writestr(info.filename, change(data) if entry and info.filename.endswith(entry) else data)


@pytest.fixture(scope="module")
def comparisons(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict]:
    """What the comparison says of one archive and its changed copies."""
    directory = tmp_path_factory.mktemp("changed")
    assert "error" not in export_all(directory, ["tied_weights"], 1)["tied_weights"]
    original = directory / "tied_weights.pt2"
    requests = {}
    for name, (entry, change, _) in CHANGES.items():
        changed = directory / f"{name}.pt2"
        change_entry(original, changed, entry, change)
        inputs = directory / "tied_weights.inputs.pt"
        requests[name] = {"original": str(original), "written": str(changed), "inputs": str(inputs)}
    return run_jobs([sys.executable, str(Path(__file__).with_name("compare_archives.py"))], requests, 1)


@pytest.mark.parametrize("changed", CHANGES)
def test_comparison_notices_a_change(changed: str, comparisons: dict[str, dict]) -> None:
    error = comparisons[changed].get("error", "")
    expected = CHANGES[changed][2]
    assert expected in error if expected else not error, error
