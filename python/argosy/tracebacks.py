"""What programs of the package say when something fails that they did not foresee: two lines, and a file with the rest."""

from __future__ import annotations

import sys
import tempfile
import traceback


def explain_failure(error: Exception, what: str, needs: str, extra: str) -> int:
    """Prints why ``what`` failed and what to do, and returns the exit code. A package that is missing is named with what brings
    it: ``needs`` says what the program needs, ``extra`` is the extra of the package that has it."""
    if isinstance(error, ModuleNotFoundError):
        print(f"error[not-found]: {needs}: {error}", file=sys.stderr)
        print(f"  hint: pip install 'argosy[{extra}]', or name another Python by ARGOSY_PYTHON", file=sys.stderr)
        return 1
    with tempfile.NamedTemporaryFile("w", prefix="argosy-", suffix=".log", delete=False) as file:
        file.write("".join(traceback.format_exception(error)))
    print(f"error[internal]: {what}: {type(error).__name__}: {error}".rstrip(": "), file=sys.stderr)
    print(f"  hint: the traceback is in {file.name}; please report it with that file", file=sys.stderr)
    return 1
