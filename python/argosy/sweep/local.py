"""Jobs side by side on this machine."""

from __future__ import annotations

from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import Protocol

from .runner import Outcome, Task, run_job
from .warden import Warden


class Workers(Protocol):
    """Where jobs run."""

    @property
    def slots(self) -> int:
        """How many jobs may be started before one has ended."""

    def start(self, task: Task) -> None: ...

    def ended(self) -> list[tuple[Task, Outcome]]:
        """Those that have ended; waits for one if none has."""

    def close(self) -> None:
        """Ends what runs still."""


class LocalWorkers:
    """Threads, each of which looks after the processes of one job."""

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self._warden = Warden()
        self._threads = ThreadPoolExecutor(slots, thread_name_prefix="job")
        self._running: dict[Future[Outcome], Task] = {}

    @property
    def slots(self) -> int:
        return self._slots

    def start(self, task: Task) -> None:
        self._running[self._threads.submit(run_job, task, self._warden)] = task

    def ended(self) -> list[tuple[Task, Outcome]]:
        done, _ = wait(self._running, return_when=FIRST_COMPLETED)
        return [(self._running.pop(future), future.result()) for future in done]

    def close(self) -> None:
        self._warden.close()
        self._threads.shutdown(cancel_futures=True)
