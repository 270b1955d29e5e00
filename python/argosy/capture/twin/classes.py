"""Which model class a configuration stands for."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
from typing import Any

from ...errors import ExportError

#: Tables of the auto classes, the most telling first: what a user of the family would load. The names are those of
#: transformers' ``MODEL_FOR_<NAME>_MAPPING``; a table that this version of transformers lacks is passed over.
_TABLES = (
    "SPEECH_SEQ_2_SEQ",
    "SEQ_TO_SEQ_CAUSAL_LM",
    "IMAGE_TEXT_TO_TEXT",
    "VISION_2_SEQ",
    "MULTIMODAL_LM",
    "CTC",
    "RNNT",
    "TDT",
    "TEXT_TO_WAVEFORM",
    "TEXT_TO_SPECTROGRAM",
    "MASKED_LM",
    "CAUSAL_LM",
    "ZERO_SHOT_IMAGE_CLASSIFICATION",
    "ZERO_SHOT_OBJECT_DETECTION",
    "OBJECT_DETECTION",
    "UNIVERSAL_SEGMENTATION",
    "INSTANCE_SEGMENTATION",
    "DEPTH_ESTIMATION",
    "IMAGE_CLASSIFICATION",
    "SEMANTIC_SEGMENTATION",
    "VIDEO_CLASSIFICATION",
    "MASK_GENERATION",
    "AUDIO_CLASSIFICATION",
    "AUDIO_TOKENIZATION",
    "TIME_SERIES_PREDICTION",
    "KEYPOINT_MATCHING",
    "KEYPOINT_DETECTION",
    "IMAGE_TO_IMAGE",
    "SEQUENCE_CLASSIFICATION",
    "PRETRAINING",
    "BASE",
    "BACKBONE",
)

#: Tasks as pipelines name them, and optimum where there is no pipeline; each with the tables that answer it, the first that has the
#: model first.
TASKS = {
    "any-to-any": ("MULTIMODAL_LM",),
    "audio-classification": ("AUDIO_CLASSIFICATION",),
    "audio-frame-classification": ("AUDIO_FRAME_CLASSIFICATION",),
    "audio-xvector": ("AUDIO_XVECTOR",),
    "automatic-speech-recognition": ("SPEECH_SEQ_2_SEQ", "CTC", "RNNT", "TDT"),
    "depth-estimation": ("DEPTH_ESTIMATION",),
    "document-question-answering": ("DOCUMENT_QUESTION_ANSWERING",),
    "feature-extraction": ("BASE",),
    "fill-mask": ("MASKED_LM",),
    "image-classification": ("IMAGE_CLASSIFICATION",),
    "image-feature-extraction": ("IMAGE", "BASE"),
    "image-matting": ("IMAGE_MATTING",),
    "image-segmentation": ("UNIVERSAL_SEGMENTATION", "INSTANCE_SEGMENTATION", "SEMANTIC_SEGMENTATION", "IMAGE_SEGMENTATION"),
    "image-text-to-text": ("IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "VISION_2_SEQ"),
    "image-to-image": ("IMAGE_TO_IMAGE",),
    "image-to-text": ("VISION_2_SEQ", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM", "TEXT_RECOGNITION"),
    "instance-segmentation": ("INSTANCE_SEGMENTATION", "UNIVERSAL_SEGMENTATION"),
    "keypoint-detection": ("KEYPOINT_DETECTION", "POSE_ESTIMATION"),
    "keypoint-matching": ("KEYPOINT_MATCHING",),
    "mask-generation": ("MASK_GENERATION",),
    "masked-im": ("MASKED_IMAGE_MODELING",),
    "multiple-choice": ("MULTIPLE_CHOICE",),
    "next-sentence-prediction": ("NEXT_SENTENCE_PREDICTION",),
    "normal-estimation": ("NORMAL_ESTIMATION",),
    "object-detection": ("OBJECT_DETECTION",),
    "pose-estimation": ("POSE_ESTIMATION",),
    "question-answering": ("QUESTION_ANSWERING",),
    "semantic-segmentation": ("SEMANTIC_SEGMENTATION",),
    "sentence-similarity": ("BASE",),
    "summarization": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "table-question-answering": ("TABLE_QUESTION_ANSWERING", "SEQ_TO_SEQ_CAUSAL_LM"),
    "text-classification": ("SEQUENCE_CLASSIFICATION",),
    "text-generation": ("CAUSAL_LM", "IMAGE_TEXT_TO_TEXT", "MULTIMODAL_LM"),
    "text-recognition": ("TEXT_RECOGNITION",),
    "text-to-audio": ("TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM"),
    "text-to-speech": ("TEXT_TO_WAVEFORM", "TEXT_TO_SPECTROGRAM"),
    "text2text-generation": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "time-series-classification": ("TIME_SERIES_CLASSIFICATION",),
    "time-series-forecasting": ("TIME_SERIES_PREDICTION",),
    "time-series-regression": ("TIME_SERIES_REGRESSION",),
    "token-classification": ("TOKEN_CLASSIFICATION",),
    "translation": ("SEQ_TO_SEQ_CAUSAL_LM",),
    "video-classification": ("VIDEO_CLASSIFICATION",),
    "visual-document-retrieval": ("RETRIEVAL",),
    "visual-question-answering": ("VISUAL_QUESTION_ANSWERING",),
    "zero-shot-audio-classification": ("BASE",),
    "zero-shot-classification": ("SEQUENCE_CLASSIFICATION",),
    "zero-shot-image-classification": ("ZERO_SHOT_IMAGE_CLASSIFICATION",),
    "zero-shot-object-detection": ("ZERO_SHOT_OBJECT_DETECTION",),
}

#: Families whose auto tables say less than their users do. Each needs its reason.
_CLASSES = {
    # The tables name only the sub-models of Bark; its codec ends a chain of three of them.
    "bark": "BarkFineModel",
    # In no table but the base model's, which has no task.
    "musicgen": "MusicgenForConditionalGeneration",
    # Listed for pre-training only.
    "layoutlmv3": "LayoutLMv3ForTokenClassification",
    "lilt": "LiltForTokenClassification",
}

#: Classes that cannot be made without an optional package (for their loss), each with the class that can.
_WITHOUT_SCIPY = {
    "Mask2FormerForUniversalSegmentation": "Mask2FormerModel",
    "MaskFormerForInstanceSegmentation": "MaskFormerModel",
}


def model_class(config: Any, task: str | None = None) -> type:
    """The class of ``config``: for ``task`` if one is given, else the first of ``config.architectures`` that exists,
    else what the most telling auto class says. Raises ``ExportError`` (``not-found``) if nothing fits."""
    if task is not None:
        return _class_for_task(config, task)
    return (
        _class_by_architectures(config)
        or _class_of_remote_code(config)
        or _class_by_tables(config, _TABLES)
        or _class_beside(config)
        or _no_class(config, None)
    )


def has_class(model_type: str) -> bool:
    """Whether transformers has a model that a configuration of this type alone stands for: in a table, or one with a task that is
    called after the configuration. Nothing but names is read."""
    from transformers.models.auto import modeling_auto
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING_NAMES

    stem = CONFIG_MAPPING_NAMES.get(model_type, "").removesuffix("Config")
    names = [f"{'MODEL' if name == 'BASE' else f'MODEL_FOR_{name}'}_MAPPING_NAMES" for name in _TABLES]
    return (
        model_type in _CLASSES
        or any(model_type in getattr(modeling_auto, name, {}) for name in names)
        or bool(stem) and any(name.startswith(f"{stem}For") for name in _names())
    )


@functools.cache
def _names() -> tuple[str, ...]:
    """What transformers exports; it takes long to say so."""
    import transformers

    return tuple(dir(transformers))


def _class_by_architectures(config: Any) -> type | None:
    import transformers

    for name in getattr(config, "architectures", None) or ():
        found = getattr(transformers, name, None)
        if found is not None and isinstance(config, getattr(found, "config_class", None) or ()):
            return found
    return None


def _class_of_remote_code(config: Any) -> type | None:
    """The class that comes with the checkpoint. Whoever loaded ``config`` from there has trusted its code already."""
    references = getattr(config, "auto_map", None) or {}
    if not type(config).__module__.startswith("transformers_modules"):
        return None
    from transformers.dynamic_module_utils import get_class_from_dynamic_module

    named = set(getattr(config, "architectures", None) or ())
    models = [reference for auto, reference in references.items() if auto.startswith("AutoModel")]
    # the one that config.json names, else one with a task
    models.sort(
        key=lambda reference: (reference.rsplit(".", 1)[-1] not in named, reference == references.get("AutoModel"))
    )
    return get_class_from_dynamic_module(models[0], config._name_or_path) if models else None


def _class_for_task(config: Any, task: str) -> type:
    if task not in TASKS:
        raise ExportError(f"unknown task '{task}'", code="invalid-argument", hint=f"one of {', '.join(sorted(TASKS))}")
    fitting = {table: cls for table in TASKS[task] if (cls := _class_by_tables(config, (table,))) is not None}
    preferred = _class_by_architectures(config)
    if preferred is not None and preferred in fitting.values():
        return preferred  # several classes may answer a task; the checkpoint was saved from this one
    return next(iter(fitting.values()), None) or _no_class(config, task)


def _class_by_tables(config: Any, tables: tuple[str, ...]) -> type | None:
    import transformers

    special = _CLASSES.get(getattr(config, "model_type", ""))
    if special is not None and tables is _TABLES and hasattr(transformers, special):
        return getattr(transformers, special)
    if getattr(config, "is_decoder", False) is True and tables is _TABLES:
        tables = tuple(table for table in tables if table != "MASKED_LM")
    for table in tables:
        mapping = _table(table)
        if mapping is not None and type(config) in mapping:
            try:
                found = mapping[type(config)]
            except ValueError:  # the table names a class that this version of transformers lacks
                continue
            found = found[0] if isinstance(found, (list, tuple)) else found
            if found.__name__ in _WITHOUT_SCIPY and importlib.util.find_spec("scipy") is None:
                return getattr(transformers, _WITHOUT_SCIPY[found.__name__])
            return found
    return None


def _class_beside(config: Any) -> type | None:
    """A class that no table names: one with a task, of those in the module beside the configuration's own."""
    module = sys.modules.get(type(config).__module__.replace(".configuration_", ".modeling_"))
    if module is None:
        with contextlib.suppress(ImportError):
            module = importlib.import_module(type(config).__module__.replace(".configuration_", ".modeling_"))
    found = [cls for name in getattr(module, "__all__", ())
             if getattr(cls := getattr(module, name), "config_class", None) is type(config) and not name.endswith("PreTrainedModel")]  # fmt: skip
    return next((cls for cls in found if "For" in cls.__name__), found[-1] if found else None)


@functools.cache
def _table(name: str) -> Any:
    from transformers.models.auto import modeling_auto

    return getattr(modeling_auto, "MODEL_MAPPING" if name == "BASE" else f"MODEL_FOR_{name}_MAPPING", None)


def _no_class(config: Any, task: str | None) -> type:
    wanted = f" for task '{task}'" if task else ""
    raise ExportError(
        f"no model class{wanted} takes a configuration of type {type(config).__name__}",
        code="not-found",
        hint="name the class in 'architectures' of config.json, or leave the task out",
    )
