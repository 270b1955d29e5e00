"""``python -m argosy.weight_scheme_process NAME``: quantises the rows that the command streams, by a registered scheme.

First it writes a line of JSON: what the scheme is, or an ``error`` and a ``hint``. Then it reads requests from stdin until that is
closed. A request is three integers of 64 bits (rows, blocks of a row, values of a block) and the values, float32. The answer is an
integer of 64 bits, zero, then integers (a byte each), scales (float32) and, if the scheme has any, zero points (a byte each). If the
scheme fails, the first integer is the length of an error as JSON, which follows. All numbers are little-endian.
"""

from __future__ import annotations

import json
import os
import struct
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO

from .errors import ExportError

_SIZES = struct.Struct("<3q")
_CODE = struct.Struct("<Q")


def main(name: str) -> int:
    # What a scheme prints is none of our answers.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        try:
            from .weight_schemes import weight_scheme, weight_scheme_names

            scheme = weight_scheme(name)
            known = ", ".join(weight_scheme_names()) or "none"
            about = {"error": f"installed packages register {known}", "unknown": True} if scheme is None else _about(scheme)
        except Exception as error:
            scheme, about = None, _error(error)
        answers.write(json.dumps({"version": 1, **about}).encode() + b"\n")
        answers.flush()
        if scheme is None:
            return 1
        while (request := sys.stdin.buffer.read(_SIZES.size)) and len(request) == _SIZES.size:
            _answer(scheme, _SIZES.unpack(request), sys.stdin.buffer, answers)
    return 0


def _about(scheme: Any) -> dict[str, Any]:
    from .extensions import package_of

    package = package_of(scheme.function)
    return {"bits": scheme.bits, "block": scheme.block, "zero_points": scheme.zero_points, "package": package}


def _answer(scheme: Any, sizes: tuple[int, ...], requests: BinaryIO, answers: BinaryIO) -> None:
    import numpy as np

    from .weight_schemes import quantize_rows

    count = sizes[0] * sizes[1] * sizes[2]
    data = requests.read(4 * count)
    try:
        values = np.frombuffer(data, "<f4").reshape(sizes)
        made = quantize_rows(scheme, values)
        if sizes[0] > 1:
            _compare(scheme, [each[-1:] for each in made], quantize_rows(scheme, values[-1:]))
        integers, scales, zeros = made
    except Exception as error:
        text = json.dumps(_error(error)).encode()
        answers.write(_CODE.pack(len(text)) + text)
    else:
        answers.write(_CODE.pack(0))
        answers.write(np.ascontiguousarray(integers))
        answers.write(np.ascontiguousarray(scales, "<f4"))
        if scheme.zero_points:
            answers.write(np.ascontiguousarray(zeros))
    answers.flush()


def _compare(scheme: Any, among_others: Sequence[Any], alone: Sequence[Any]) -> None:
    """How many rows come at once depends on the memory that there is, and files must not."""
    if any((one != other).any() for one, other in zip(among_others, alone, strict=True)):
        raise ExportError(
            f"the weight scheme {scheme.name!r} makes another thing of a row alone than of the same row among others",
            code="invalid-input",
            hint="compute each row from that row only",
        )


def _error(error: Exception) -> dict[str, str]:
    if isinstance(error, ExportError):
        return {"error": error.message, "hint": error.hint}
    frames = traceback.extract_tb(error.__traceback__)
    place = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    said = " ".join(f"{type(error).__name__}: {error}".split())
    return {"error": f"the weight scheme fails at {place}: {said}", "hint": "correct it there, or use int4 or int8"}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
