"""Runs `argosy export` for tests, on twins that are saved as if they had been downloaded."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import torch
from cli_tool import REPOSITORY, Argosy
from warm import warm_python

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()


@dataclass(frozen=True)
class Exporter(Argosy):
    """The program with the Python of the tests, which finds the package that may not be installed."""

    backend: str = "pt2"

    def run(self, *arguments: str | Path, code: int = 0, **environment: str) -> tuple[str, str]:
        return super().run(*arguments, code=code, **self.environment(), **environment)

    def environment(self) -> dict[str, str]:
        return {"ARGOSY_PYTHON": warm_python(), "PYTHONPATH": str(REPOSITORY / "python")}

    def export(self, model: Path, *arguments: str | Path, code: int = 0) -> str:
        return self.run("export", self.backend, "--model", model, "--check", "off", *arguments, code=code)[1]


def make_exporter(folder: Path, backend: str) -> Exporter:
    return Exporter(PROGRAM, folder / "cache", folder / "none", backend)


@cache
def twin(model_type: str):
    from transformers import CONFIG_MAPPING

    from argosy.capture.twin import build, shrink

    return build(shrink(CONFIG_MAPPING[model_type]()))


def save_twins(folder: Path, *model_types: str) -> Path:
    """Folders of checkpoints."""
    from argosy.capture.twin import save

    for model_type in model_types:
        save(twin(model_type), folder / model_type)
    return folder


def llama_inputs(
    config, tokens: torch.Tensor, dtype: torch.dtype = torch.float32, state: str = "past_key_values_{}_{}"
) -> dict[str, torch.Tensor]:
    """A call of `decode` without a past; `state` is how its states are called."""
    batch, length = tokens.shape
    head = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    past = torch.zeros(batch, config.num_key_value_heads, 0, head, dtype=dtype)
    positions = torch.arange(length).expand(batch, length)
    states = {state.format(i, part): past for i in range(config.num_hidden_layers) for part in ("key", "value")}
    return {"input_ids": tokens, "attention_mask": torch.ones_like(tokens), "position_ids": positions, **states}
