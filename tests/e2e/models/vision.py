"""Image models: classifiers, backbones, detectors, segmenters, depth."""

from __future__ import annotations

from collections.abc import Callable

import torch
from transformers import (
    AutoConfig,
    AutoModel,
    AutoModelForDepthEstimation,
    AutoModelForImageClassification,
    AutoModelForObjectDetection,
    AutoModelForSemanticSegmentation,
    CLIPVisionConfig,
    CLIPVisionModelWithProjection,
    ResNetConfig,
)

from .case import AUTO, BATCH, DYNAMIC, Inputs, ModelCase, Sample, floats, make_distinct

VIT_SIZES = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "image_size": 16,
    "patch_size": 4,
}
ANY_SIZE = {0: DYNAMIC, 2: DYNAMIC, 3: DYNAMIC}


def image_model(
    name: str,
    make: Callable[[], torch.nn.Module],
    size: int = 16,
    axes: dict = BATCH,
    other: tuple[int, int] | None = None,
) -> ModelCase:
    """`other` is the height and width of the second sample; needs dynamic axes 2 and 3."""

    def build() -> Sample:
        height, width = other or (size, size)
        traced = Inputs(kwargs={"pixel_values": floats(2, 3, size, size)})
        return Sample(
            make_distinct(make()),
            traced,
            {"pixel_values": axes},
            Inputs(kwargs={"pixel_values": floats(3, 3, height, width)}),
        )

    return ModelCase(name, "vision", build)


def auto(head, model_type: str, **settings) -> Callable[[], torch.nn.Module]:
    return lambda: head.from_config(AutoConfig.for_model(model_type, **settings))


def tiny_resnet_config() -> ResNetConfig:
    return ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], layer_type="basic", out_features=["stage2"]
    )


def detr() -> torch.nn.Module:
    config = AutoConfig.for_model(
        "detr",
        backbone_config=tiny_resnet_config(),
        backbone=None,
        use_timm_backbone=False,
        use_pretrained_backbone=False,
        num_queries=5,
        d_model=32,
        encoder_layers=1,
        decoder_layers=1,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=48,
        decoder_ffn_dim=48,
        num_labels=4,
    )
    return AutoModelForObjectDetection.from_config(config)


def dpt_depth() -> torch.nn.Module:
    backbone = AutoConfig.for_model(
        "dinov2",
        hidden_size=32,
        num_hidden_layers=2,
        num_attention_heads=4,
        image_size=16,
        patch_size=4,
        mlp_ratio=2,
        out_indices=[1, 2, 1, 2][:2],
        reshape_hidden_states=False,
    )
    config = AutoConfig.for_model(
        "depth_anything",
        backbone_config=backbone,
        patch_size=4,
        reassemble_hidden_size=32,
        reassemble_factors=[2, 1],
        neck_hidden_sizes=[8, 16],
        fusion_hidden_size=16,
        head_hidden_size=8,
    )
    return AutoModelForDepthEstimation.from_config(config)


CASES = [
    image_model("vit", auto(AutoModelForImageClassification, "vit", **VIT_SIZES, num_labels=5)),
    image_model("deit", auto(AutoModel, "deit", **VIT_SIZES)),
    image_model(
        "beit",
        auto(AutoModelForImageClassification, "beit", **VIT_SIZES, num_labels=5, use_relative_position_bias=True),
    ),
    image_model(
        "dinov2",
        auto(
            AutoModel,
            "dinov2",
            hidden_size=32,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=16,
            patch_size=4,
            mlp_ratio=2,
        ),
        size=24,
        axes={0: DYNAMIC, 2: AUTO, 3: AUTO},
        other=(32, 28),
    ),
    image_model(
        "dinov3_vit",
        auto(
            AutoModel,
            "dinov3_vit",
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            image_size=16,
            patch_size=4,
        ),
        axes={0: DYNAMIC, 2: AUTO, 3: AUTO},
    ),
    image_model(
        "convnext",
        auto(
            AutoModelForImageClassification, "convnext", hidden_sizes=[8, 16], depths=[1, 1], num_stages=2, num_labels=5
        ),
        size=32,
        axes=ANY_SIZE,
        other=(48, 40),
    ),
    image_model(
        "resnet",
        lambda: AutoModelForImageClassification.from_config(tiny_resnet_config()),
        size=32,
        axes=ANY_SIZE,
        other=(48, 40),
    ),
    image_model(
        "regnet",
        auto(AutoModel, "regnet", embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], groups_width=4),
        size=32,
        axes=ANY_SIZE,
        other=(48, 40),
    ),
    image_model(
        "mobilenet_v2",
        auto(
            AutoModel, "mobilenet_v2", depth_multiplier=0.25, image_size=32, finegrained_output=False, tf_padding=False
        ),
        size=64,
        axes=ANY_SIZE,
        other=(96, 80),
    ),
    image_model(
        "mobilevit",
        auto(
            AutoModel,
            "mobilevit",
            image_size=32,
            patch_size=2,
            hidden_sizes=[16, 16, 16],
            neck_hidden_sizes=[8, 8, 8, 8, 8, 8, 8],
            num_attention_heads=2,
        ),
        size=64,
    ),
    image_model(
        "swin",
        auto(
            AutoModelForImageClassification,
            "swin",
            image_size=16,
            patch_size=2,
            embed_dim=8,
            depths=[2, 1],
            num_heads=[2, 2],
            window_size=4,
            num_labels=5,
        ),
    ),
    image_model(
        "pvt_v2",
        auto(
            AutoModel,
            "pvt_v2",
            image_size=32,
            hidden_sizes=[8, 16, 16, 16],
            depths=[1, 1, 1, 1],
            num_attention_heads=[1, 2, 2, 2],
            sr_ratios=[4, 2, 1, 1],
            mlp_ratios=[2, 2, 2, 2],
        ),
        size=64,
        axes=ANY_SIZE,
        other=(96, 64),
    ),
    image_model("clip_vision", lambda: CLIPVisionModelWithProjection(CLIPVisionConfig(**VIT_SIZES, projection_dim=16))),
    image_model(
        "yolos",
        auto(
            AutoModelForObjectDetection,
            "yolos",
            **{**VIT_SIZES, "image_size": [16, 24]},
            num_detection_tokens=4,
            num_labels=4,
        ),
        size=16,
        axes={0: DYNAMIC, 2: AUTO, 3: AUTO},
    ),
    image_model("detr", detr, size=64),
    image_model(
        "segformer",
        auto(
            AutoModelForSemanticSegmentation,
            "segformer",
            hidden_sizes=[8, 16],
            depths=[1, 1],
            num_encoder_blocks=2,
            sr_ratios=[2, 1],
            patch_sizes=[7, 3],
            strides=[4, 2],
            num_attention_heads=[1, 2],
            mlp_ratios=[2, 2],
            decoder_hidden_size=16,
            num_labels=5,
        ),
        size=32,
        axes=ANY_SIZE,
        other=(48, 40),
    ),
    image_model("depth_anything", dpt_depth, axes={0: DYNAMIC, 2: AUTO, 3: AUTO}),
]
