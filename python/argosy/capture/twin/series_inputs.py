"""Numbers over time: what was measured, and what an agent saw and did."""

from __future__ import annotations

from .request import Request

#: Steps of a series whose length is free, for each value of ``Sizes.media``.
_STEPS = (12, 20)
#: What is known of each step, and the attribute that says how many numbers it has; one where there is none.
_STATES = {"states": "state_dim", "actions": "act_dim", "rewards": None, "returns_to_go": None}


def add_series(request: Request) -> None:
    """Adds a series, if the model takes any."""
    if request.takes(*_STATES):
        _add_episode(request)
    elif request.takes("past_values", "past_time_features"):
        _add_past_and_future(request)
    elif request.takes("past_values"):
        _add_past(request)


def _add_episode(request: Request) -> None:
    import torch

    batch, steps = request.sizes.batch, _STEPS[request.media]
    for name, attribute in _STATES.items():
        request.inputs[name] = request.normal(batch, steps, getattr(request.config, attribute) if attribute else 1)
    request.inputs["timesteps"] = torch.arange(steps).expand(batch, steps).clone()
    request.inputs["attention_mask"] = torch.ones(batch, steps, dtype=torch.long)


def _add_past(request: Request) -> None:
    """A window of fixed length, with a column for each channel where the model knows channels."""
    import torch

    batch, channels = request.sizes.batch, request.find("num_input_channels")
    steps = request.find("context_length", default=_STEPS[request.media])
    shape = (batch, steps) if channels is None else (batch, steps, channels)
    request.inputs["past_values"] = request.normal(*shape)
    if request.takes("freq"):
        request.inputs["freq"] = torch.zeros(batch, 1, dtype=torch.long)


def _add_past_and_future(request: Request) -> None:
    """What was measured, what is to be foretold, and what is known of the time of both. The past begins as many steps before
    its context as the model looks back."""
    import torch

    batch, config = request.sizes.batch, request.config
    lengths = {"past": config.context_length + max(config.lags_sequence), "future": config.prediction_length}
    for name, steps in lengths.items():
        request.inputs[f"{name}_values"] = request.normal(batch, steps).abs() + 1
        request.inputs[f"{name}_time_features"] = request.normal(batch, steps, config.num_time_features)
    request.inputs["past_observed_mask"] = torch.ones(batch, lengths["past"])
