"""Whether the twin of a model type runs: one result, for a table of many."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

from argosy.capture.twin import Sizes, build, sample_inputs

from .configurations import configuration

#: Sizes at which a twin must run: left padding, one row, one token, more than two windows and other media.
FORWARD_SIZES = (
    Sizes(padding=3),
    Sizes(batch=1),
    Sizes(batch=3, sequence=1),
    Sizes(sequence=20, padding=3),
    Sizes(sequence=20, media=1),
)
#: Decoders begin with their start token, as users call them.
GENERATE_SIZES = (
    Sizes(padding=3, decoder_sequence=1),
    Sizes(batch=1, sequence=2, decoder_sequence=1),
    Sizes(batch=3, sequence=20, media=1, decoder_sequence=1),
)
NEW_TOKENS = 3


@dataclass
class Trial:
    """What became of a twin."""

    model_type: str
    status: str
    """``"ok"``, or the stage that failed: ``"build"``, ``"forward"``, ``"generate"``, ``"dull"`` (outputs hardly depend
    on inputs)."""
    reason: str = ""
    model_class: str = ""
    parameters: int = 0
    generates: bool = False
    spread: float = 0.0
    """Largest difference of the first output between two different inputs."""
    seconds: float = 0.0

    def to_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return asdict(self)


def try_twin(model_type: str) -> Trial:
    """Builds the twin of ``model_type``'s default configuration and runs it at all sizes. Never raises for what the
    model does; the result says."""
    trial = Trial(model_type, "build")
    start = time.monotonic()
    try:
        _run(trial)
        trial.status = "ok"
    except Exception as error:
        trial.reason = f"{type(error).__name__}: {error}".splitlines()[0][:300]
    trial.seconds = round(time.monotonic() - start, 2)
    return trial


def _run(trial: Trial) -> None:
    import torch

    model = build(configuration(trial.model_type))
    trial.model_class = type(model).__name__
    trial.parameters = sum(parameter.numel() for parameter in model.parameters())
    trial.generates = model.can_generate()
    trial.status = "forward"
    with torch.no_grad():
        for sizes in FORWARD_SIZES:
            model(**sample_inputs(model, sizes))
    if trial.generates:
        trial.status = "generate"
        for sizes in GENERATE_SIZES:
            model.generate(**sample_inputs(model, sizes), max_new_tokens=NEW_TOKENS, do_sample=False)
    trial.status = "dull"
    trial.spread = round(_spread(model), 4)
    if trial.spread < 0.01:
        raise AssertionError(f"outputs of two inputs differ by {trial.spread} only")


def _spread(model: Any) -> float:
    import torch

    outputs = []
    for seed in (1, 2):
        with torch.no_grad():
            output = model(**sample_inputs(model, Sizes(sequence=20), seed=seed))
        outputs.append(first_tensor(output))
    one, two = outputs
    if one.shape != two.shape:
        return float("inf")
    if not one.is_floating_point():
        return float((one != two).float().mean())
    both = one.isfinite() & two.isfinite()  # some heads fill what does not apply with infinities
    return float((one - two)[both].abs().max()) if bool(both.any()) else 0.0


def first_tensor(output: Any) -> Any:
    """The logits of a model's output, else the first tensor in it."""
    import torch

    logits = getattr(output, "logits", None)
    if isinstance(logits, torch.Tensor):
        return logits
    if isinstance(output, torch.Tensor):
        return output
    values = output.values() if hasattr(output, "values") else output
    for value in values:
        found = (
            value
            if isinstance(value, torch.Tensor)
            else first_tensor(value)
            if isinstance(value, (list, tuple)) and value
            else None
        )
        if found is not None:
            return found
    raise TypeError(f"no tensor in an output of type {type(output).__name__}")
