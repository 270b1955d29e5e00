"""Random weights that make a difference.

Transformers' own initialisation keeps signals so small that a wrong mask or a lost layer hides below any tolerance.
Here each matrix keeps the size of what it multiplies, and embeddings, biases and norms are not trivial.
"""

from __future__ import annotations

import re
from typing import Any

#: Parameters whose initial values mean something (state-space decay, time steps, frequencies, temperatures).
_MEANINGFUL = re.compile(
    r"A_log|dt_bias|time_decay|time_first|time_mix|\bD$|inv_freq|logit_scale|logit_bias|a_param|slopes"
)

_EMBEDDING = 0.05
_GAIN = 1.3
#: Heads over a vocabulary or labels: logits of size one half keep rounding errors far below tolerances of 1e-5.
_HEAD_GAIN = 0.5
_HEAD = re.compile(r"(^|\.)(classifier|score|qa_outputs)$")
#: What a decoder sees of its encoder is the same at every position; louder, it drowns the tokens.
_CROSS = re.compile(r"encoder_attn\.|crossattention\.|EncDecAttention\.|cross_attn\.|encoder_decoder_attention\.")
_CROSS_GAIN = 0.8
#: Predictors of lengths, in logarithms: a little more and the output is endless.
_QUIET = re.compile(r"duration_predictor")
_QUIET_GAIN = 0.2
#: Projections to the time steps of state-space layers. With steps as small as trained ones a state remembers many tokens
#: and stays of the size of its inputs; with others it forgets at once or grows, and rounding errors with it.
_TIME_STEP = re.compile(r"\bdt_proj|\bx_proj_weight")
_TIME_STEP_GAIN = 0.5
_TIME_STEP_BIAS = -2.0
#: States of recurrent layers add up over the tokens: with louder weights rounding alone is above tolerances of 1e-5.
_RECURRENT = re.compile(r"\.(A_log|slope_rate|time_decay|recurrent_param)$")
_RECURRENT_GAIN = 0.8


def randomise(model: Any, *, seed: int = 0) -> None:
    """Fills all weights (and codebooks) of ``model`` in place, from ``seed`` alone: the order
    of parameters and their shapes decide, not the state of torch's generator."""
    import torch

    generator = torch.Generator().manual_seed(seed)
    seen: set[int] = set()
    # batch norms undo what convolutions do to the size of a signal; without them, pyramids of convolutions add up
    convolution_gain = 2.0 if any(has_statistics(module) for module in model.modules()) else 0.85
    head = model.get_output_embeddings() if hasattr(model, "get_output_embeddings") else None
    names = [name for name, _ in (*model.named_parameters(), *model.named_buffers())]
    never_saved = set(getattr(model, "_keys_to_ignore_on_save", None) or ())  # the model computes these itself
    gain = _RECURRENT_GAIN if any(_RECURRENT.search(name) for name in names) else _GAIN
    with torch.no_grad():
        for path, module in model.named_modules():
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) not in seen and f"{path}.{name}" not in never_saved:  # tied weights are filled once
                    seen.add(id(parameter))
                    _fill(parameter, module, f"{path}.{name}", generator, gain, convolution_gain)
                    if parameter.dim() == 2 and (module is head or _HEAD.search(path)):
                        parameter.mul_(_HEAD_GAIN / gain)
            _fill_codebooks(module, generator)


def _fill(parameter: Any, module: Any, name: str, generator: Any, gain: float, convolution_gain: float) -> None:
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
    if _TIME_STEP.search(name) and leaf.endswith("bias"):
        parameter.copy_(_TIME_STEP_BIAS + 0.1 * noise)
    elif isinstance(module, nn.Embedding):
        # small beside what the layers add, so that a tied head does not just repeat the last token
        scale = getattr(module, "scalar_embed_scale", None) or getattr(module, "embed_scale", None)
        size = 1.0 if "query" in name else _EMBEDDING  # queries of detectors are all that tells them apart
        parameter.copy_(size * noise / max(1.0, float(scale or 1.0)) ** 0.5)
        if module.padding_idx is not None:
            parameter[module.padding_idx] = 0
    elif parameter.dim() < 2:
        start = (
            parameter.clone()
            if bool(parameter.isfinite().all()) and float(parameter.abs().amax() if parameter.numel() else 0) < 100
            else torch.zeros_like(parameter)
        )
        if "1P" in type(module).__name__:
            start = torch.zeros_like(parameter)  # such norms add one themselves
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
        gain = _QUIET_GAIN if _QUIET.search(name) else _CROSS_GAIN if _CROSS.search(name) else gain
        gain = _TIME_STEP_GAIN if _TIME_STEP.search(name) else gain
        if isinstance(module, nn.modules.conv._ConvNd):
            gain = convolution_gain
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


def _fill_codebooks(module: Any, generator: Any) -> None:
    """Codebooks and fixed biases are filled by training; here by chance."""
    import torch

    for name, buffer in module.named_buffers(recurse=False):
        kept = name not in module._non_persistent_buffers_set
        if kept and buffer.is_floating_point() and buffer.dim() >= 2 and not bool(buffer.any()):
            size = 0.1 if "bias" in name else 1.0
            buffer.copy_(size * torch.randn(buffer.shape, generator=generator))


def settle(model: Any, inputs: dict[str, Any]) -> None:
    """Sets what the batch norms of ``model`` remember to what they see for ``inputs``. With any other numbers a deep
    stack of convolutions forgets its input: what is the same in all pictures grows from layer to layer."""
    import torch

    def remember(module: Any, arguments: tuple[Any, ...]) -> None:
        variance, mean = torch.var_mean(arguments[0].transpose(0, 1).flatten(1), dim=1)
        module.running_mean.copy_(mean)
        module.running_var.copy_(variance.clamp_min(1e-3))

    norms = [m for m in model.modules() if has_statistics(m)]
    handles = [module.register_forward_pre_hook(remember) for module in norms]
    try:
        with torch.no_grad():
            model(**inputs)
    finally:
        for handle in handles:
            handle.remove()


def has_statistics(module: Any) -> bool:
    """Whether ``module`` normalises by what it remembers of training."""
    import torch

    names = ("running_mean", "running_var")
    return all(isinstance(getattr(module, name, None), torch.Tensor) for name in names)
