"""Greedy tokens of a bundle that sees or hears: one picture or sound, in the engine and eagerly."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from ..run.bundles import Bundle
from ..run.runners import EngineMissing, RunError
from .calls import error_line
from .rows import Row
from .media_runs import compare

_ENCODERS = {"image_encoder": "picture", "audio_encoder": "sound", "encoder": "sound"}


def has_media(bundle: Bundle) -> bool:
    return _kind(bundle) != ""


def _kind(bundle: Bundle) -> str:
    for component in bundle.manifest.get("components", ()):
        name = component.get("name")
        inputs = [each.get("name") for each in component.get("inputs", ())]
        if name in _ENCODERS and (name != "encoder" or "input_features" in inputs):  # else it is one of text
            return _ENCODERS[name]
    return ""


def media_row(model: torch.nn.Module, against: Path, bundle: Bundle, count: int) -> Row | None:
    """None for bundles that take text alone, and for engines that are not compared so."""
    kind = _kind(bundle)
    if not kind or bundle.engine not in ("genai", "executorch"):
        return None
    row = Row("bundle", "tokens", f"a {kind}, {count} new tokens", None)
    with tempfile.TemporaryDirectory(prefix="argosy-media-") as folder:
        try:
            run = compare(model, against, bundle.folder, Path(folder), count)
        except EngineMissing:
            raise
        except RunError as error:
            row.ok, row.note = False, str(error)
            return row
        except Exception as error:  # noqa: BLE001 - processors and models are others' code
            row.note = f"eager was not run: {error_line(error)}"
            return row
    same = [ours == theirs for ours, theirs in zip(run.engine, run.eager)]  # noqa: B905 - one may end earlier
    row.ok, row.tokens = run.ok, (same.index(False) if False in same else len(same), len(run.eager))
    if run.difference is not None:
        row.note = f"what the engine makes of the {kind} is up to {run.difference:.1e} from what transformers makes of it"
    return row
