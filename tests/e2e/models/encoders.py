"""Text encoders."""

from __future__ import annotations

from dataclasses import replace

import torch
from transformers import AutoConfig, AutoModel, AutoModelForMaskedLM, AutoModelForSequenceClassification

from .case import BATCH_SEQ, VOCAB, Decompose, Inputs, ModelCase, Sample, make_distinct, padding_mask, tokens

SIZES = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
}


def inputs(batch: int, length: int, token_types: bool) -> Inputs:
    kwargs = {"input_ids": tokens(batch, length), "attention_mask": padding_mask(batch, length, side="right")}
    if token_types:
        kwargs["token_type_ids"] = torch.randint(0, 2, (batch, length))
    return Inputs(kwargs=kwargs)


def encoder(
    model_type: str, head=AutoModel, token_types: bool = False, sizes: dict = SIZES, dtype=torch.float32, **settings
) -> ModelCase:
    def build() -> Sample:
        module = make_distinct(head.from_config(AutoConfig.for_model(model_type, **{**sizes, **settings}))).to(dtype)
        traced = inputs(2, 7, token_types)
        return Sample(module, traced, dict.fromkeys(traced.kwargs, BATCH_SEQ), inputs(3, 12, token_types))

    return ModelCase(model_type.replace("-", "_"), "encoder", build)


def core_aten(case: ModelCase) -> ModelCase:
    return replace(case, name=f"{case.name}_core_aten", decompose=Decompose.CORE_ATEN)


CASES = [
    encoder("bert", AutoModelForSequenceClassification, token_types=True, num_labels=5),
    encoder("roberta", AutoModelForMaskedLM),
    encoder("xlm-roberta", AutoModelForSequenceClassification),
    encoder(
        "distilbert",
        sizes={
            "vocab_size": VOCAB,
            "dim": 32,
            "hidden_dim": 48,
            "n_layers": 2,
            "n_heads": 4,
            "max_position_embeddings": 64,
        },
    ),
    encoder(
        "deberta-v2",
        AutoModelForMaskedLM,
        relative_attention=True,
        pos_att_type=["p2c", "c2p"],
        position_buckets=4,
        max_relative_positions=16,
        share_att_key=True,
        norm_rel_ebd="layer_norm",
        position_biased_input=False,
    ),
    core_aten(encoder("camembert", AutoModelForMaskedLM)),
    encoder("modernbert", AutoModelForMaskedLM, local_attention=4, global_attn_every_n_layers=2),
    encoder("electra", token_types=True, embedding_size=16),
    encoder("albert", token_types=True, embedding_size=16, num_hidden_groups=1),
    encoder("mpnet", AutoModelForMaskedLM),
    encoder("nomic_bert", token_types=True),
    encoder("esm", token_dropout=False, position_embedding_type="rotary", mask_token_id=2),
    encoder("xlnet", sizes={"vocab_size": VOCAB, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}),
    encoder("roformer", AutoModelForMaskedLM, token_types=True, embedding_size=32, dtype=torch.float16),
    encoder(
        "squeezebert",
        embedding_size=32,
        q_groups=2,
        k_groups=2,
        v_groups=2,
        post_attention_groups=1,
        intermediate_groups=2,
        output_groups=2,
    ),
    encoder("mobilebert", embedding_size=32, intra_bottleneck_size=16, true_hidden_size=16, num_feedforward_networks=2),
]
