"""What came of jobs: one line of JSON each, written when the job ends."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import ExportError

Line = dict[str, Any]
#: How long a line is held back while there is no room for it.
_PATIENCE_SECONDS = 60.0


class Journal:
    """Appends lines to a file that no other sweep writes at the time. A line is complete or is not there: what a run that was
    killed left half written is cut off when the file is opened again."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND, 0o644)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            os.close(self._file)
            raise ExportError(f"another sweep writes {path}", code="io",
                              hint="wait until it has ended, or give another folder by -o") from error  # fmt: skip
        os.ftruncate(self._file, _complete_bytes(self._file))

    def add(self, line: Line) -> None:
        """While the disk is full this waits a minute for room; then it is an `ExportError`, and a later run goes on here."""
        data = (json.dumps(line, ensure_ascii=False, separators=(",", ":")) + "\n").encode("utf-8", "backslashreplace")
        size = os.fstat(self._file).st_size
        until = time.monotonic() + _PATIENCE_SECONDS
        while True:
            try:
                if os.write(self._file, data) == len(data):
                    return
                full = True
            except OSError as error:
                full = error.errno in (errno.ENOSPC, errno.EDQUOT)
                if not full:
                    raise ExportError(f"{self.path} cannot be written: {error.strerror}", code="io",
                                      hint="see to it, then run this again to go on") from error  # fmt: skip
            os.ftruncate(self._file, size)
            if time.monotonic() > until:
                raise ExportError(f"there is no room for {self.path}", code="io",
                                  hint="make room on that disk, then run this again to go on")  # fmt: skip
            time.sleep(0.5)

    def close(self) -> None:
        os.close(self._file)


def _complete_bytes(file: int) -> int:
    """Up to the end of the last complete line."""
    size = os.fstat(file).st_size
    position, block = size, 1 << 16
    while position > 0:
        start = max(0, position - block)
        end = os.pread(file, position - start, start).rfind(b"\n")
        if end >= 0:
            return start + end + 1
        position = start
    return 0


def read_lines(folder: Path) -> Iterator[Line]:
    """The lines of all journals of a folder, those of its shards too, file by file. What is no line of ours is passed over."""
    for path in sorted(folder.glob("results*.jsonl")):
        with path.open("rb") as file:
            for text in file:
                try:
                    line = json.loads(text)
                except ValueError:
                    continue
                if text.endswith(b"\n") and isinstance(line, dict) and {"key", "job", "status", "ended"} <= line.keys():
                    yield line
