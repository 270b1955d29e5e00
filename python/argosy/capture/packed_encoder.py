"""Encoders of packed pictures that are models of their own: patches of all pictures in one row, and the grid of each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from .components import Component, Inputs, Shape, output_dict, parameters_of, to_device
from .multimodal_geometry import given_geometry, is_geometry, observed_geometry
from .twin import Sizes, sample_inputs
from .twin.placeholders import everything_counts


def packed_encoder(twin: torch.nn.Module) -> Component:
    """The whole of ``twin``. What its functions compute from grids is among the inputs; grids are only if something else reads
    them."""
    grids = [name for name in sample_inputs(twin, Sizes()) if is_geometry(name)]
    known = parameters_of(twin.forward)

    def sample(model: torch.nn.Module, shape: Shape) -> Inputs:
        made = sample_inputs(model, Sizes(batch=shape.batch, media=shape.media))
        # values of grids are read; without weights they are all that has any
        return to_device(made, model) | {name: made[name] for name in grids}

    def computed(model: torch.nn.Module, shape: Shape) -> Inputs:
        given = sample(model, shape)
        found: Inputs = {}
        try:
            with torch.no_grad(), everything_counts():
                with observed_geometry(model, found.__setitem__, next(model.parameters()).device):
                    model(**given)
        except Exception:
            # Without weights, what comes after these functions may not run; only they are of interest.
            if not expected or found.keys() != expected:
                raise
        return given | found

    def inputs(model: torch.nn.Module, shape: Shape) -> Inputs:
        return {name: value for name, value in computed(model, shape).items() if name not in unread}

    def run(model: torch.nn.Module, forward: Callable, inputs: Inputs) -> dict[str, Any]:
        from .patches.vision import encoder_patches

        arguments = dict.fromkeys(grids) | {name: value for name, value in inputs.items() if name in known}
        values = {name: value for name, value in inputs.items() if name not in known}
        with encoder_patches(model), given_geometry(model, values):
            return output_dict(forward(**arguments))

    def reference(model: torch.nn.Module, shape: Shape) -> dict[str, Any]:
        with torch.no_grad():
            return output_dict(model(**sample(model, shape)))

    expected: set[str] = set()
    expected = computed(twin, Shape()).keys() - sample(twin, Shape()).keys()
    unread = grids
    try:
        with torch.no_grad():
            run(twin, twin.forward, inputs(twin, Shape()))
    except Exception:  # noqa: BLE001 - code of the model's own, which computes with grids, too
        unread = []
    return Component("model", inputs, run, reference, lambda shape: {"batch": shape.batch})
