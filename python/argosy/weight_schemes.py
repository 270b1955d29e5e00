"""Registry of quantisation schemes of users' own: how floats become integers in 4 or 8 bits.

Importing this module imports nothing else.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import ExportError
from .registering import register_once, source_of

if TYPE_CHECKING:
    import numpy as np

#: Names of our own that ``--quantize`` takes, and those by which files call what is stored so.
_TAKEN = re.compile(r"u?int[0-9]+|u?q[0-9]+(f16)?|float[0-9]*|fp[0-9]+|nf4|keep|embedding")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,63}")

#: From blocks of rows to integers and scales, and perhaps zero points.
Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


@dataclass(frozen=True)
class WeightScheme:
    """A way to store weights that products with ``MatMulNBits`` read: (integer - zero point) * scale."""

    name: str
    function: Function
    bits: int
    block: int
    """Values of a row that share a scale, if the user asks for no other number."""
    zero_points: bool


_SCHEMES: dict[str, WeightScheme] = {}


def register_weight_scheme(name: str, *, bits: int, block: int = 32, zero_points: bool = False) -> Callable[[F], F]:
    """Registers the decorated function as the scheme that ``argosy export onnx --quantize NAME`` stores weights by.

    The function gets whole rows of a weight as a float32 array ``[rows, blocks, block]``, the last block of a row filled up with
    zeros. It returns integers from 0 to ``2**bits - 1`` of that shape and scales ``[rows, blocks]``; with ``zero_points`` also
    these, ``[rows, blocks]``, from 0 to ``2**bits - 1``. Without them the zero point is ``2**(bits - 1)``. A value is read back as
    ``(integer - zero point) * scale``. Rows come in batches of any size, so what becomes of one must not depend on others.
    """
    if not _NAME.fullmatch(name) or _TAKEN.fullmatch(name):
        raise ExportError(
            f"{name!r} cannot be the name of a weight scheme",
            code="invalid-input",
            hint="use small letters, digits and _, and no name that --quantize has already",
        )
    if bits not in (4, 8):
        raise ExportError(f"the weight scheme {name!r} has {bits} bits", code="invalid-input", hint="products take 4 or 8")
    if block not in (16, 32, 64, 128, 256):
        raise ExportError(f"the weight scheme {name!r} has blocks of {block}", code="invalid-input", hint="use 16, 32, 64, 128 or 256")

    def decorate(function: F) -> F:
        register_once(_SCHEMES, name, WeightScheme(name, function, bits, block, zero_points), "weight scheme")
        return function

    return decorate


def weight_schemes() -> dict[str, WeightScheme]:
    """By name; extensions are loaded first."""
    from .extensions import load_extensions

    load_extensions()
    return dict(_SCHEMES)


def quantize_rows(scheme: WeightScheme, blocks: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Integers and zero points as bytes and scales as float32, of rows ``[rows, blocks, block]``. What the scheme returns is checked."""
    import numpy as np

    with contextlib.redirect_stdout(sys.stderr):  # stdout is for results
        returned = scheme.function(blocks.copy())  # it may write there
    wanted = ("integers", "scales", "zero points") if scheme.zero_points else ("integers", "scales")
    if not isinstance(returned, tuple) or len(returned) != len(wanted):
        what = f"{len(returned)} of them" if isinstance(returned, tuple) else type(returned).__name__
        raise _wrong(scheme, f"returns {what} in the place of {len(wanted)} arrays ({', '.join(wanted)})")
    arrays = [np.asarray(each) for each in returned]
    for what, array in zip(wanted, arrays, strict=True):
        shape = blocks.shape if what == "integers" else blocks.shape[:2]
        if array.shape != shape:
            raise _wrong(scheme, f"returns {what} of shape {list(array.shape)} in the place of {list(shape)}")
        if array.dtype.kind not in ("f" if what == "scales" else "iuf"):
            raise _wrong(scheme, f"returns {what} of dtype {array.dtype}")
    scales = arrays[1].astype(np.float32)
    if not np.isfinite(scales).all():
        raise _wrong(scheme, "returns a scale that is a NaN, an infinity, or too large for float32")
    integers = _bytes(scheme, "an integer", arrays[0])
    if scheme.zero_points:
        return integers, scales, _bytes(scheme, "a zero point", arrays[2])
    return integers, scales, np.full(scales.shape, 1 << (scheme.bits - 1), np.uint8)


def _bytes(scheme: WeightScheme, what: str, values: np.ndarray) -> np.ndarray:
    import numpy as np

    most = (1 << scheme.bits) - 1
    wrong = values[~((values >= 0) & (values <= most) & (values == np.floor(values)))]  # a NaN is wrong, too
    if wrong.size:
        raise _wrong(scheme, f"returns {what} {wrong.flat[0]}, not one of 0 to {most}")
    return values.astype(np.uint8)


def _wrong(scheme: WeightScheme, what: str) -> ExportError:
    return ExportError(
        f"the weight scheme {scheme.name!r} {what}",
        code="invalid-input",
        hint=f"correct {source_of(scheme.function)}, or use int4 or int8",
    )
