"""Encoder-decoder models: an encoder that also computes the keys and values of cross attention, and a decoder on any past."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from .caches import emptied, full_length_cache
from .components import Component, Inputs, Shape, call_flags, output_dict, parameters_of, to_device

CACHE = "past_key_values"


MakeInputs = Callable[[torch.nn.Module, Shape], Inputs]


def encoder_length(shape: Shape) -> int:
    """Another length than the decoder's: 31 where 19 tokens are traced."""
    return shape.sequence + 12


def encoder_and_decoder(
    model: torch.nn.Module, make_inputs: MakeInputs | None = None, length: Callable[[Shape], int] = encoder_length
) -> list[Component]:
    """``encoder``: the model's input to hidden states and the cross-attention cache. ``decoder``: new tokens on that cache
    and any past of their own; it never sees the hidden states, so an engine projects them once a prompt. ``make_inputs``
    makes the inputs of the encoder, by default those of the model that it takes; ``length`` is how long they are."""
    given: dict[str, Any] = {} if make_inputs is None else {"make_inputs": make_inputs}

    def symbols(shape: Shape) -> dict[str, int]:
        return {"batch": shape.batch, "encoder_sequence": length(shape)}

    def decoder_symbols(shape: Shape) -> dict[str, int]:
        return {**symbols(shape), "sequence": shape.sequence, "past_sequence": shape.past,
                "total_sequence": shape.past + shape.sequence}  # fmt: skip

    return [
        Component("encoder", make_inputs or encoder_inputs, run_encoder, symbols=symbols),
        Component("decoder", partial(decoder_inputs, **given), run_decoder, partial(decoder_reference, **given),
                  decoder_symbols, CACHE),
    ]  # fmt: skip


def _sample(model: torch.nn.Module, shape: Shape) -> Inputs:
    from .twin import Sizes, sample_inputs

    sizes = Sizes(batch=shape.batch, sequence=encoder_length(shape), padding=shape.padding,
                  decoder_sequence=shape.past + shape.sequence, media=shape.media)  # fmt: skip
    return to_device(sample_inputs(model, sizes), model)


def encoder_inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
    """The inputs that the encoder takes, as generation chooses them."""
    encoder = model.get_encoder()
    known = inspect.signature(encoder.forward).parameters
    open_ended = any(parameter.kind is parameter.VAR_KEYWORD for parameter in known.values())
    inputs = {name: value for name, value in _sample(model, shape).items() if not name.startswith("decoder_")}
    return {name: value for name, value in inputs.items() if name in known or open_ended}


def _encode(model: torch.nn.Module, inputs: Inputs) -> Any:
    encoder = model.get_encoder()
    return encoder(**inputs, **call_flags(encoder.forward, return_dict=True))


def run_encoder(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
    encoded = _encode(model, inputs)
    # A pass of one token makes the decoder fill its cross-attention cache; the rest of that pass is dead code.
    # Decoders of audio codes take a row for each codebook.
    books = getattr(model.config.get_text_config(decoder=True), "num_codebooks", None) or 1
    token = torch.zeros_like(encoded[0][:, :1, 0], dtype=torch.long).repeat(books, 1)
    mask = {"attention_mask": inputs["attention_mask"]} if "attention_mask" in inputs else {}
    output = _decode(model, forward, {"decoder_input_ids": token, **mask}, encoded, full_length_cache(model))
    cross = getattr(output[CACHE], "cross_attention_cache", None) if CACHE in output else None
    result = {"last_hidden_state": encoded[0]}
    return (
        result if cross is None else {**result, "cross": {"layers": [_key_and_value(layer) for layer in cross.layers]}}
    )


def _key_and_value(layer: Any) -> dict[str, torch.Tensor]:
    return {"keys": layer.keys, "values": layer.values}


def _decode(model: torch.nn.Module, forward: Callable, inputs: Inputs, encoded: Any, cache: Any) -> Any:
    given = {} if cache is None else {CACHE: cache}
    flags = call_flags(forward, use_cache=True, return_dict=True)
    return forward(**inputs, **given, encoder_outputs=encoded, **flags)


def _prefilled(model: torch.nn.Module, shape: Shape, length: int, make_inputs: MakeInputs) -> tuple[Inputs, Any, Any]:
    """Inputs of the decoder, the encoder's output and the decoder's output after ``length`` tokens."""
    sample = _sample(model, shape)
    mask = {"attention_mask": sample["attention_mask"]} if _takes_mask(model, sample) else {}
    tokens = sample["decoder_input_ids"]
    with torch.no_grad():
        encoded = _encode(model, make_inputs(model, shape))
        inputs = {"decoder_input_ids": tokens[:, :length].contiguous(), **mask}
        output = _decode(model, model.forward, inputs, encoded, full_length_cache(model))
    return {"decoder_input_ids": tokens, **mask}, encoded, output


def _takes_mask(model: torch.nn.Module, sample: Inputs) -> bool:
    return "attention_mask" in sample and "attention_mask" in parameters_of(model.forward)


def decoder_inputs(model: torch.nn.Module, shape: Shape, make_inputs: MakeInputs = encoder_inputs) -> Inputs:
    inputs, encoded, output = _prefilled(model, shape, max(shape.past, 1), make_inputs)
    state = emptied(output[CACHE]) if shape.past == 0 else output[CACHE]
    tokens = inputs.pop("decoder_input_ids")[:, shape.past :].contiguous()
    # Some encoders shorten the mask along with the sequence and hand it on.
    handed = {"encoder_attention_mask": encoded.attention_mask} if _has_mask(encoded) else {}
    return {"decoder_input_ids": tokens, **inputs, "encoder_hidden_states": encoded[0], **handed, CACHE: state}


def _has_mask(encoded: Any) -> bool:
    return isinstance(getattr(encoded, "attention_mask", None), torch.Tensor)


def _output_class(model: torch.nn.Module) -> Any:
    """Of the encoder's output. Mixtures of experts have one of their own, whose further fields decoders read."""
    from transformers.modeling_outputs import BaseModelOutput, MoEModelOutput

    code = inspect.getsource(inspect.unwrap(type(model.get_encoder()).forward))
    return MoEModelOutput if "MoEModelOutput" in code else BaseModelOutput


def run_decoder(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
    inputs = dict(inputs)
    encoded = _output_class(model)(last_hidden_state=inputs.pop("encoder_hidden_states"))
    if "encoder_attention_mask" in inputs:
        encoded.attention_mask = inputs.pop("encoder_attention_mask")
    output = output_dict(_decode(model, forward, inputs, encoded, inputs.pop(CACHE)))
    return _decoder_results(output)


def _decoder_results(output: dict[str, Any]) -> dict[str, Any]:
    cache = output[CACHE]
    own = {"layers": [_key_and_value(layer) for layer in cache.self_attention_cache.layers]}
    return {"logits": output["logits"], "present": {"self_attention_cache": own}}


def decoder_reference(model: torch.nn.Module, shape: Shape, make_inputs: MakeInputs = encoder_inputs) -> dict[str, Any]:
    """All tokens at once, without a past."""
    _, _, output = _prefilled(model, shape, shape.past + shape.sequence, make_inputs)
    result = _decoder_results(output_dict(output))
    return {**result, "logits": result["logits"][:, shape.past :]}
