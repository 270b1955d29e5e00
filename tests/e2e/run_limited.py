"""Runs a command with a limit of time and of reserved memory, and prints what it took as one line of JSON.

    python -I -S run_limited.py SECONDS RESERVED_BYTES COMMAND...

A process of its own, and a small one: the resident memory that the system reports for a child begins with that of the
process that started it. The command's stderr goes through, its stdout is dropped.
"""

import json
import os
import resource
import signal
import sys
import time


def main() -> None:
    seconds, reserved, command = float(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    started = time.monotonic()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_AS, (reserved, reserved))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        try:
            os.execv(command[0], command)
        finally:
            os._exit(127)
    signal.signal(signal.SIGALRM, lambda *_: os.kill(child, signal.SIGKILL))
    signal.setitimer(signal.ITIMER_REAL, seconds)
    _, status, usage = os.wait4(child, 0)
    print(json.dumps({"code": os.waitstatus_to_exitcode(status), "resident": usage.ru_maxrss * 1024,
                      "seconds": time.monotonic() - started}))


if __name__ == "__main__":
    main()
