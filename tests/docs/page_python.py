"""Runs the Python blocks of one page, one after the other in one namespace: a JSON object a line in, one out."""

from __future__ import annotations

import contextlib
import io
import json
import linecache
import sys
import traceback


def main() -> None:
    answers = sys.stdout
    namespace: dict = {"__name__": "__main__"}
    for line in sys.stdin:
        request = json.loads(line)
        name, code = request["name"], request["code"]
        # Tracebacks show lines of the block; torch's exporter looks at the source of what it traces.
        linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
        said = io.StringIO()
        failure = ""
        try:
            with contextlib.redirect_stdout(said):
                exec(compile(code, name, "exec"), namespace)  # noqa: S102 - it is our own documentation
        except BaseException:  # noqa: BLE001 - also what a block may call sys.exit with
            failure = traceback.format_exc()
        answers.write(json.dumps({"failure": failure, "said": said.getvalue()}) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
