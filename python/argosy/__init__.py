"""Argosy exports Hugging Face Transformers models to the formats of inference engines.

This version reads checkpoints; see the ``argosy`` command for what else works today.
"""

from ._core import Checkpoint, TensorInfo, __version__, open_checkpoint
from .errors import ExportError

__all__ = ["Checkpoint", "ExportError", "TensorInfo", "__version__", "open_checkpoint"]
