"""Jobs in worker processes that may crash.

A worker is a script that calls serve(): it reads one JSON request per line and answers with one JSON line. torch 2.13
sometimes crashes at exit after exports with fake tensors, and a bad archive may take the process down; so workers leave
by os._exit, and a worker that dies costs only the request it was working on.
"""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
import traceback
from collections.abc import Callable
from typing import Any


def serve(handle: Callable[[Any], dict]) -> None:
    """The worker's side. Anything printed by `handle` goes to standard error; a raised exception becomes the answer's
    "error". Does not return."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = handle(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}", "traceback": traceback.format_exc()}
        print(json.dumps(answer), file=answers, flush=True)
    sys.stderr.flush()
    os._exit(0)


class Worker:
    def __init__(self, command: list[str]) -> None:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=environment,
        )

    def ask(self, request: Any) -> dict | None:
        """None if the worker died."""
        try:
            print(json.dumps(request), file=self._process.stdin, flush=True)
            line = self._process.stdout.readline()
        except BrokenPipeError:
            return None
        return json.loads(line) if line else None

    def close(self) -> int:
        self._process.stdin.close()
        self._process.stdout.close()
        return self._process.wait()


def run_jobs(
    command: list[str], requests: dict[str, Any], jobs: int, report: Callable[[str, dict], None] | None = None
) -> dict[str, dict]:
    """Answers by name. `report` is called from the worker threads, one call at a time, as answers come in."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    for name in requests:
        waiting.put(name)
    answers: dict[str, dict] = {}
    lock = threading.Lock()

    def work() -> None:
        worker = Worker(command)
        while True:
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                worker.close()
                return
            answer = worker.ask(requests[name])
            if answer is None:
                answer = {"error": f"the worker process died with status {worker.close()}"}
                worker = Worker(command)
            with lock:
                answers[name] = answer
                if report:
                    report(name, answer)

    threads = [threading.Thread(target=work) for _ in range(max(1, min(jobs, len(requests))))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers
