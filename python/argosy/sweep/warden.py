"""Ends the processes of jobs when the process that started them is gone, however that ended.

Run as a script it reads groups of processes from its standard input, ``+ID`` when one begins and ``-ID`` when it has ended, and
kills those that are left when the input ends. `Warden` is the other side.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import IO


class Warden:
    def __init__(self) -> None:
        # Without site: what is installed has no say here, and it starts in a few milliseconds.
        command = [sys.executable, "-I", "-S", __file__]
        # In a session of its own: what ends the sweep by its terminal does not reach it.
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, bufsize=0)

    def begin(self, group: int) -> None:
        if self._process.stdin is None or self._process.stdin.closed:
            os.killpg(group, signal.SIGKILL)  # it comes too late
        self._tell(f"+{group}\n")

    def end(self, group: int) -> None:
        self._tell(f"-{group}\n")

    def _tell(self, text: str) -> None:
        stream: IO[bytes] | None = self._process.stdin
        if stream is not None and not stream.closed:
            try:
                stream.write(text.encode())
            except OSError:
                pass  # somebody ended it; jobs go on without

    def close(self) -> None:
        """Ends what runs still."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait()


def _main() -> None:
    for each in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.SIG_IGN)
    groups: set[int] = set()
    for line in sys.stdin:
        (groups.add if line[0] == "+" else groups.discard)(int(line[1:]))
    for group in groups:
        try:
            os.killpg(group, signal.SIGKILL)
        except OSError:
            pass


if __name__ == "__main__":
    _main()
