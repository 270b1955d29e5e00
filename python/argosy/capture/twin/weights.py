"""Random weights that make a difference.

Transformers' own initialisation keeps signals so small that a wrong mask or a lost layer hides below any tolerance.
Here each matrix keeps the size of what it multiplies, and embeddings, biases and norms are not trivial.
"""

from __future__ import annotations

import re
from typing import Any

#: Parameters whose initial values mean something (state-space decay, time steps, relative positions, frequencies).
_MEANINGFUL = re.compile(
    r"A_log|dt_bias|time_decay|time_first|time_mix|\bD$|inv_freq|logit_scale|logit_bias|a_param|slopes|gamma_[12]$|rel(ative)?_pos\w*$|forget"
)

_EMBEDDING = 0.3
_GAIN = 1.3
#: Predictors of lengths, in logarithms: a little more and the output is endless.
_QUIET = re.compile(r"duration_predictor")
_QUIET_GAIN = 0.2


def randomise(model: Any, *, seed: int = 0) -> None:
    """Fills all weights (and running statistics of batch norms) of ``model`` in place, from ``seed`` alone: the order
    of parameters and their shapes decide, not the state of torch's generator."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    seen: set[int] = set()
    with torch.no_grad():
        for path, module in model.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) not in seen:  # tied weights are filled once
                    seen.add(id(parameter))
                    _fill(parameter, module, f"{path}.{name}", generator)
            _fill_statistics(module, generator)


def _fill(parameter: Any, module: Any, name: str, generator: Any) -> None:
    import torch
    from torch import nn

    noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float32)
    leaf = name.rsplit(".", 1)[-1]
    if not parameter.is_floating_point():
        return
    if _MEANINGFUL.search(leaf):
        if not bool(parameter.isfinite().all()) or float(parameter.abs().max()) > 1e4:
            parameter.copy_(0.1 * noise)
        return
    if isinstance(module, nn.Embedding):
        # small beside what the layers add, so that a tied head does not just repeat the last token
        scale = getattr(module, "scalar_embed_scale", None) or getattr(module, "embed_scale", None)
        parameter.copy_(_EMBEDDING * noise / max(1.0, float(scale or 1.0)))
        if module.padding_idx is not None:
            parameter[module.padding_idx] = 0
    elif parameter.dim() < 2:
        start = (
            parameter.clone()
            if bool(parameter.isfinite().all()) and float(parameter.abs().amax() if parameter.numel() else 0) < 100
            else torch.zeros_like(parameter)
        )
        parameter.copy_(start + 0.1 * noise)
    elif "original0" in name or leaf == "weight_g":
        parameter.copy_(1 + 0.1 * noise)  # the magnitude of a normalised weight
    elif (
        min(parameter.shape) == 1
        and parameter.numel() == max(parameter.shape)
        and not isinstance(module, (nn.Linear, nn.Conv1d, nn.Conv2d))
    ):
        parameter.copy_(0.5 * noise)  # class tokens, scales
    else:
        gain = _QUIET_GAIN if _QUIET.search(name) else _GAIN
        parameter.copy_(gain * noise / _fan_in(parameter, module) ** 0.5)


def _fan_in(parameter: Any, module: Any) -> float:
    from torch import nn

    shape = parameter.shape
    if isinstance(module, (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)):
        return max(1.0, shape[0] / module.groups * _product(shape[2:]) / _product(module.stride))
    if isinstance(module, nn.modules.conv._ConvNd):
        return _product(shape[1:])
    if isinstance(module, nn.Linear) or parameter.dim() == 2:
        # Conv1D of GPT-2 is stored transposed; both sides are alike in size there
        return float(shape[1] if isinstance(module, nn.Linear) else max(4, min(shape)))
    return float(max(4, min(shape[-2:])))  # a stack of matrices, one per expert or head


def _product(values: Any) -> float:
    result = 1.0
    for value in values:
        result *= value
    return result


def _fill_statistics(module: Any, generator: Any) -> None:
    """Batch norms: what they remember of training is a weight like others."""
    import torch

    mean, variance = getattr(module, "running_mean", None), getattr(module, "running_var", None)
    if isinstance(mean, torch.Tensor) and isinstance(variance, torch.Tensor):
        mean.copy_(0.1 * torch.randn(mean.shape, generator=generator))
        variance.copy_(1 + 0.2 * torch.rand(variance.shape, generator=generator))
