"""A model type of the package's own: a Llama with another activation."""

import torch
from transformers import AutoConfig, AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM


class SampleConfig(LlamaConfig):
    model_type = "sample"

    def __init__(self, mixes: bool = False, **settings):
        self.mixes = mixes
        super().__init__(**settings)


def require_finite(x: torch.Tensor) -> None:
    """Reads values, which no trace can."""
    if not x.isfinite().all():
        raise ValueError("not finite")


class Gate(torch.nn.Module):
    def __init__(self, mixes: bool) -> None:
        super().__init__()
        self.mixes = mixes

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        require_finite(x)
        gated = torch.ops.sample.gate(x, 0.5)
        return torch.ops.sample.mix([gated, x], [0.75, 0.25]) if self.mixes else gated


class SampleForCausalLM(LlamaForCausalLM):
    config_class = SampleConfig

    def __init__(self, config: SampleConfig) -> None:
        super().__init__(config)
        for layer in self.model.layers:
            layer.mlp.act_fn = Gate(config.mixes)


AutoConfig.register("sample", SampleConfig)
AutoModelForCausalLM.register(SampleConfig, SampleForCausalLM)
