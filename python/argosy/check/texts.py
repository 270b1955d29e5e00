"""A text, read by eager and by the export: the user's own words, or some that the tokenizer knows."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from ..capture.components import call_flags
from ..errors import ExportError
from .calls import ExpectedCall
from .engines import Export
from .interface import complete, fits
from .tokens import TEXTS

#: Tokens of a text that are read.
_MOST = 256
#: The same where each is a call.
_SINGLE = 64
#: The same where only PyTorch reads them.
_MEASURED = 1024


def text_calls(model: torch.nn.Module, export: Export, folder: Path | None, text: Path | None) -> list[ExpectedCall]:
    """Calls with as much of the text as the export takes: one, or token by token where it returns the last one's logits. None
    without a tokenizer, or for what reads no text by itself. With a ``text`` of the user's, what stands in the way is an
    error."""
    ids = _ids(folder, text)
    if ids is None:
        return []
    name = next((each for each in ("decode", "model") if each in export.interfaces), None)
    interface = export.interfaces.get(name or "")
    graph: dict[str, Any] = next((each for each in export.manifest.get("graphs", ()) if each["component"] == name), {})
    inputs = graph.get("inputs") if not export.has_components else None
    if name is None or interface is None or (inputs is not None and inputs[0] != "input_ids"):
        return []
    most = (interface["dims"].get("sequence") or {}).get("max") or _MOST
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or _MOST
    ids = ids[:, : min(most, positions, _MOST)]
    with torch.no_grad():
        output = model(input_ids=ids, **call_flags(model.forward, use_cache=False, return_dict=True))
    if not hasattr(output, "logits") or output.logits.dim() != 3:
        return []
    following = torch.cat([ids[0, 1:], torch.tensor([-1])])

    def call(first: int, last: int, flat: dict[str, torch.Tensor]) -> ExpectedCall:
        text = f"{last - first} of a text, on {first}"
        logits = output.logits[:, first:last]
        return ExpectedCall(name, "text", text, flat, {"logits": logits}, partial=True, following=following[first:last])

    if inputs is not None and "cache_position" in inputs:
        return [call(i, i + 1, {"input_ids": ids[:, i : i + 1], "cache_position": torch.tensor([i])})
                for i in range(min(ids.shape[1], _SINGLE))]  # fmt: skip
    if inputs is not None:
        given = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        return [call(0, ids.shape[1], {each: given[each] for each in inputs})]
    try:
        flat = complete(interface, {"input_ids": ids})
    except LookupError:
        return []
    return [call(0, ids.shape[1], flat)] if fits(flat, interface) else []


def text_logits(model: torch.nn.Module, folder: Path, text: Path | None) -> tuple[torch.Tensor, torch.Tensor] | None:
    """Logits [tokens, vocabulary] of a text, and the ids that follow each of its tokens; None for models that read none by
    themselves."""
    ids = _ids(folder, text)
    if ids is None or getattr(model.config, "is_encoder_decoder", False):
        return None
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None) or _MEASURED
    ids = ids[:, : min(positions, _MEASURED)]
    try:
        with torch.no_grad():
            logits = model(input_ids=ids, **call_flags(model.forward, use_cache=False, return_dict=True)).logits
    except Exception:  # noqa: BLE001 - a model that wants more than a text
        return None
    return (logits[0], torch.cat([ids[0, 1:], torch.tensor([-1])])) if logits.dim() == 3 else None


def text_ids(folder: Path, text: Path | None) -> torch.Tensor:
    """[1, tokens] of the text, or of some words that the tokenizer knows."""
    ids = _ids(folder, text)
    if ids is None:
        raise ExportError(f"{folder} has no tokenizer that reads a text", code="not-found", hint="put tokenizer.json there")
    return ids


def _ids(folder: Path | None, text: Path | None) -> torch.Tensor | None:
    tokenizer = tokenizer_of(folder, text)
    if tokenizer is None:
        return None
    words = "\n".join(TEXTS) if text is None else read_text(text)
    try:
        ids = tokenizer(words, return_tensors="pt")["input_ids"]
    except Exception as error:  # noqa: BLE001 - tokenizers are others' code
        if text is not None:
            raise ExportError(f"the tokenizer fails on {text}: {error}", code="invalid-input", hint="leave out --text") from error
        return None
    return ids if ids.numel() > 1 else None


def tokenizer_of(folder: Path | None, text: Path | None) -> Any:
    """None without one; an error if there is a ``text`` of the user's to read with it."""
    if folder is None or not (folder / "tokenizer.json").is_file():
        if text is not None:
            raise ExportError(f"{folder} has no tokenizer.json to read {text} with", code="not-found", hint="leave out --text")
        return None
    try:
        from transformers import AutoTokenizer

        return AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except Exception as error:  # noqa: BLE001
        if text is not None:
            raise ExportError(f"the tokenizer fails on {text}: {error}", code="invalid-input", hint="leave out --text") from error
        return None


def read_text(text: Path) -> str:
    try:
        return text.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ExportError(f"{text} cannot be read: {error}", code="not-found", hint="--text is a file of UTF-8 text") from error
