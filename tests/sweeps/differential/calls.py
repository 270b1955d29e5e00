"""What eager answers: calls of a loaded model through plain transformers, nothing of argosy.

A ``Run`` is what one user does: an encoder's call, if there is one, then feeds of tokens, one after the other, on the cache of
those before. Models without a cache have runs of one feed."""

from __future__ import annotations

import inspect
from dataclasses import dataclass, field
from typing import Any

from .draw import Draw

NEW_TOKENS = 12
STEPS = 4


@dataclass
class Feed:
    """One call and what eager returns. ``ignored``: elements that no caller reads, by output."""

    inputs: dict[str, Any]
    expected: dict[str, Any]
    ignored: dict[str, Any] = field(default_factory=dict)


@dataclass
class Run:
    name: str
    feeds: list[Feed] = field(default_factory=list)
    encoder: dict[str, Any] | None = None
    #: greedy tokens instead of feeds: what ``generate`` makes of the first feed, and how far its best logits are apart
    tokens: list[int] | None = None
    margins: list[float] = field(default_factory=list)
    first: int = 0
    #: the largest difference of eager from itself in float32, with the same weights
    rounding: float = 0.0
    #: why eager could not do it; such runs are not compared
    reason: str = ""


def expected_runs(model: Any, draw: Draw) -> list[Run]:
    import torch

    makers = {"decoder": _decoder_runs, "seq2seq": _seq2seq_runs, "single": _single_runs}[draw.kind](model, draw)
    runs = []
    for name, make in makers:
        try:
            with torch.no_grad():
                run = make()
            run.name = name
            if not _is_finite(run):
                run = Run(name, reason="eager's numbers are not finite")
        except Exception as error:  # noqa: BLE001 - code of the model's own
            text = " ".join(str(error).split())
            run = Run(name, reason=f"eager fails: {type(error).__name__}: {text[:160]}")
        runs.append(run)
    return runs


def _is_finite(run: Run) -> bool:
    for feed in run.feeds:
        for name, tensor in feed.expected.items():
            counted = tensor if name not in feed.ignored else tensor[~feed.ignored[name].expand_as(tensor)]
            if not bool(counted.isfinite().all()):
                return False
    return True


# ---- inputs --------------------------------------------------------------------------------------------------------


def _generator(draw: Draw, salt: int) -> Any:
    import torch

    return torch.Generator().manual_seed(draw.seed * 7919 + draw.index * 31 + salt)


def text(model: Any, draw: Draw, rows: int, columns: int, salt: int = 0) -> Any:
    """Ids of ordinary tokens: none that means the end, padding or anything else."""
    import torch

    config = model.config.get_text_config()
    special: set[int] = set()
    for name, value in vars(config).items():
        if name.endswith("token_id") or name == "pad_token_id":
            special |= set(value) if isinstance(value, list) else {value}
    ordinary = [i for i in range(5, config.vocab_size) if i not in special]
    chosen = torch.randint(len(ordinary), (rows, columns), generator=_generator(draw, salt))
    return torch.tensor(ordinary)[chosen]


def padding_token(model: Any) -> int:
    token = getattr(model.config.get_text_config(), "pad_token_id", None)
    return 0 if token is None or token < 0 else token


def _padded(model: Any, ids: Any, lengths: list[int], *, left: bool) -> tuple[Any, Any]:
    import torch

    ids, mask = ids.clone(), torch.ones_like(ids)
    for row, length in enumerate(lengths):
        count = ids.shape[1] - length
        part = slice(0, count) if left else slice(length, None)
        ids[row, part], mask[row, part] = padding_token(model), 0
    return ids, mask


def _takes(model: Any, name: str) -> bool:
    return name in inspect.signature(model.forward).parameters


def _positions(mask: Any) -> Any:
    """As ``generate`` counts: from the first token that is none of padding."""
    return (mask.long().cumsum(-1) - 1).clamp(min=0)


# ---- decoders ------------------------------------------------------------------------------------------------------


def _decoder_runs(model: Any, draw: Draw) -> list[tuple[str, Any]]:
    import torch

    prompt, total = draw.prompt, draw.prompt + STEPS
    ids = text(model, draw, 1, total)
    ones = torch.ones_like(ids)
    steps = [1] * STEPS

    def whole_then_steps() -> Run:
        return Run("", _eager_feeds(model, ids, ones, [prompt, *steps]))

    def pieces() -> Run:
        sizes = [3, 1, prompt - 9, 5]
        if _depends_on_length(model):
            return Run("", _eager_feeds(model, ids, ones, sizes))
        # In one call: state-space layers of transformers take several tokens on a past wrong.
        return Run("", _split(_eager_feeds(model, ids[:, :prompt], ones[:, :prompt], [prompt]), sizes, ids, ones))

    def padded() -> Run:
        batch = text(model, draw, 3, total, salt=1)
        batch[:, :prompt], mask = _padded(model, batch[:, :prompt], [prompt, prompt - 5, max(2, prompt - 17)], left=True)
        mask = torch.cat([mask, torch.ones(3, STEPS, dtype=mask.dtype)], dim=1)
        return Run("", _eager_feeds(model, batch, mask, [prompt, *steps]))

    def short() -> Run:
        return Run("", _eager_feeds(model, ids, ones, [1, 1, 2]) if _depends_on_length(model) else
                   _split(_eager_feeds(model, ids[:, :4], ones[:, :4], [4]), [1, 1, 2], ids, ones))  # fmt: skip

    return [("prompt, then steps", whole_then_steps), ("prompt in pieces", pieces), ("padded batch", padded), ("one token first", short),
            ("greedy", lambda: _greedy(model, {"input_ids": ids[:, :prompt], "attention_mask": ones[:, :prompt]}))]  # fmt: skip


def _depends_on_length(model: Any) -> bool:
    """Whether keys of one text differ by how it is fed: rotary embeddings that change with the length."""
    return any(kind in ("dynamic", "longrope") for module in model.modules()
               for kind in _kinds(getattr(module, "rope_type", None)))  # fmt: skip


def _kinds(value: Any) -> list[str]:
    return list(value.values()) if isinstance(value, dict) else [value]


def _eager_feeds(model: Any, ids: Any, mask: Any, sizes: list[int]) -> list[Feed]:
    feeds, cache, start = [], {}, 0
    for size in sizes:
        end = start + size
        given = {"input_ids": ids[:, start:end], "attention_mask": mask[:, :end]}
        more = {"position_ids": _positions(mask[:, :end])[:, start:]} if _takes(model, "position_ids") else {}
        # Models of states alone see padding in their first call; ``generate`` leaves the mask out of later ones.
        seen = {"input_ids": given["input_ids"]} if "cache_params" in cache else given
        output = model(**seen, **more, **cache, use_cache=True)
        cache = {name: output[name] for name in ("past_key_values", "cache_params") if output.get(name) is not None}
        feeds.append(Feed(given, {"logits": output.logits.clone()}, {"logits": (mask[:, start:end] == 0)[..., None]}))
        start = end
    return feeds


def _split(whole: list[Feed], sizes: list[int], ids: Any, mask: Any) -> list[Feed]:
    logits, feeds, start = whole[0].expected["logits"], [], 0
    for size in sizes:
        end = start + size
        feeds.append(Feed({"input_ids": ids[:, start:end], "attention_mask": mask[:, :end]}, {"logits": logits[:, start:end]}))
        start = end
    return feeds


def _greedy(model: Any, prompt: dict[str, Any]) -> Run:
    import torch
    from transformers import GenerationConfig, GenerationMixin

    own = model.generation_config
    settings = GenerationConfig(max_new_tokens=NEW_TOKENS, do_sample=False, use_cache=True, return_dict_in_generate=True, output_logits=True,
                                bos_token_id=own.bos_token_id, decoder_start_token_id=own.decoder_start_token_id, pad_token_id=padding_token(model))  # fmt: skip
    model.generation_config = settings  # without an end, penalties and forced tokens
    try:
        made = GenerationMixin.generate(model, **prompt)  # Whisper has one of its own, for long recordings
    finally:
        model.generation_config = own
    logits = torch.stack([step[0].float() for step in made.logits])
    best = logits.topk(2, dim=-1).values
    margins = (best[:, 0] - best[:, 1]) / logits.abs().amax(-1).clamp_min(0.1)
    return Run("", [Feed(prompt, {})], None, made.sequences[0, -len(logits) :].tolist(), margins.tolist(), int(made.sequences[0, 0]))


# ---- encoder-decoders ----------------------------------------------------------------------------------------------


def _seq2seq_runs(model: Any, draw: Draw) -> list[tuple[str, Any]]:
    def steps_of(encoder: dict[str, Any], sizes: list[int]) -> Run:
        rows = next(iter(encoder.values())).shape[0]
        start = _start_token(model)
        ids = text(model, draw, rows, sum(sizes), salt=2)
        ids[:, 0] = start
        encoded = model.get_encoder()(**encoder)
        feeds, cache, at = [], None, 0
        mask = {"attention_mask": encoder["attention_mask"]} if "attention_mask" in encoder and _takes(model, "attention_mask") else {}
        for size in sizes:
            given = ids[:, at : at + size]
            output = model(encoder_outputs=encoded, decoder_input_ids=given, past_key_values=cache, use_cache=True, **mask)
            cache = output.past_key_values
            feeds.append(Feed({"decoder_input_ids": given}, {"logits": output.logits.clone()}))
            at += size
        return Run("", feeds, dict(encoder))

    def one() -> dict[str, Any]:
        return _encoder_inputs(model, draw, 1, [draw.prompt])

    def batch() -> dict[str, Any]:
        return _encoder_inputs(model, draw, 3, [draw.prompt, draw.prompt - 5, 4])

    def greedy() -> Run:
        run = _greedy(model, one())
        run.encoder = one()
        return run

    return [("prompt, then steps", lambda: steps_of(one(), [3, *[1] * STEPS, 9])), ("padded batch", lambda: steps_of(batch(), [1, 1, 5, 1])),
            ("greedy", greedy)]  # fmt: skip


def _start_token(model: Any) -> int:
    token = model.generation_config.decoder_start_token_id
    return int(token if token is not None else model.config.decoder_start_token_id)


def _encoder_inputs(model: Any, draw: Draw, rows: int, lengths: list[int]) -> dict[str, Any]:
    import torch

    if model.main_input_name == "input_features":
        config = model.config
        shape = (rows, config.num_mel_bins, 2 * config.max_source_positions)
        return {"input_features": torch.randn(shape, generator=_generator(draw, 3)).to(model.dtype)}
    ids, mask = _padded(model, text(model, draw, rows, max(lengths), salt=3), lengths, left=False)
    return {"input_ids": ids, "attention_mask": mask}


# ---- one call ------------------------------------------------------------------------------------------------------


def model_inputs(model: Any, draw: Draw, rows: int, length: int | None = None, *, padded: bool = False) -> dict[str, Any]:
    """Of a model without a cache, by the names of its parameters."""
    import torch

    length = length or draw.prompt
    generator, config, inputs = _generator(draw, 4 + rows), model.config, {}
    if _takes(model, "input_ids"):
        ids = text(model, draw, rows, min(length, _longest(config)), salt=5)
        columns = ids.shape[1]
        if draw.family in ("clip", "siglip"):
            ids[:, -1] = config.text_config.eos_token_id
        lengths = [columns, columns - 5, max(3, columns - 14)][:rows] if padded else [columns] * rows
        ids, mask = _padded(model, ids, lengths, left=False)
        inputs["input_ids"] = ids
        if _takes(model, "attention_mask"):
            inputs["attention_mask"] = mask
        types = getattr(config, "type_vocab_size", 0) or 0
        if _takes(model, "token_type_ids") and types > 1 and not _is_decoder(model):
            inputs["token_type_ids"] = (torch.arange(columns) >= columns // 2).long().expand_as(ids).contiguous()
    if _takes(model, "pixel_values"):
        vision = getattr(config, "vision_config", config)
        size = getattr(vision, "image_size", None) or 64
        shape = (rows, getattr(vision, "num_channels", 3), size, size)
        inputs["pixel_values"] = torch.randn(shape, generator=generator).to(model.dtype)
    if _takes(model, "input_values"):
        if draw.family == "audio-spectrogram-transformer":
            shape = (rows, config.max_length, config.num_mel_bins)
            inputs["input_values"] = torch.randn(shape, generator=generator).to(model.dtype)
        else:
            samples = 400 + 10 * length
            values = torch.randn((rows, samples), generator=generator)
            if padded and _takes(model, "attention_mask"):
                mask = torch.ones((rows, samples), dtype=torch.long)
                for row, count in enumerate((samples, samples - 150, samples // 2)[:rows]):
                    values[row, count:], mask[row, count:] = 0, 0
                inputs["attention_mask"] = mask
            inputs["input_values"] = values.to(model.dtype)
    return inputs


def _is_decoder(model: Any) -> bool:
    from .decoders import DECODERS

    return model.config.model_type in DECODERS


def _longest(config: Any) -> int:
    text_config = config.get_text_config()
    return int(getattr(text_config, "max_position_embeddings", None) or 10**6) - 8 if not getattr(text_config, "rope_parameters", None) else 10**6


def _single_runs(model: Any, draw: Draw) -> list[tuple[str, Any]]:
    def call(rows: int, length: int, *, padded: bool) -> Run:
        inputs = model_inputs(model, draw, rows, length, padded=padded)
        output = model(**inputs)
        expected = {name: value.clone() for name, value in output.items() if hasattr(value, "is_floating_point") and value.is_floating_point()}
        ignored = {}
        mask = inputs.get("attention_mask")
        for name, value in expected.items():
            if mask is not None and value.dim() >= 2 and tuple(value.shape[:2]) == tuple(mask.shape):
                ignored[name] = (mask == 0).reshape(*mask.shape, *[1] * (value.dim() - 2))
        return Run("", [Feed(inputs, expected, ignored)])

    runs = [("one row", lambda: call(1, draw.prompt, padded=False)), ("another length", lambda: call(2, 13, padded=False))]
    takes_mask = _takes(model, "attention_mask")
    if takes_mask:
        runs.append(("padded batch", lambda: call(3, draw.prompt, padded=True)))
    return runs
