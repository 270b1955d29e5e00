"""A twin from a configuration."""

from __future__ import annotations

import contextlib
import copy
from collections.abc import Iterator
from typing import Any

from .classes import model_class
from .inputs import sample_inputs
from .request import Sizes
from .shrink import POSITIONS, shrink
from .text_inputs import padding_token
from .weights import has_statistics, randomise, settle


def build(config: Any, *, task: str | None = None, seed: int = 0, reach: int = POSITIONS, whole: bool = False) -> Any:
    """The twin of ``config``: a real model in float32 on the CPU, in evaluation mode, whose weights depend on ``seed``
    alone. Attention is ``sdpa`` where the class supports it. ``config`` is shrunk first (one that is small already
    stays equal) and is itself left alone; ``reach`` as in ``shrink``. ``whole``: it is not shrunk."""
    import torch

    config = copy.deepcopy(config) if whole else shrink(config, reach=reach)
    cls = model_class(config, task)
    config = narrowed(config, cls)
    with _seeded(seed):
        model = _construct(cls, config)
    model = model.to(torch.float32).eval()
    randomise(model, seed=seed)
    if any(has_statistics(module) for module in model.modules()):
        # a model that cannot run on our inputs is still a model; whoever runs it will see why
        with contextlib.suppress(Exception):
            settle(model, sample_inputs(model, Sizes(batch=4), seed=seed))
    _complete_generation_settings(model)
    model.config.architectures = [
        cls.__name__
    ]  # as a checkpoint says it: the configuration alone finds the class again
    return model


def _complete_generation_settings(model: Any) -> None:
    """Checkpoints bring the ids that ``generate`` starts and pads with; a configuration alone may not."""
    settings = getattr(model, "generation_config", None)
    if settings is None or not model.can_generate():
        return
    if settings.pad_token_id is None:
        settings.pad_token_id = padding_token(model.config)
    if getattr(model.config, "is_encoder_decoder", False):
        if settings.decoder_start_token_id is None and settings.bos_token_id is None:
            settings.decoder_start_token_id = settings.pad_token_id


def narrowed(config: Any, cls: type) -> Any:
    """The part of a composite configuration that ``cls`` takes: its own class, or the text configuration in it."""
    wanted = getattr(cls, "config_class", None)
    if wanted is None or isinstance(config, wanted):
        return config
    for value in vars(config).values():
        if isinstance(value, wanted):
            return copy.deepcopy(value)
    return config


def _construct(cls: type, config: Any) -> Any:
    from_config = getattr(cls, "_from_config", None)
    if from_config is None:
        return cls(config)
    try:
        return from_config(copy.deepcopy(config), attn_implementation="sdpa")
    except (ValueError, ImportError):
        # the class, or a model inside it, has no sdpa: let it choose
        return from_config(copy.deepcopy(config))


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seeds torch's generator and gives it back as it was."""
    import torch

    state = torch.get_rng_state()
    torch.manual_seed(seed)
    try:
        yield
    finally:
        torch.set_rng_state(state)
