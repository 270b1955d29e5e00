"""Tokens: ordinary ones, padding, placeholders for images and audio, and what goes along with them."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

from .request import Request, nested
from .placeholders import placeholders
from .tokens import is_token

#: Ordinary tokens are taken from the first ids of the vocabulary that mean nothing special.
_ORDINARY = 80


def add_text(request: Request) -> None:
    """Adds token ids and what depends on them, if the model takes any."""
    if request.takes("input_ids"):
        choices = _choices(request)
        sizes = request.sizes
        request.sizes = replace(sizes, batch=sizes.batch * choices)
        _add_tokens(request)
        request.sizes = sizes
        if choices > 1:
            request.inputs = {name: tensor.unflatten(0, (sizes.batch, choices)) for name, tensor in request.inputs.items()}
    if request.takes("task_inputs"):  # a question of one length
        request.inputs["task_inputs"] = ordinary_tokens(request, request.sizes.batch, request.find("task_seq_len"))
    if request.takes("decoder_input_ids") and getattr(request.config, "is_encoder_decoder", False) and not _reads_again(request):
        request.inputs["decoder_input_ids"] = _decoder_tokens(request)


def _choices(request: Request) -> int:
    """Texts in a row of the batch, of which heads choose one; two or three, for they may be any number."""
    return (2, 3)[request.media] if type(request.model).__name__.endswith("ForMultipleChoice") else 1


def add_embedded(request: Request) -> None:
    """What stands for tokens in parts of models that have no embedding of their own."""
    import torch

    name = next((name for name in ("inputs_embeds", "query_embeds") if request.takes(name)), None)
    width = request.find("hidden_size")
    if name is None or width is None:
        return
    request.inputs[name] = request.normal(request.sizes.batch, request.sizes.sequence, width)
    if request.takes("attention_mask"):
        request.inputs["attention_mask"] = torch.ones(request.sizes.batch, request.sizes.sequence, dtype=torch.long)
    looked_at = request.find("encoder_hidden_size")
    if request.takes("encoder_hidden_states") and looked_at is not None:
        request.inputs["encoder_hidden_states"] = request.normal(request.sizes.batch, (9, 14)[request.media], looked_at)


def special_tokens(config: Any) -> set[int]:
    """Ids that mean something to the model."""
    found: set[int] = set()
    for part in nested(config):
        for name, value in vars(part).items():
            if is_token(name):
                values = value if isinstance(value, (list, tuple)) else [value]
                found |= {v for v in values if isinstance(v, int)}
    return found


def ordinary_tokens(request: Request, rows: int, columns: int, vocabulary: int | None = None) -> Any:
    """Ids of plain words."""
    import torch

    vocabulary = vocabulary or text_vocabulary(request)
    special = special_tokens(request.config)
    ids = [i for i in range(3, vocabulary) if i not in special][:_ORDINARY] or list(range(vocabulary))
    chosen = torch.randint(len(ids), (rows, columns), generator=request.generator)
    return torch.tensor(ids)[chosen]


def text_vocabulary(request: Request) -> int:
    """Rows of the token embedding."""
    config = request.config
    try:
        text = config.get_text_config()
    except (AttributeError, ValueError):
        text = getattr(config, "text_encoder", config)  # several parts have text: the one that reads it
    for part in (text, *nested(config)):
        for name in ("vocab_size", "input_vocab_size", "encoder_vocab_size"):
            value = getattr(part, name, None)
            if isinstance(value, int):
                return value
    return 128


def padding_token(config: Any) -> int:
    """The id that fills rows up."""
    for part in nested(config):
        for name in ("pad_token_id", "eos_token_id"):
            value = getattr(part, name, None)
            value = value[0] if isinstance(value, (list, tuple)) and value else value
            if isinstance(value, int) and value >= 0:
                return value
    return 0


def _add_tokens(request: Request) -> None:
    import torch

    sizes = request.sizes
    sequence, longest = sizes.sequence, _longest(request)
    if sequence > longest:
        sequence = max(1, longest - sequence % 3)  # lengths that differ still do
    if request.takes("qformer_input_ids"):  # what to look for in the picture: the question, in another vocabulary
        words = getattr(getattr(request.config, "qformer_config", None), "vocab_size", None)
        request.inputs["qformer_input_ids"] = ordinary_tokens(request, sizes.batch, sequence, words)
        request.inputs["qformer_attention_mask"] = torch.ones_like(request.inputs["qformer_input_ids"])
    ids = _with_placeholders(request, ordinary_tokens(request, sizes.batch, sequence))
    mask = torch.ones_like(ids)
    padding = min(sizes.padding, sequence - 1)
    if padding > 0:
        fill = torch.full((padding,), padding_token(request.config))
        if request.inputs and not request.model.can_generate():
            # models that compare texts with something else read the first or the last word: they pad on the right
            ids[0, -padding:], mask[0, -padding:] = fill, 0
        else:
            # the row keeps its placeholders: it loses words at its end and gains padding at its start
            ids[0] = torch.cat([fill, ids[0, :-padding]])
            mask[0, :padding] = 0
    if isinstance(question := request.find("question_token_id"), int):
        ids[:, -1] = question
    ending = request.find("eos_token_id")
    if _reads_again(request) and isinstance(ending, int):  # they say what they found at the end of the text
        ids[:, -1] = ending
    request.inputs["input_ids"] = ids
    if request.takes("attention_mask"):
        request.inputs["attention_mask"] = mask
    _add_companions(request, ids)


def _longest(request: Request) -> int:
    """Words that a model with a table of positions has room for; rotary positions have no end."""
    for part in nested(request.config):
        positions = getattr(part, "max_position_embeddings", None)
        if isinstance(positions, int) and hasattr(part, "vocab_size"):
            rotary = (
                getattr(part, "rope_parameters", None)
                or getattr(part, "rope_scaling", None)
                or getattr(part, "rope_theta", None)
            )
            return 10**9 if rotary else positions
    return 10**9


def _with_placeholders(request: Request, ids: Any) -> Any:
    """Puts what stands for images and audio after the first word."""
    import torch

    runs = placeholders(request)
    if request.takes("image_embeds_position_mask"):  # any tokens, told by a mask
        runs = [ordinary_tokens(request, 1, 1).item()] * request.find("latent_query_num")
    if not runs:
        return ids
    run = torch.tensor(runs).expand(ids.shape[0], -1)
    return torch.cat([ids[:, :1], run, ids[:, 1:]], dim=1)


def _add_companions(request: Request, ids: Any) -> None:
    import torch

    types = getattr(request.config, "type_vocab_size", None)
    if request.takes("token_type_ids") and isinstance(types, int) and types > 1 and not request.model.can_generate():
        second = torch.arange(ids.shape[1]) >= (ids.shape[1] + 1) // 2
        request.inputs["token_type_ids"] = second.long().expand_as(ids).clone()
    if request.takes("bbox"):
        limit = request.find("max_2d_position_embeddings", default=128) // 2
        corners = torch.randint(0, limit, (*ids.shape, 2), generator=request.generator)
        extents = torch.randint(1, limit, (*ids.shape, 2), generator=request.generator)
        request.inputs["bbox"] = torch.cat([corners, corners + extents - 1], dim=-1)
    if request.takes("codebook_idx"):
        codes = request.find("n_codes_total", default=8)
        request.inputs["input_ids"] = torch.stack([ids] * codes, dim=-1)
        request.inputs["codebook_idx"] = request.find("n_codes_given", default=1)
    if request.takes("image_embeds_position_mask"):
        places = torch.arange(ids.shape[1])
        told = (places > 0) & (places <= request.find("latent_query_num"))
        request.inputs["image_embeds_position_mask"] = told.long().expand_as(ids).clone()
    if request.takes("cross_attention_mask", "aspect_ratio_ids"):
        tiles = request.inputs["aspect_ratio_mask"].shape[-1]
        request.inputs["cross_attention_mask"] = torch.ones(*ids.shape, 1, tiles, dtype=torch.long)
    pixels = request.inputs.get("pixel_values")
    if request.takes("image_attention_mask") and pixels is not None and pixels.dim() == 5:
        request.inputs["image_attention_mask"] = torch.ones(*ids.shape, pixels.shape[1], dtype=torch.long)
    if request.takes("mm_token_type_ids"):
        request.inputs["mm_token_type_ids"] = _media_types(request, ids)
    if request.takes("token_type_ids", "pixel_values") and request.model.can_generate():
        # Images attend to themselves in both directions. PaliGemma gives the types another meaning: 0 is the prompt, all of
        # which does. Its configuration has no field that says so.
        types = torch.zeros_like(ids) if request.config.model_type == "paligemma" else _media_types(request, ids)
        request.inputs["token_type_ids"] = types


def _media_types(request: Request, ids: Any) -> Any:
    """0 for words, 1 for images, 2 for videos, as processors mark them."""
    import torch

    kinds = torch.zeros_like(ids)
    for number, names in ((1, ("image_token_id", "image_token_index")), (2, ("video_token_id", "video_token_index"))):
        token = request.find(*names)
        if isinstance(token, int):
            kinds[ids == token] = number
    return kinds


def start_token(model: Any) -> int:
    """The id that a decoder begins with; ``generate`` puts it first if it isn't there."""
    for source in (getattr(model, "generation_config", None), *nested(model.config)):
        for name in ("decoder_start_token_id", "bos_token_id"):
            value = getattr(source, name, None)
            if isinstance(value, int):
                return value
    return padding_token(model.config)


def _decoder_tokens(request: Request) -> Any:
    sizes = request.sizes
    config = request.config
    decoder = getattr(config, "decoder", None) or config
    vocabulary = getattr(config, "decoder_vocab_size", None) or getattr(decoder, "vocab_size", None)
    codes = getattr(getattr(config, "decoder_config", None), "num_channels", None)
    if isinstance(codes, int):  # of each step, one after another
        return ordinary_tokens(request, sizes.batch, max(1, sizes.decoder_sequence) * codes, vocabulary).unflatten(1, (-1, codes))
    rows = sizes.batch * getattr(decoder, "num_codebooks", 1)  # decoders of audio codes take a row for each codebook
    ids = ordinary_tokens(request, rows, 1 if _one_by_one(request) else max(1, sizes.decoder_sequence), vocabulary)
    start = start_token(request.model)
    if 0 <= start < (vocabulary or text_vocabulary(request)):
        ids[:, 0] = start
    return ids


def _reads_again(request: Request) -> bool:
    """Whether the decoder gets the text of the encoder again, from ``forward`` itself: so do heads that sort texts and find
    answers in them."""
    heads = ("ForSequenceClassification", "ForQuestionAnswering")
    return getattr(request.config, "is_encoder_decoder", False) and type(request.model).__name__.endswith(heads)


def _one_by_one(request: Request) -> bool:
    """Whether the decoder gets a single token a call, as transducers do and their documentation says."""
    text = type(request.model).forward.__doc__ or ""
    return re.search(r"decoder_input_ids\W+\(`[\w.]+` of shape `\(batch_size, 1\)`", text) is not None
