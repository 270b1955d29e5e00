"""Jobs on a Ray cluster, which places them by the cores and the memory that they need, and repeats those whose worker dies."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from ..command import find_program
from ..errors import ExportError
from .runner import Outcome, Task, run_job
from .warden import Warden

#: So many jobs wait at the cluster for each of its cores, so that none of them is idle and an autoscaler sees that there is more.
_PER_CORE = 3
#: Of a worker's process.
_wardens: list[Warden] = []


class RayWorkers:
    """`address` is that of a cluster; empty: the one that RAY_ADDRESS names or that runs on this machine, else a new one here."""

    def __init__(self, address: str, retries: int) -> None:
        # What is sent where is for who runs a cluster to decide.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        try:
            import ray
        except ModuleNotFoundError as error:
            raise ExportError("--ray needs Ray, which this Python does not have", code="not-found",
                              hint="pip install 'argosy[ray]', or leave out --ray to run jobs here") from error  # fmt: skip
        self._ray: Any = ray
        try:
            ray.init(address=address or None, log_to_driver=False, logging_level="error")
        except Exception as error:  # of many kinds: no cluster there, another version of Ray or Python
            raise ExportError(f"the Ray cluster {address or 'of this machine'} cannot be used: {error}", code="io",
                              hint="check that it runs (ray status), with the same versions of Ray and Python, and that "
                              "RAY_AUTH_TOKEN is the token it was started with, if it asks for one") from error  # fmt: skip
        self._remote = ray.remote(_run_here)
        self._retries = retries
        self._running: dict[Any, Task] = {}

    @property
    def slots(self) -> int:
        return max(2, int(_PER_CORE * self._ray.cluster_resources().get("CPU", 1)))

    def start(self, task: Task) -> None:
        # Not by the job: Ray keeps counts for each name that it has met.
        needs: dict[str, Any] = {"max_retries": self._retries, "num_cpus": task.job.cpus, "name": f"export {task.job.target}"}
        if task.limits.memory:
            needs["memory"] = task.limits.memory
        self._running[self._remote.options(**needs).remote(task)] = task

    def ended(self) -> list[tuple[Task, Outcome]]:
        ids = list(self._running)
        done, rest = self._ray.wait(ids, num_returns=1)
        done += self._ray.wait(rest, num_returns=len(rest), timeout=0)[0] if rest else []
        return [(self._running.pop(each), self._outcome(each)) for each in done]

    def _outcome(self, ended: Any) -> Outcome:
        try:
            outcome: Outcome = self._ray.get(ended)
        except self._ray.exceptions.RayError as error:  # its worker died, as often as it may
            first = str(error).strip().split("\n", 1)[0][:200]
            return {"status": "killed", "reason": f"{type(error).__name__}: {first}", "captured": True}
        return outcome

    def close(self) -> None:
        self._ray.shutdown()


def _run_here(task: Task) -> Outcome:
    if not _wardens:
        _wardens.append(Warden())
    if not task.program.exists():
        task = replace(task, program=find_program())  # where this machine has it
    if task.home.is_dir():
        os.chdir(task.home)
    return run_job(task, _wardens[0])
