"""Draws of encoders of text: a function for each family, which returns the fields of its configuration."""

from __future__ import annotations

import random
from typing import Any

from .fields import VOCABULARIES, chance

Fields = dict[str, Any]
Rng = random.Random


def _encoder(rng: Rng) -> Fields:
    count = rng.choice((2, 4, 3))
    size = rng.choice(VOCABULARIES)
    return {
        "hidden_size": count * rng.choice((8, 16)), "num_attention_heads": count, "num_hidden_layers": rng.choice((2, 3)),
        "intermediate_size": rng.choice((48, 64)), "hidden_act": rng.choice(("gelu", "relu", "gelu_new", "silu")),
        "max_position_embeddings": rng.choice((64, 72)), "type_vocab_size": rng.choice((1, 2, 2)), "vocab_size": size,
        "layer_norm_eps": rng.choice((1e-12, 1e-5)), "pad_token_id": rng.choice((0, 1, size - 1)),
        "hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1,
    }  # fmt: skip


def bert(rng: Rng) -> Fields:
    return _encoder(rng)


def roberta(rng: Rng) -> Fields:
    return _encoder(rng) | {"pad_token_id": rng.choice((0, 1)), "type_vocab_size": 1}


def electra(rng: Rng) -> Fields:
    return _encoder(rng) | {"embedding_size": rng.choice((24, 32))}


def albert(rng: Rng) -> Fields:
    return _encoder(rng) | {"embedding_size": rng.choice((16, 24)), "num_hidden_layers": 3, "num_hidden_groups": rng.choice((1, 3)),
                            "inner_group_num": rng.choice((1, 2))}  # fmt: skip


def distilbert(rng: Rng) -> Fields:
    count, size = rng.choice((2, 4)), rng.choice(VOCABULARIES)
    return {"dim": count * 8, "n_heads": count, "n_layers": 2, "hidden_dim": 56, "max_position_embeddings": 64, "vocab_size": size,
            "sinusoidal_pos_embds": chance(rng, 0.3), "activation": rng.choice(("gelu", "relu")), "pad_token_id": rng.choice((0, size - 1))}  # fmt: skip


def deberta_v2(rng: Rng) -> Fields:
    relative = chance(rng, 0.8)
    return _encoder(rng) | {
        "relative_attention": relative, "pos_att_type": rng.choice((["p2c", "c2p"], ["c2p"], ["p2c"])) if relative else [],
        "position_buckets": rng.choice((-1, 8, 16)), "max_relative_positions": rng.choice((-1, 24)), "share_att_key": chance(rng, 0.5),
        "norm_rel_ebd": rng.choice(("none", "layer_norm")), "position_biased_input": chance(rng, 0.5),
        "conv_kernel_size": rng.choice((0, 3)), "conv_act": "gelu", "type_vocab_size": rng.choice((0, 2)),
    }  # fmt: skip


def deberta(rng: Rng) -> Fields:
    return _encoder(rng) | {"relative_attention": chance(rng, 0.8), "pos_att_type": rng.choice((["c2p", "p2c"], ["c2p"])),
                            "max_relative_positions": rng.choice((-1, 24)), "type_vocab_size": rng.choice((0, 2))}  # fmt: skip


def modernbert(rng: Rng) -> Fields:
    fields = _encoder(rng)
    return {name: fields[name] for name in ("hidden_size", "num_attention_heads", "vocab_size", "intermediate_size")} | {
        "num_hidden_layers": rng.choice((3, 4)), "global_attn_every_n_layers": rng.choice((2, 3)), "local_attention": rng.choice((4, 8, 16, 128)),
        "max_position_embeddings": 64, "attention_bias": chance(rng, 0.5), "mlp_bias": chance(rng, 0.5), "norm_bias": chance(rng, 0.5),
        "classifier_bias": chance(rng, 0.5), "classifier_pooling": rng.choice(("cls", "mean")), "pad_token_id": 0, "cls_token_id": 1,
        "sep_token_id": 2, "bos_token_id": 1, "eos_token_id": 2,
    }  # fmt: skip


def mpnet(rng: Rng) -> Fields:
    fields = _encoder(rng)
    fields.pop("type_vocab_size")
    return fields | {"relative_attention_num_buckets": rng.choice((8, 32)), "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2}


def camembert(rng: Rng) -> Fields:
    return roberta(rng)


def xlm_roberta(rng: Rng) -> Fields:
    return roberta(rng)


def esm(rng: Rng) -> Fields:
    fields = _encoder(rng)
    fields.pop("type_vocab_size")
    return fields | {"position_embedding_type": rng.choice(("absolute", "rotary")), "token_dropout": chance(rng, 0.5), "mask_token_id": 4,
                     "pad_token_id": 1, "emb_layer_norm_before": chance(rng, 0.5)}  # fmt: skip


def funnel(rng: Rng) -> Fields:
    return {"vocab_size": 131, "block_sizes": [1, 1], "d_model": 32, "n_head": 4, "d_head": 8, "d_inner": 48, "num_decoder_layers": 1,
            "separate_cls": chance(rng, 0.5), "truncate_seq": chance(rng, 0.5), "pool_q_only": chance(rng, 0.5)}  # fmt: skip


def longformer(rng: Rng) -> Fields:
    fields = _encoder(rng)
    return fields | {"attention_window": [rng.choice((4, 8))] * fields["num_hidden_layers"], "max_position_embeddings": 128, "pad_token_id": 1}


def rembert(rng: Rng) -> Fields:
    return _encoder(rng) | {"input_embedding_size": 24, "output_embedding_size": 28}


def roformer(rng: Rng) -> Fields:
    return _encoder(rng) | {"rotary_value": chance(rng, 0.5), "embedding_size": rng.choice((None, 24))}


def convbert(rng: Rng) -> Fields:
    return _encoder(rng) | {"num_attention_heads": 4, "hidden_size": 32, "head_ratio": 2, "conv_kernel_size": rng.choice((3, 9)),
                            "num_groups": 1, "embedding_size": 32}  # fmt: skip


ENCODERS = {
    name.replace("_", "-") if name in ("deberta_v2", "xlm_roberta") else name: function
    for name, function in {
        each.__name__: each
        for each in (bert, roberta, electra, albert, distilbert, deberta_v2, deberta, modernbert, mpnet, camembert, xlm_roberta, esm,
                     funnel, longformer, rembert, roformer, convbert)
    }.items()
}  # fmt: skip
