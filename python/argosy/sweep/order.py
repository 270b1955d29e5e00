"""Which job may start: of those that want the same capture, or the same check on a twin, one goes first and the others wait."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass

from .jobs import Job, Limits, Needs, needs_of
from .runner import GOOD, Outcome


@dataclass
class Waiting:
    job: Job
    key: str
    limits: Limits
    attempt: int = 1
    #: what it shares with others, once somebody asked
    needs: Needs | None = None
    #: of that, what it makes for them while it runs
    leads: tuple[str, ...] = ()
    #: why it need not be run
    refused: str = ""


class Order:
    """Jobs in the order in which they may start. Whatever a job makes for others is made by one at a time; where that one fails
    in what only it has, the next one tries."""

    def __init__(self, jobs: Iterable[Waiting]) -> None:
        self._ready = deque(jobs)
        self._busy: set[str] = set()
        self._made: set[str] = set()
        #: captures that cannot be made: why, and within which limits
        self._refused: dict[str, tuple[str, Limits | None]] = {}
        self._blocked: dict[str, deque[Waiting]] = {}
        self._last: deque[Waiting] = deque()
        self._running = 0

    def next(self) -> Waiting | None:
        """The next job; None if all that are left wait for others, or none is left."""
        while self._ready:
            waiting = self._ready.popleft()
            needs = waiting.needs = waiting.needs or needs_of(waiting.job)
            keys = (needs.configuration, needs.capture, needs.check)
            refused = self._refused.get(needs.configuration) or self._refused.get(needs.capture)
            if refused and refused[1] in (None, waiting.limits):
                waiting.refused = f"its configuration was not captured: {refused[0]}"
                return waiting
            busy = next((key for key in keys if key in self._busy), None)
            if busy is not None:
                self._blocked.setdefault(busy, deque()).append(waiting)
                continue
            waiting.leads = tuple(key for key in keys if key not in self._made)
            self._busy.update(waiting.leads)
            self._running += 1
            return waiting
        if not self._running and self._last:
            self._ready.append(self._last.popleft())
            return self.next()
        return None

    def ended(self, waiting: Waiting, outcome: Outcome) -> None:
        """Frees those that waited for it."""
        is_good = outcome["status"] in GOOD
        has_capture = is_good or outcome.get("captured", True)
        needs = waiting.needs or needs_of(waiting.job)
        self._running -= 1
        for key in waiting.leads:
            self._busy.discard(key)
            if is_good or (has_capture and key != needs.check and outcome["status"] != "killed"):
                self._made.add(key)
        # What the machine or the network did may go better with the next one.
        if not has_capture and outcome["status"] != "killed" and outcome.get("code") != "io":
            limits = waiting.limits if outcome["status"].startswith("over ") else None
            # A model that cannot be made of a configuration is none for any backend.
            key = needs.configuration if outcome.get("step") == "twin" else needs.capture
            self._refused[key] = (outcome["reason"], limits)
        for key in waiting.leads:
            self._ready.extendleft(reversed(self._blocked.pop(key, deque())))
        waiting.leads = ()

    def again(self, waiting: Waiting) -> None:
        """Once more, when all others have been tried, and alone: what stopped it may have been another job."""
        waiting.attempt += 1
        self._last.append(waiting)

    def __len__(self) -> int:
        """Those that have not been started."""
        return len(self._ready) + len(self._last) + sum(map(len, self._blocked.values()))
