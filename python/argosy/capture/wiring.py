"""How the components of a model feed each other."""

from __future__ import annotations

from .trace import Traced

#: Outputs that other components know under another name.
_RENAMED = {"last_hidden_state": "encoder_hidden_states"}


def wiring(traced: list[Traced]) -> list[dict[str, str]]:
    """Which output of a component feeds which input of a later one: ``{"from": "encoder.cross.0.key", "to":
    "decoder.past_key_values.0.encoder.key"}``. Outputs find inputs of their own name."""
    found = []
    for i, source in enumerate(traced):
        for target in traced[i + 1 :]:
            inputs = set(target.input_paths.values())
            for output in source.output_names:
                if (name := _input_name(output)) in inputs:
                    found.append({"from": f"{source.component.name}.{output}", "to": f"{target.component.name}.{name}"})
    return found


def _input_name(output: str) -> str:
    if output.startswith("cross."):
        layer, _, part = output.removeprefix("cross.").partition(".")
        return f"past_key_values.{layer}.encoder.{part}"
    return _RENAMED.get(output, output)
