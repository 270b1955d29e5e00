"""Models of images and text."""

from __future__ import annotations

import torch
from transformers import AutoConfig, AutoModel, AutoModelForImageTextToText, BlipForConditionalGeneration

from .case import (
    BATCH,
    BATCH_SEQ,
    DYNAMIC,
    VOCAB,
    Inputs,
    ModelCase,
    Sample,
    floats,
    make_distinct,
    padding_mask,
    tokens,
)

TEXT = {
    "vocab_size": VOCAB,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 64,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
DECODER = {**TEXT, "num_key_value_heads": 2, "use_cache": False}
VISION = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 8,
}
IMAGE_TOKEN = VOCAB - 1
PATCHES = 4  # (16 / 8) squared
PAIR_SHAPES = {"input_ids": BATCH_SEQ, "attention_mask": BATCH_SEQ, "pixel_values": BATCH}


def pair(name: str, make, **extra) -> ModelCase:
    """A text tower beside an image tower."""

    def inputs(batch: int, length: int) -> Inputs:
        ids = tokens(batch, length)
        ids[:, -1] = 2
        return Inputs(
            kwargs={
                "input_ids": ids,
                "attention_mask": padding_mask(batch, length),
                "pixel_values": floats(batch, 3, 16, 16),
                **extra,
            }
        )

    def build() -> Sample:
        return Sample(make_distinct(make()), inputs(2, 7), {**PAIR_SHAPES, **dict.fromkeys(extra)}, inputs(3, 12))

    return ModelCase(name, "vision-language", build)


def two_towers(model_type: str, **settings) -> ModelCase:
    return pair(
        model_type,
        lambda: AutoModel.from_config(
            AutoConfig.for_model(model_type, text_config=TEXT, vision_config=VISION, **settings)
        ),
    )


def prompt_with_image(batch: int, length: int, image_tokens: int) -> torch.Tensor:
    ids = torch.randint(3, IMAGE_TOKEN, (batch, length))
    ids[:, 1 : 1 + image_tokens] = IMAGE_TOKEN
    return ids


def image_in_prompt(
    model_type: str, image_tokens: int, token_types: bool = False, fixed_batch: bool = False, **settings
) -> ModelCase:
    """Image features replace placeholder tokens of the prompt. `fixed_batch`: the model loops over images in Python."""

    def inputs(batch: int, length: int) -> Inputs:
        ids = prompt_with_image(batch, length, image_tokens)
        kwargs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": floats(batch, 3, 16, 16)}
        if token_types:
            kwargs["token_type_ids"] = (ids == IMAGE_TOKEN).long()
        return Inputs(kwargs=kwargs)

    def build() -> Sample:
        module = make_distinct(AutoModelForImageTextToText.from_config(AutoConfig.for_model(model_type, **settings)))
        traced = inputs(2, 9)
        text_axes, image_axes = ({1: DYNAMIC}, {}) if fixed_batch else (BATCH_SEQ, BATCH)
        shapes = {name: image_axes if name == "pixel_values" else text_axes for name in traced.kwargs}
        return Sample(module, traced, shapes, inputs(2 if fixed_batch else 3, 12))

    return ModelCase(model_type, "vision-language", build)


def llava() -> ModelCase:
    return image_in_prompt(
        "llava",
        PATCHES,
        fixed_batch=True,
        text_config={"model_type": "llama", **DECODER},
        vision_config={"model_type": "clip_vision_model", **VISION},
        image_token_id=IMAGE_TOKEN,
        vision_feature_layer=-2,
        image_seq_length=PATCHES,
    )


def paligemma() -> ModelCase:
    return image_in_prompt(
        "paligemma",
        PATCHES,
        token_types=True,
        text_config={"model_type": "gemma", **DECODER, "head_dim": 8},
        vision_config={"model_type": "siglip_vision_model", **VISION, "vision_use_head": False},
        image_token_id=IMAGE_TOKEN,
        projection_dim=32,
        hidden_size=32,
    )


def smolvlm() -> ModelCase:
    """One prompt with any number of images, of which those that are all zero are dropped: a data-dependent size."""

    def inputs(images: int, length: int) -> Inputs:
        ids = prompt_with_image(1, length, images)
        return Inputs(
            kwargs={
                "input_ids": ids,
                "attention_mask": torch.ones_like(ids),
                "pixel_values": floats(1, images, 3, 16, 16),
            }
        )

    def build() -> Sample:
        config = AutoConfig.for_model(
            "smolvlm",
            text_config={"model_type": "llama", **DECODER},
            vision_config={"model_type": "smolvlm_vision", **VISION},
            image_token_id=IMAGE_TOKEN,
            scale_factor=2,
            pad_token_id=0,
            use_cache=False,
        )
        module = make_distinct(AutoModelForImageTextToText.from_config(config))
        shapes = {"input_ids": {1: DYNAMIC}, "attention_mask": {1: DYNAMIC}, "pixel_values": {1: DYNAMIC}}
        return Sample(module, inputs(2, 9), shapes, inputs(3, 12))

    return ModelCase("smolvlm", "vision-language", build, patched=True)


def gemma3() -> ModelCase:
    return image_in_prompt(
        "gemma3",
        1,
        text_config={**DECODER, "head_dim": 8, "sliding_window": 4, "query_pre_attn_scalar": 8},
        vision_config={**VISION},
        image_token_id=IMAGE_TOKEN,
        mm_tokens_per_image=1,
    )


def qwen2_vl() -> ModelCase:
    """Two prompts with one image each; positions are given, because the model finds them by looking at the tokens."""

    def inputs(length: int, grid: tuple[int, int, int]) -> Inputs:
        patches = grid[0] * grid[1] * grid[2]
        ids = prompt_with_image(2, length, patches // 4)
        kwargs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "position_ids": torch.arange(length).expand(3, 2, length).clone(),
            "pixel_values": floats(2 * patches, 3 * 2 * 4 * 4),
            "image_grid_thw": torch.tensor([grid, grid]),
        }
        return Inputs(kwargs=kwargs)

    def build() -> Sample:
        config = AutoConfig.for_model(
            "qwen2_vl",
            text_config={
                **DECODER,
                "rope_parameters": {"rope_type": "default", "mrope_section": [1, 1, 2], "rope_theta": 10000.0},
            },
            vision_config={
                "depth": 2,
                "embed_dim": 32,
                "hidden_size": 32,
                "num_heads": 2,
                "mlp_ratio": 2,
                "patch_size": 4,
                "spatial_merge_size": 2,
                "temporal_patch_size": 2,
                "in_channels": 3,
            },
            image_token_id=IMAGE_TOKEN,
            video_token_id=VOCAB - 2,
            vision_start_token_id=VOCAB - 3,
            vision_end_token_id=VOCAB - 4,
        )
        module = make_distinct(AutoModelForImageTextToText.from_config(config))
        sequence = {1: DYNAMIC}
        shapes = {
            "input_ids": sequence,
            "attention_mask": sequence,
            "position_ids": {2: DYNAMIC},
            "pixel_values": BATCH,
            "image_grid_thw": None,
        }
        return Sample(module, inputs(9, (1, 4, 4)), shapes, inputs(14, (1, 4, 6)))

    return ModelCase("qwen2_vl", "vision-language", build, patched=True)


CASES = [
    two_towers("clip", projection_dim=16),
    two_towers("siglip"),
    two_towers("chinese_clip", projection_dim=16),
    pair(
        "blip",
        lambda: BlipForConditionalGeneration(
            AutoConfig.for_model(
                "blip",
                text_config={**TEXT, "encoder_hidden_size": 32, "projection_dim": 32},
                vision_config=VISION,
                projection_dim=32,
            )
        ),
    ),
    two_towers("owlvit", projection_dim=32),
    llava(),
    paligemma(),
    smolvlm(),
    gemma3(),
    qwen2_vl(),
]
