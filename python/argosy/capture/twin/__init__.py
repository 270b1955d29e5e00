"""Twins: small models of the same architecture, with real random weights, and inputs for them.

A twin is what calls are observed on and what captured graphs are checked against, at a cost that does not depend on
the size of the model it stands for.
"""

from .build import build
from .classes import model_class
from .inputs import sample_inputs
from .request import Sizes
from .save import save
from .shrink import shrink

__all__ = ["Sizes", "build", "model_class", "sample_inputs", "save", "shrink"]
