"""Writes the golden capture of format version 1: a small model with a cache, a condition and two components.

    PYTHONPATH=python python tests/capture/make_golden.py tests/capture/version_1.capture

Run it only for a new format version: the golden file of a released version never changes.
"""

from __future__ import annotations

import sys

import torch

from argosy.capture.writer import GraphEntry, Manifest, write_capture


class Encoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = torch.nn.Embedding(16, 4)
        self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0, 4.0]), persistent=False)

    def forward(self, tokens: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        hidden = self.embedding(tokens) * self.scale
        return hidden.masked_fill(mask.unsqueeze(-1) == 0, 0.0).transpose(1, 2).contiguous() + 1


class Decoder(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.head = torch.nn.Linear(4, 16)
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, hidden: torch.Tensor, cache: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        cache.copy_(hidden.mean(dim=2))
        logits = self.head(hidden.transpose(1, 2))
        return torch.cond(logits.sum() > 0, lambda x: x.relu(), lambda x: x - 1, (logits,))


def components() -> list[GraphEntry]:
    torch.manual_seed(0)
    batch, sequence = torch.export.Dim("batch", max=64), torch.export.Dim("sequence", max=512)
    encoder = torch.export.export(
        Encoder(), (torch.zeros(2, 3, dtype=torch.int64), torch.ones(2, 3, dtype=torch.int64)),
        dynamic_shapes={"tokens": {0: batch, 1: sequence}, "mask": {0: batch, 1: sequence}},
    )  # fmt: skip
    decoder = torch.export.export(
        Decoder(), (torch.randn(2, 4, 3), torch.zeros(2, 4)),
        dynamic_shapes={"hidden": {0: batch, 2: sequence}, "cache": {0: batch}},
    )  # fmt: skip
    ranges = {"batch": (1, 64), "sequence": (1, 512)}
    both = {0: "batch", 1: "sequence"}
    return [
        GraphEntry("encoder", encoder, {"tokens": both, "mask": both}, ranges, ["hidden"]),
        GraphEntry("decoder", decoder, {"hidden": {0: "batch", 2: "sequence"}, "cache": {0: "batch"}}, ranges, ["logits"],
                  cache={"inputs": ["cache"]}),
    ]  # fmt: skip


if __name__ == "__main__":
    manifest = Manifest(
        model_class="Golden",
        task="text-generation",
        configuration={"hidden_size": 4, "vocab_size": 16},
        wiring=[{"from": "encoder.hidden", "to": "decoder.hidden"}],
    )
    write_capture(sys.argv[1], components(), manifest)
