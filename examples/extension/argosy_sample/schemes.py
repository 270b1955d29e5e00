"""A way to store weights that Argosy does not have."""

import numpy as np
from argosy import register_weight_scheme

#: Of the largest value of a block. What is larger is cut off, and the rest has finer steps.
CLIPPED_AT = np.float32(0.9)


@register_weight_scheme("clipped4", bits=4, block=32)
def clipped(blocks):
    """Integers and scales of rows ``[rows, blocks, block]``."""
    scales = np.abs(blocks).max(2) * CLIPPED_AT / np.float32(8)
    steps = blocks / np.where(scales > 0, scales, np.float32(1))[..., None]
    return np.clip(np.rint(steps) + 8, 0, 15), scales
