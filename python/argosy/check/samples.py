"""What an export of a model that generates nothing costs: its outputs beside those of the model in float32, for texts or sounds of
the user's, else for some of our own."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from ..capture.components import call_flags, output_dict
from ..structures import identifier, named_leaves
from .calls import ExpectedCall, error_line
from .engines import EngineError, EngineProcess, Export
from .interface import DTYPES, complete, fits
from .quality import Measure, Nearness, Quality, WordError
from .rows import Row, paired, quality_row
from .sounds import Transcriber, is_ctc, sound_arguments
from .texts import read_text, tokenizer_of
from .tokens import TEXTS

logger = logging.getLogger(__name__)

#: Lines of a text that are read, and samples where there is none.
_MOST_TEXTS, _SAMPLES = 64, 8
#: Of outputs that are kept until the export is asked.
_MOST_NUMBERS = 1 << 26
_TEXT_INPUTS = {"input_ids", "attention_mask", "token_type_ids", "position_ids"}
_SOUND_INPUTS = {"input_values", "input_features"}
#: Outputs that models are asked for, the best known first; else it is the first one.
_OUTPUTS = ("sentence_embedding", "logits", "logits_per_image", "text_embeds", "image_embeds", "last_hidden_state", "pooler_output")


@dataclass
class Samples:
    """Calls with the outputs of the model as it is, and what of these counts."""

    #: what they are: "texts", "sounds" or "samples"
    each: str
    calls: list[ExpectedCall]
    output: str
    #: how the vectors of tokens become one, where they do
    pooling: str = ""
    #: logits of as many tokens as the model knows, or of classes
    vocabulary: int = 0
    #: what makes words of logits; None: they are no letters
    transcriber: Transcriber | None = None
    measures: list[Measure] = field(default_factory=list)

    def measure(self, engine: EngineProcess) -> Row | None:
        """Asks the export the same."""
        wants: list[torch.Tensor] = []
        haves: list[torch.Tensor] = []
        try:
            for call in self.calls:
                outputs, _ = engine.call(call.component, call.inputs)
                wanted, made = paired(call, outputs)
                if self.output not in made:
                    return None
                wants.append(wanted[self.output])
                haves.append(made[self.output])
            if wants[0][0].numel() == 1:  # scores: alone, a number has no direction
                self.measures = [Nearness(f"the {self.output} of {len(wants)} {self.each}", "vectors")]
                wants, haves = ([torch.cat(each).flatten()[None]] for each in (wants, haves))
            for call, want, have in zip(self.calls, wants, haves, strict=False):
                self._compare(call, want, have)
        except EngineError as error:
            return Row("all", "quality", self.each, False, note=str(error))
        measures = [each for each in self.measures if each.figures()]
        return quality_row(*measures) if measures else None

    def _compare(self, call: ExpectedCall, want: torch.Tensor, have: torch.Tensor) -> None:
        if want.shape != have.shape:
            raise EngineError(f"{self.output} has shape {tuple(have.shape)} instead of {tuple(want.shape)}")
        if not self.measures:
            self.measures = self._measures(want)
        mask = call.inputs.get("attention_mask")
        counts = mask.bool() if mask is not None and want.dim() == 3 and mask.shape == want.shape[:2] else None
        for each in self.measures:
            if isinstance(each, WordError):
                assert self.transcriber is not None
                for one, other in zip(want, have, strict=True):
                    each.add(self.transcriber.of_logits(one), self.transcriber.of_logits(other))
            elif isinstance(each, Quality):
                each.add(*((x[counts] if counts is not None else x.flatten(0, -2)).float() for x in (want, have)))
            elif isinstance(each, Nearness):
                for row in range(len(want)):
                    rows = counts[row] if counts is not None else None
                    each.add(*(_pooled(x[row], rows, self.pooling) for x in (want, have)))

    def _measures(self, want: torch.Tensor) -> list[Measure]:
        if self.transcriber is not None and want.dim() == 3:
            return [WordError(self.transcriber.unit, self.each)]
        is_pooled = want.dim() == 3 and self.pooling != ""
        found: list[Measure] = [Nearness(f"{self.output} ({self.pooling} of tokens)" if is_pooled else self.output, self.each)]
        if self.output == "logits" and want.dim() in (2, 3) and want.shape[-1] > 1:
            best = "token" if want.shape[-1] == self.vocabulary else "class"
            found.insert(0, Quality(best, self.each if want.dim() == 2 else "tokens"))
        return found


def _pooled(rows: torch.Tensor, counts: torch.Tensor | None, pooling: str) -> torch.Tensor:
    """One vector: of tokens as the model's users make it, of other outputs as it is."""
    if rows.dim() != 2 or not pooling:
        return rows
    rows = rows.float() if counts is None else rows[counts].float()
    if pooling == "first" or not len(rows):
        return rows[:1]
    return {"last": rows[-1:], "max": rows.amax(0), "mean": rows.mean(0)}[pooling]


def take_samples(
    model: torch.nn.Module, export: Export, folder: Path, text: Path | None, audio: Path | None,
    own: Sequence[Mapping[str, Any]] = (),
) -> Samples | None:  # fmt: skip
    """Runs the model, which computes in float32. None for what is no single graph, or what no call can be made for. ``own``: the
    user's own inputs, which are then the samples."""
    interface = export.interfaces.get("model")
    if interface is None or not export.has_components:
        return None
    names = {item.get("path", item["name"]) for item in interface["inputs"]}
    each, arguments = _arguments(model, names, interface, folder, text, audio)
    if own:
        each, arguments = "samples", (dict(inputs) for inputs in own)
    calls: list[ExpectedCall] = []
    output, kept = None, 0
    for given in arguments:
        try:
            call = _call(model, interface, given)
        except Exception as error:  # noqa: BLE001 - models are others' code
            logger.debug("%s cannot be measured: %s", type(model).__name__, error_line(error))
            continue
        if call is None:
            continue
        floats = [name for name, tensor in call.outputs.items() if tensor.is_floating_point() and tensor.dim() > 1]
        output = output or next((name for name in (*_OUTPUTS, *floats) if name in floats), None)
        if output not in call.outputs:
            return None
        call.outputs = {output: call.outputs[output]}
        calls.append(call)
        kept += call.outputs[output].numel()
        if kept > _MOST_NUMBERS:
            break
    if output is None:
        return None
    transcriber = Transcriber.of(model, folder) if is_ctc(model) and output == "logits" else None
    pooling = _pooling(folder) if "input_ids" in names and output == "last_hidden_state" else ""
    return Samples(each, calls, output, pooling, getattr(model.config, "vocab_size", 0) or 0, transcriber)


def _arguments(model: torch.nn.Module, names: set[str], interface: Mapping[str, Any], folder: Path, text: Path | None,
               audio: Path | None) -> tuple[str, Iterator[dict[str, Any]]]:  # fmt: skip
    if "input_ids" in names and names <= _TEXT_INPUTS and (tokenizer := tokenizer_of(folder, text)) is not None:
        return "texts", _of_texts(model, tokenizer, names, interface, text)
    if names & _SOUND_INPUTS and (sounds := sound_arguments(folder, audio)) is not None:
        return "sounds", ({name: value for name, value in each.items() if name in names} for each in sounds)
    return "samples", _of_samples(model, interface)


def _of_texts(model: torch.nn.Module, tokenizer: Any, names: set[str], interface: Mapping[str, Any],
              text: Path | None) -> Iterator[dict[str, Any]]:  # fmt: skip
    """One for each line."""
    lines = TEXTS if text is None else [line for line in read_text(text).splitlines() if line.strip()][:_MOST_TEXTS]
    longest = [getattr(model.config, "max_position_embeddings", None), tokenizer.model_max_length,
               (interface["dims"].get("sequence") or {}).get("max")]  # fmt: skip
    # Some models count positions from the id of padding.
    room = 2 + max(getattr(model.config, "pad_token_id", None) or 0, 0)
    most = max(min(each for each in longest if each) - room, 8)
    for line in lines:
        made = tokenizer(line, truncation=True, max_length=most, return_tensors="pt")
        found = {name: value for name, value in made.items() if name in names}
        if "token_type_ids" in names:
            found.setdefault("token_type_ids", torch.zeros_like(found["input_ids"]))
        if found["input_ids"].numel():
            yield found


def _of_samples(model: torch.nn.Module, interface: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """As the check makes inputs anyway, of the first size that the export takes."""
    from ..capture.twin import Sizes, sample_inputs

    for media in (0, 1, 2):
        found = [sample_inputs(model, Sizes(batch=1, sequence=13, media=media), seed=seed) for seed in range(_SAMPLES)]
        if _flat(interface, found[0]) is not None:
            yield from found
            return


def _flat(interface: Mapping[str, Any], arguments: Mapping[str, Any]) -> dict[str, torch.Tensor] | None:
    """Inputs of the graph, in its dtypes; None if it is for other sizes."""
    leaves = {identifier(name): tensor for name, tensor in named_leaves(dict(arguments)).items()}
    wanted = {item["name"]: DTYPES.get(item["dtype"]) for item in interface["inputs"]}
    try:
        flat = complete(interface, {name: leaves[name] for name in wanted if name in leaves})
    except LookupError:
        return None
    return {name: x.to(wanted[name] or x.dtype) for name, x in flat.items()} if fits(flat, interface) else None


def _call(model: torch.nn.Module, interface: Mapping[str, Any], arguments: dict[str, Any]) -> ExpectedCall | None:
    flat = _flat(interface, arguments)
    if flat is None:
        return None
    with torch.no_grad():
        made = model(**arguments, **call_flags(model.forward, use_cache=False, return_dict=True))
    outputs = {name: tensor.clone() for name, tensor in named_leaves(output_dict(made)).items()}
    return ExpectedCall("model", "quality", "", flat, outputs, partial=True)


def _pooling(folder: Path) -> str:
    """What sentence-transformers does with a model's tokens, as far as it is known here."""
    try:
        config = json.loads((folder / "1_Pooling/config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return "mean"
    modes = {"pooling_mode_cls_token": "first", "pooling_mode_max_tokens": "max", "pooling_mode_lasttoken": "last"}
    return next((pooling for key, pooling in modes.items() if isinstance(config, dict) and config.get(key) is True), "mean")
