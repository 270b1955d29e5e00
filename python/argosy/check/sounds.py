"""Sounds that models hear, the user's or some of our own, and the words that they hear in them."""

from __future__ import annotations

import logging
import math
import wave
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..errors import ExportError
from .calls import error_line

logger = logging.getLogger(__name__)

#: Seconds of a piece of the user's sound, how many of them are heard, and tokens that are generated for each.
_PIECE, _MOST_PIECES, _NEW_TOKENS = 20, 16, 64
#: Sounds of our own: how long, and the tone that each begins with.
_SECONDS, _TONES = 3, (220.0, 330.0, 140.0, 500.0)
_VOCABULARIES = ("tokenizer.json", "vocab.json", "vocab.txt", "tokenizer.model", "sentencepiece.bpe.model")


def hears(model: torch.nn.Module) -> bool:
    """Whether it goes on from sounds alone."""
    return getattr(model, "main_input_name", "") in ("input_features", "input_values")


def is_ctc(model: torch.nn.Module) -> bool:
    """Whether its logits are letters of what was said, with gaps and repetitions."""
    from transformers.models.auto.modeling_auto import MODEL_FOR_CTC_MAPPING_NAMES

    return type(model).__name__ in set(MODEL_FOR_CTC_MAPPING_NAMES.values())


def sound_arguments(folder: Path, audio: Path | None) -> list[dict[str, torch.Tensor]] | None:
    """What the model's own feature extractor makes of each sound. None if it has none; with a file of the user's that is an
    error."""
    try:
        if not any((folder / name).is_file() for name in ("preprocessor_config.json", "processor_config.json")):
            raise FileNotFoundError(f"{folder} has no preprocessor_config.json")
        from transformers import AutoFeatureExtractor

        extractor = AutoFeatureExtractor.from_pretrained(folder, local_files_only=True)
        rate = int(extractor.sampling_rate)
        sounds = _made(rate) if audio is None else read_sound(audio, rate)
        return [dict(extractor(each.numpy(), sampling_rate=rate, return_tensors="pt")) for each in sounds]
    except ExportError:
        raise
    except Exception as error:  # noqa: BLE001 - processors are others' code
        if audio is not None:
            raise ExportError(f"{audio} cannot be heard: {error_line(error)}", code="invalid-input", hint="leave out --audio") from error
        return None


def read_sound(file: Path, rate: int) -> list[torch.Tensor]:
    """A WAV file as samples of -1 to 1, in pieces."""
    hint = f"--audio is a WAV file with 16 bits and {rate} samples a second"
    try:
        with wave.open(str(file)) as sound:
            if sound.getsampwidth() != 2 or sound.getframerate() != rate:
                raise ExportError(f"{file} has {8 * sound.getsampwidth()} bits and {sound.getframerate()} samples a second",
                                  code="invalid-input", hint=hint)  # fmt: skip
            channels = sound.getnchannels()
            stored = bytearray(sound.readframes(_PIECE * _MOST_PIECES * rate))
    except (OSError, EOFError, wave.Error) as error:
        raise ExportError(f"{file} cannot be read: {error}", code="not-found", hint=hint) from error
    samples = torch.frombuffer(stored, dtype=torch.int16).float().view(-1, channels).mean(1) / 32768 if stored else torch.zeros(0)
    # The rest behind the last whole piece may be too short to be heard.
    pieces = [piece for piece in samples.split(_PIECE * rate) if len(piece) >= rate // 2]
    if not pieces:
        raise ExportError(f"{file} is shorter than half a second", code="invalid-input", hint=hint)
    return pieces


def _made(rate: int) -> list[torch.Tensor]:
    """Tones that rise, and others that come and go."""
    time = torch.arange(_SECONDS * rate, dtype=torch.float64) / rate
    return [
        (0.4 * torch.sin(2 * math.pi * (tone + 180 * time) * time)
         + 0.2 * torch.sin(2 * math.pi * 4 * tone * time) * (torch.sin((6 + number) * time) > 0)).float()
        for number, tone in enumerate(_TONES)
    ]  # fmt: skip


@dataclass(frozen=True)
class Transcriber:
    """Makes words of tokens, or leaves them tokens where there is no tokenizer."""

    tokenizer: Any
    #: the token that stands for nothing
    blank: int | None
    special: frozenset[int]

    @classmethod
    def of(cls, model: torch.nn.Module, folder: Path) -> Transcriber:
        tokenizer = None
        try:
            from transformers import AutoTokenizer

            if any((folder / name).is_file() for name in _VOCABULARIES):
                tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # noqa: BLE001 - tokenizers are others' code
            logger.debug("the tokenizer of %s fails: %s", folder, error_line(error))
        config = model.config
        special = {getattr(config, name, None) for name in ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")}
        return cls(tokenizer, getattr(config, "pad_token_id", None), frozenset(each for each in special if isinstance(each, int)))

    @property
    def unit(self) -> str:
        return "tokens" if self.tokenizer is None else "words"

    def of_logits(self, logits: torch.Tensor) -> list[Any]:
        """Of a CTC head: [frames, letters]."""
        best = logits.float().argmax(-1).unique_consecutive().tolist()
        letters = [each for each in best if each != self.blank]
        if self.tokenizer is None:
            return letters
        # Repetitions are gone already: what is left twice was said twice.
        return self.tokenizer.decode(letters, skip_special_tokens=True, group_tokens=False).split()

    def of_tokens(self, tokens: list[int]) -> list[Any]:
        """Of generated text."""
        if self.tokenizer is None:
            return [each for each in tokens if each not in self.special]
        return self.tokenizer.decode(tokens, skip_special_tokens=True).split()


def transcripts(model: torch.nn.Module, folder: Path, audio: Path | None) -> tuple[list[list[Any]], str] | None:
    """What a model that generates says to each sound, greedily, and whether these are words or tokens. None if it cannot."""
    from ..capture.twin import Sizes, sample_inputs

    sounds = sound_arguments(folder, audio)
    if sounds is None:
        sounds = [sample_inputs(model, Sizes(batch=1), seed=seed) for seed in range(len(_TONES))]
    transcriber, found = Transcriber.of(model, folder), []
    for each in sounds:
        given = {name: value.to(model.dtype) if value.is_floating_point() else value for name, value in each.items()
                 if not name.startswith("decoder_")}  # fmt: skip
        try:
            with torch.no_grad():
                made = model.generate(**given, max_new_tokens=_NEW_TOKENS, do_sample=False, num_beams=1)
        except Exception as error:  # noqa: BLE001 - generate runs code of the model's own
            if audio is not None:
                raise ExportError(f"the model does not go on from {audio}: {error_line(error)}", code="invalid-input",
                                  hint="leave out --audio") from error  # fmt: skip
            logger.debug("generate of %s fails: %s", type(model).__name__, error_line(error))
            return None
        found.append(transcriber.of_tokens(made[0].tolist()))
    return found, transcriber.unit
