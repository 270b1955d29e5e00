"""Sweeps of simulated jobs: each ends exactly once, whatever happens to it, to its neighbours and to the sweep."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest
from simulated import Simulation

#: As many as a run by hand wants: ARGOSY_SWEEP_KILLS=20.
KILLS = int(os.environ.get("ARGOSY_SWEEP_KILLS", "4"))


@pytest.fixture
def simulation(tmp_path: Path) -> Simulation:
    return Simulation(tmp_path)


def test_each_job_ends_once_and_nothing_is_run_again(simulation: Simulation) -> None:
    names = [f"good-{i}" for i in range(12)] + ["failing-0", "wrong-0"]
    simulation.write_jobs(names)
    done = simulation.run("--jobs=3")
    assert done.returncode == 3, done.stderr
    statuses = simulation.statuses()
    assert Counter(statuses.values()) == {"right": 12, "failed": 1, "wrong": 1}
    reasons = {line["name"]: line["reason"] for line in simulation.lines()}
    assert reasons["failing-0"] == "no translation of aten::nonsense"
    assert reasons["wrong-0"] == "Simulated in onnxruntime is wrong in 1 of 3 calls: decode edge 1x6"
    assert len(list((simulation.folder / "jobs/outputs").iterdir())) == 12
    assert sorted(simulation.noted("captures")) == ["0", "1", "2"] and not simulation.noted("collisions")

    again = simulation.run("--jobs=3")
    assert again.returncode == 3 and len(simulation.lines()) == 14
    assert simulation.run("--retry-failed").returncode == 3
    assert Counter(line["name"] for line in simulation.lines())["failing-0"] == 2
    assert len(simulation.lines()) == 16


def test_a_job_whose_model_was_changed_is_another(simulation: Simulation) -> None:
    simulation.write_jobs(["good-0", "good-1"])
    simulation.run()
    (simulation.folder / "models/good-1/model.safetensors").write_text("retrained")
    simulation.run()
    assert Counter(line["name"] for line in simulation.lines()) == {"good-0": 1, "good-1": 2}


def test_what_was_not_captured_is_not_tried_again_for_each_fine_tune(simulation: Simulation) -> None:
    simulation.write_jobs([f"uncaptured-{i}" for i in range(5)], configurations=1)
    assert simulation.run("--jobs=2").returncode == 3
    assert Counter(simulation.statuses().values()) == {"failed": 1, "not captured": 4}
    assert {line["reason"].removeprefix("its configuration was not captured: ") for line in simulation.lines()} == {
        "no capture was made: it branches on data"
    }
    assert len(simulation.noted("captures")) == 1


def test_limits_cost_the_job_that_breaks_them(simulation: Simulation) -> None:
    simulation.write_jobs(["hungry-0", "writing-0", "sleeping-0", *(f"good-{i}" for i in range(6))])
    done = simulation.run("--jobs=3", "--memory=200MB", "--disk=8MB", "--seconds=4")
    assert done.returncode == 3, done.stderr
    statuses = simulation.statuses()
    assert statuses.pop("hungry-0") == "over memory"
    assert statuses.pop("writing-0") == "over disk"
    assert statuses.pop("sleeping-0") == "over time"
    assert set(statuses.values()) == {"right"} and len(statuses) == 6
    assert not list((simulation.folder / "jobs").glob("work*"))
    sleeping = simulation.noted("sleeping-0.processes")
    assert len(sleeping) == 2 and not any(is_running(int(process)) for process in sleeping)


def test_limits_of_a_job_are_before_those_of_all(simulation: Simulation) -> None:
    simulation.write_jobs(["writing-0"], disk="100MB")
    assert simulation.run("--disk=8MB").returncode == 0
    assert simulation.statuses() == {"writing-0": "right"}


def test_a_killed_worker_costs_its_job_a_try(simulation: Simulation) -> None:
    simulation.write_jobs(["killed-0", "flaky-0", *(f"good-{i}" for i in range(6))], configurations=1)
    assert simulation.run("--jobs=2").returncode == 3
    assert simulation.statuses() == {"killed-0": "killed", "flaky-0": "right"} | {f"good-{i}": "right" for i in range(6)}
    attempts = {line["name"]: line["attempts"] for line in simulation.lines()}
    assert attempts["killed-0"] == attempts["flaky-0"] == 2
    assert len(simulation.lines()) == 8


def test_a_full_disk_costs_the_job_that_fills_it(tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=12m", "argosy-test", place], capture_output=True, text=True)
    if mounted.returncode != 0:
        pytest.skip(f"a small file system cannot be mounted: {mounted.stderr.strip()}")
    try:
        simulation = Simulation(tmp_path / "simulation")
        simulation.write_jobs(["writing-0", *(f"slow-{i}" for i in range(8))])
        done = simulation.run("--jobs=2", f"--output={place}/out")
        assert done.returncode == 3, done.stderr
        shutil.copytree(place / "out", tmp_path / "simulation/copied")
    finally:
        subprocess.run(["umount", place], check=True)
    statuses = simulation.statuses("copied")
    assert statuses == {"writing-0": "failed"} | {f"slow-{i}": "right" for i in range(8)}
    assert "No space left on device" in next(line["reason"] for line in simulation.lines("copied") if line["name"] == "writing-0")


def test_a_sweep_that_is_killed_takes_its_jobs_along(simulation: Simulation) -> None:
    simulation.write_jobs(["sleeping-0"])
    sweep = simulation.start()
    until = time.monotonic() + 30
    while len(simulation.noted("sleeping-0.processes")) < 2 and time.monotonic() < until:
        time.sleep(0.02)
    processes = [int(each) for each in simulation.noted("sleeping-0.processes")]
    assert len(processes) == 2 and all(map(is_running, processes))
    sweep.kill()
    sweep.wait()
    until = time.monotonic() + 10
    while any(map(is_running, processes)) and time.monotonic() < until:
        time.sleep(0.02)
    assert not any(map(is_running, processes))


@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_a_sweep_that_is_broken_off_says_so(simulation: Simulation, ending: signal.Signals) -> None:
    simulation.write_jobs(["sleeping-0"])
    # What a shell starts in the background ignores SIGINT, and so would what is started here.
    sweep = subprocess.Popen(simulation.command(), env=simulation.environment, stderr=subprocess.PIPE, text=True,
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL))  # fmt: skip
    until = time.monotonic() + 30
    while not simulation.noted("sleeping-0.processes") and time.monotonic() < until:
        time.sleep(0.02)
    sweep.send_signal(ending)
    _, said = sweep.communicate(timeout=30)
    assert sweep.returncode == 130 and "run it again to go on" in said
    assert not simulation.lines()


def test_killed_at_random_and_resumed_the_table_is_the_same(simulation: Simulation) -> None:
    names = [f"slow-{i}" for i in range(8 * KILLS)] + ["failing-0", "wrong-0", "failing-1", "wrong-1"]
    simulation.write_jobs(names, configurations=5)
    assert simulation.run("--jobs=2", f"--output={simulation.folder}/whole").returncode == 3
    shutil.rmtree(simulation.folder / "simulated")
    (simulation.folder / "simulated").mkdir()

    draw = random.Random(7)
    killed = 0
    while killed < KILLS:
        sweep = simulation.start("--jobs=2")
        time.sleep(draw.uniform(0.2, 0.9))
        if sweep.poll() is not None:
            break
        sweep.kill()
        sweep.wait()
        killed += 1
    assert killed == KILLS, "the jobs ended before all kills; give it more"
    assert simulation.run("--jobs=2").returncode == 3
    assert (simulation.folder / "jobs/table.md").read_text() == (simulation.folder / "whole/table.md").read_text()
    counted = Counter(line["key"] for line in simulation.lines())
    assert len(counted) == len(names) and set(counted.values()) == {1}
    assert len(list((simulation.folder / "jobs/outputs").iterdir())) == 8 * KILLS


def test_two_sweeps_do_not_write_to_one_folder(simulation: Simulation) -> None:
    simulation.write_jobs(["sleeping-0"])
    sweep = simulation.start()
    try:
        until = time.monotonic() + 30
        while not simulation.noted("sleeping-0.processes") and time.monotonic() < until:
            time.sleep(0.02)
        done = simulation.run()
        assert done.returncode == 1 and "another sweep writes" in done.stderr
    finally:
        sweep.kill()
        sweep.wait()


def test_shards_are_reported_on_together(simulation: Simulation) -> None:
    simulation.write_jobs([*(f"good-{i}" for i in range(9)), "failing-0"])
    for index in (1, 2, 3):
        assert simulation.run(f"--shard={index}/3").returncode in (0, 3)
    assert len(simulation.lines()) == 10
    assert simulation.run("--shard=2/3", f"--output={simulation.folder}/elsewhere").returncode in (0, 3)
    merged = simulation.run(f"--report={simulation.folder}/jobs", f"--output={simulation.folder}/all")
    assert merged.returncode == 3 and "10 jobs: 9 right, 1 failed" in merged.stdout
    partly = simulation.run(f"--report={simulation.folder}/elsewhere", f"--output={simulation.folder}/partly")
    assert partly.returncode == 3 and "not ended" in partly.stdout
    assert (simulation.folder / "all/table.md").read_text().startswith("# Sweep\n\n10 jobs: 9 right, 1 failed.\n")


def test_it_imports_nothing_large() -> None:
    code = "import sys, argosy.sweep.__main__; print(sorted({'torch', 'transformers', 'numpy', 'ray'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=Simulation(Path("/tmp")).environment)
    assert done.stdout == "[]\n", done.stderr


def is_running(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
