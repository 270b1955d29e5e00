"""Draws of configurations: ``draw(seed, index)`` is the same everywhere, from Python's own generator alone.

The index chooses the family, so that a run of some length has all of them; chance does the rest."""

from __future__ import annotations

import random
from dataclasses import asdict, dataclass
from typing import Any

from .decoders import DECODERS
from .encoders import ENCODERS
from .fields import chance
from .others import MORE, SEQ2SEQ, VISION

#: Which auto class of transformers makes a model, by head.
HEADS = {
    "causal-lm": "AutoModelForCausalLM",
    "sequence-classification": "AutoModelForSequenceClassification",
    "token-classification": "AutoModelForTokenClassification",
    "question-answering": "AutoModelForQuestionAnswering",
    "masked-lm": "AutoModelForMaskedLM",
    "base": "AutoModel",
    "seq2seq-lm": "AutoModelForSeq2SeqLM",
    "speech-seq2seq": "AutoModelForSpeechSeq2Seq",
    "image-classification": "AutoModelForImageClassification",
    "semantic-segmentation": "AutoModelForSemanticSegmentation",
    "audio-classification": "AutoModelForAudioClassification",
    "ctc": "AutoModelForCTC",
}
#: Families that are drawn twice as often as others: most checkpoints are of them.
_FREQUENT = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "gemma3_text", "phi3", "gpt2", "bert", "roberta", "t5", "bart")
#: Heads of text encoders. Multiplicity is likelihood.
_TEXT_HEADS = ("sequence-classification", "token-classification", "question-answering", "masked-lm", "masked-lm", "base")
#: Decoders whose family has a class for classification too.
_CLASSIFIERS = ("llama", "mistral", "qwen2", "qwen3", "gemma2", "phi3", "gpt2", "gpt_neox", "opt", "bloom", "mixtral", "gemma", "starcoder2", "falcon")


@dataclass
class Draw:
    """A checkpoint to be."""

    seed: int
    index: int
    family: str
    head: str
    fields: dict[str, Any]
    #: of the weights that are saved
    dtype: str = "float32"
    #: a second source of a tied weight in the file: "", "equal" or "different"
    second_source: str = ""
    #: config.json says ``rope_scaling`` and ``rope_theta``, as files that older versions wrote
    legacy_rope: bool = False
    #: lengths of the calls
    prompt: int = 24
    #: further exports: "text-generation" (.pte with states), "genai" (bundle)
    extras: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        """How it is called."""
        if self.head == "causal-lm":
            return "decoder"
        return "seq2seq" if self.head in ("seq2seq-lm", "speech-seq2seq") else "single"

    def describe(self) -> dict[str, Any]:
        return asdict(self)


def families() -> list[tuple[str, str]]:
    """All of (group, family) in the order that indices go round."""
    groups = {"decoder": DECODERS, "encoder": ENCODERS, "seq2seq": SEQ2SEQ, "vision": VISION, "more": MORE}
    every = [(group, name) for group, members in groups.items() for name in members]
    return every + [(group, name) for group, name in every if name in _FREQUENT]


def draw(seed: int, index: int) -> Draw:
    every = families()
    order = random.Random(f"order {seed} {index // len(every)}").sample(every, len(every))
    group, family = order[index % len(every)]
    rng = random.Random(f"draw {seed} {index}")
    fields = {"decoder": DECODERS, "encoder": ENCODERS, "seq2seq": SEQ2SEQ, "vision": VISION, "more": MORE}[group][family](rng)
    made = Draw(seed, index, family, _head(rng, group, family, fields), fields)
    made.dtype = rng.choice(("float32",) * 6 + ("bfloat16", "float16"))
    made.prompt = rng.choice((21, 27, 35, 41))
    if group == "decoder":
        made.legacy_rope = "rope_type" in fields.get("rope_parameters", {}) and chance(rng, 0.25)
        if made.head == "causal-lm" and fields.get("tie_word_embeddings") and chance(rng, 0.35):
            made.second_source = rng.choice(("equal", "different"))
        if made.head == "causal-lm":
            made.extras = rng.choice(((), ("text-generation",), ("genai",)))
    return made


def _head(rng: random.Random, group: str, family: str, fields: dict[str, Any]) -> str:
    if group == "decoder":
        head = "sequence-classification" if family in _CLASSIFIERS and chance(rng, 0.15) else "causal-lm"
    elif group == "encoder":
        head = rng.choice(_TEXT_HEADS)
    elif group == "seq2seq":
        head = "speech-seq2seq" if family == "whisper" else "seq2seq-lm"
    elif group == "vision":
        head = "semantic-segmentation" if family == "segformer" else rng.choice(("image-classification", "image-classification", "base"))
    elif family in ("clip", "siglip"):
        head = "base"
    elif family == "audio-spectrogram-transformer":
        head = "audio-classification"
    else:
        head = rng.choice(("ctc", "base", "audio-classification"))
    if head in ("sequence-classification", "token-classification"):
        fields["num_labels"] = rng.choice((2, 3, 7))
    return head
