"""``python -m argosy.weight_scheme_process NAME``: quantises the rows that the command streams, by a registered scheme.

First it writes a line of JSON: what the scheme is, or an ``error`` and a ``hint``. Then it reads requests from stdin until that is
closed. A request is three integers of 64 bits (rows, blocks of a row, values of a block) and the values, float32. The answer is an
integer of 64 bits, zero, then integers (a byte each), scales (float32) and, if the scheme has any, zero points (a byte each). If the
scheme fails, the first integer is the length of an error as JSON, which follows. All numbers are little-endian.
"""

from __future__ import annotations

import json
import struct
import sys
from collections.abc import Sequence
from typing import Any, BinaryIO

from .errors import ExportError
from .extension_process import answers, error_of, find
from .extensions import package_of
from .weight_schemes import WeightScheme, weight_schemes

_SIZES = struct.Struct("<3q")
_CODE = struct.Struct("<Q")


def main(name: str) -> int:
    with answers() as stream:
        scheme = find("weight schemes", name, weight_schemes, _about, stream)
        while scheme and len(request := sys.stdin.buffer.read(_SIZES.size)) == _SIZES.size:
            _answer(scheme, _SIZES.unpack(request), sys.stdin.buffer, stream)
    return 0 if scheme else 1


def _about(scheme: WeightScheme) -> dict[str, Any]:
    about = {"bits": scheme.bits, "block": scheme.block, "zero_points": scheme.zero_points}
    return {**about, **package_of(scheme.function)}


def _answer(scheme: WeightScheme, sizes: tuple[int, ...], requests: BinaryIO, stream: BinaryIO) -> None:
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
        text = json.dumps(error_of(error, f"weight scheme {scheme.name!r}")).encode()
        stream.write(_CODE.pack(len(text)) + text)
    else:
        stream.write(_CODE.pack(0))
        stream.write(np.ascontiguousarray(integers))
        stream.write(np.ascontiguousarray(scales, "<f4"))
        if scheme.zero_points:
            stream.write(np.ascontiguousarray(zeros))
    stream.flush()


def _compare(scheme: WeightScheme, among_others: Sequence[Any], alone: Sequence[Any]) -> None:
    """How many rows come at once depends on the memory that there is, and files must not."""
    if any((one != other).any() for one, other in zip(among_others, alone, strict=True)):
        raise ExportError(
            f"the weight scheme {scheme.name!r} makes another thing of a row alone than of the same row among others",
            code="invalid-input",
            hint="compute each row from that row only",
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
