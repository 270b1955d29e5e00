"""Logits of a bundle in its engine, behind prompts whole and in pieces, beside eager's."""

from __future__ import annotations

import tempfile
from pathlib import Path

import torch

from ..capture.session import Session, shape_limits
from ..run.runners import BundleProcess, RunError
from .calls import error_line
from ..compare import difference
from .programs import scripts, text_logits
from .rows import Row
from .tokens import random_ids

#: The longest prompt: engines that read the model's own context length refuse longer ones.
_MOST = 64


def _context_length(session: Session) -> int:
    """What the bundle says that texts may have."""
    positions = getattr(session.twin.config.get_text_config(decoder=True), "max_position_embeddings", None) or _MOST + 1
    return min([positions, *(guard.longest for traced in session.traced for guard in traced.guards if guard.longest)])


def fed_rows(process: BundleProcess, session: Session, tolerance: float) -> list[Row]:
    """One prompt after another, each in pieces of its own. Only for models that read text with a decoder."""
    import numpy

    model = session.twin
    if model.config.is_encoder_decoder or [each.name for each in session.components][-1:] != ["decode"]:
        return []
    most = min(_MOST, _context_length(session) - 1)  # the engine keeps a place for the token that follows
    cuts = list(scripts(most, most, shape_limits(session)))
    texts = [random_ids(model, each[-1], seed=100 + number) for number, each in enumerate(cuts)]
    row = Row("bundle", "logits", f"{len(texts)} prompts", None)
    try:
        with torch.no_grad():
            wanted = [text_logits(model, ids, each) for ids, each in zip(texts, cuts, strict=True)]
    except Exception as error:  # noqa: BLE001 - eager code of the model's own
        row.note = f"eager was not run: {error_line(error)}"
        return [row]
    pieces = [[ids[0, first:last].tolist() for first, last in zip([0, *each], each)] for ids, each in zip(texts, cuts, strict=True)]  # noqa: B905
    with tempfile.TemporaryDirectory(prefix="argosy-logits-") as folder:
        file = Path(folder) / "logits.npz"
        try:
            process.ask({"feed": pieces, "logits": str(file)})
        except RunError as error:
            row.ok, row.note = False, str(error)
            return [row]
        with numpy.load(file, allow_pickle=False) as stored:
            found = {name: torch.from_numpy(stored[name]) for name in stored.files}
    rows = []
    for number, (each, logits) in enumerate(zip(cuts, wanted, strict=True)):
        for i, (first, last) in enumerate(zip([0, *each], each)):  # noqa: B905
            want, have = logits[0, last - 1], found[f"{number}.{i}"].reshape(-1, logits.shape[-1])[-1]
            apart = difference({"logits": want}, {"logits": have})
            row = Row("bundle", "logits", f"{last - first} on {first}", apart.scaled <= tolerance and not apart.error, apart)
            if not row.ok:
                row.note = apart.error or f"logits are off by {apart.abs:.2g}"
            rows.append(row)
    return rows
