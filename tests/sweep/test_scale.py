"""The files for job arrays and clusters do what they say, and Ray runs jobs as this machine does."""

from __future__ import annotations

import os
import subprocess
from collections import Counter
from importlib.util import find_spec
from pathlib import Path

import pytest
from simulated import PROGRAM, REPOSITORY, Simulation

from argosy.sweep.machine import cores, memory_bytes

EXAMPLES = REPOSITORY / "examples/scale"


@pytest.fixture
def simulation(tmp_path: Path) -> Simulation:
    made = Simulation(tmp_path)
    made.write_jobs([*(f"good-{i}" for i in range(6)), "failing-0"])
    # What a part runs, in the place of the command.
    command = tmp_path / "bin/argosy"
    command.parent.mkdir()
    command.write_text(f'#!/bin/sh\nshift\nexec "$PYTHON" -m argosy.sweep --program={PROGRAM} "$@"\n')
    command.chmod(0o755)
    return made


def environment(simulation: Simulation, **own: str) -> dict[str, str]:
    path = f"{simulation.folder}/bin:{os.environ['PATH']}"
    return {**simulation.environment, "PATH": path, **own}


def check_parts(simulation: Simulation, codes: list[int]) -> None:
    assert sorted(codes) == [0, 3]
    lines = simulation.lines("out")
    assert Counter(line["status"] for line in lines) == {"right": 6, "failed": 1}
    assert len({line["key"] for line in lines}) == 7 and {line["shard"] for line in lines} == {"1/2", "2/2"}


def test_a_slurm_array_has_all_jobs(simulation: Simulation) -> None:
    codes = []
    for part in ("1", "2"):
        own = environment(simulation, SHARED=str(simulation.folder), SLURM_ARRAY_TASK_ID=part, SLURM_ARRAY_TASK_COUNT="2")
        codes.append(subprocess.run([EXAMPLES / "slurm.sh"], env=own, capture_output=True).returncode)
    check_parts(simulation, codes)


def test_a_kubernetes_job_has_all_jobs(simulation: Simulation) -> None:
    yaml = pytest.importorskip("yaml", reason="it reads the manifest")
    manifest = yaml.safe_load((EXAMPLES / "kubernetes.yaml").read_text())
    spec = manifest["spec"]
    container = spec["template"]["spec"]["containers"][0]
    given = {each["name"]: each["value"] for each in container["env"]}
    assert int(given["SHARDS"]) == spec["completions"] == spec["maxFailedIndexes"] and spec["completionMode"] == "Indexed"
    assert spec["template"]["spec"]["restartPolicy"] == "Never"  # what podFailurePolicy wants
    rules = [rule for rule in spec["podFailurePolicy"]["rules"] if "onExitCodes" in rule]
    assert rules[0]["onExitCodes"]["containerName"] == container["name"] and 3 in rules[0]["onExitCodes"]["values"]
    assert {each["name"] for each in container["volumeMounts"]} == {each["name"] for each in spec["template"]["spec"]["volumes"]}
    codes = []
    for index in ("0", "1"):
        own = environment(simulation, **{**given, "JOB_COMPLETION_INDEX": index, "SHARDS": "2"})
        command = [part.replace("/shared", str(simulation.folder)) for part in container["command"]]
        codes.append(subprocess.run(command, env=own, capture_output=True).returncode)
    check_parts(simulation, codes)


@pytest.mark.skipif(find_spec("ray") is None, reason="a cluster is started with it: pip install ray")
def test_a_ray_cluster_runs_all_jobs_and_outlives_its_workers(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    simulation.write_jobs([*(f"good-{i}" for i in range(12)), "failing-0", "wrong-0", "killed-0", "flaky-0", "workerless-0"])
    jobs = simulation.folder / "jobs.jsonl"
    jobs.write_text(jobs.read_text().replace(f"{tmp_path}/", ""))  # paths from where the sweep was started
    done = subprocess.run(simulation.command("--ray"), cwd=tmp_path, env=simulation.environment, capture_output=True, text=True)
    assert done.returncode == 3, done.stderr
    bad = {name: status for name, status in simulation.statuses().items() if status != "right"}
    assert bad == {"failing-0": "failed", "wrong-0": "wrong", "killed-0": "killed"}
    assert len(simulation.lines()) == 17
    assert sorted(simulation.noted("captures")) == ["0", "1", "2"] and not simulation.noted("collisions")


def test_without_ray_the_error_says_what_to_install(tmp_path: Path) -> None:
    simulation = Simulation(tmp_path)
    simulation.write_jobs(["good-0"])
    (tmp_path / "none").mkdir()
    (tmp_path / "none/ray.py").write_text("raise ModuleNotFoundError('No module named ray', name='ray')\n")
    own = {**simulation.environment, "PYTHONPATH": f"{tmp_path}/none:{REPOSITORY}/python"}
    done = subprocess.run(simulation.command("--ray"), env=own, capture_output=True, text=True)
    assert done.returncode == 1 and "pip install 'argosy[ray]'" in done.stderr


def test_the_limits_of_a_container_count(tmp_path: Path) -> None:
    assert cores(tmp_path) >= 1 and memory_bytes(tmp_path) > 1 << 20
    (tmp_path / "memory.max").write_text("123456789\n")
    (tmp_path / "cpu.max").write_text("100000 100000\n")
    assert memory_bytes(tmp_path) == 123456789 and cores(tmp_path) == 1
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "cpu.max").write_text("max 100000\n")
    assert memory_bytes(tmp_path) > 123456789
