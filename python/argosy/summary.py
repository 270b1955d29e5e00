"""What a command says to scripts: one JSON object on stdout, as the program itself prints them (``--json``)."""

from __future__ import annotations

import json
import time
from typing import Any

from .errors import ExportError


class Summary:
    """Begins with the command. Fields are added by who knows them; seconds and how it ended come last. Of a command that
    failed nothing else is said."""

    def __init__(self, command: str) -> None:
        self._start = time.perf_counter()
        self.fields: dict[str, Any] = {"command": command}

    def print(self, exit_code: int = 0, error: ExportError | None = None) -> None:
        ended: dict[str, Any] = {"seconds": round(time.perf_counter() - self._start, 3), "exit_code": exit_code}
        fields = self.fields
        if error is not None:
            fields = {"command": self.fields["command"]}
            ended["error"] = {"code": error.code, "message": error.message, "hint": error.hint or ""}
        print(json.dumps(fields | ended, indent=1), flush=True)
