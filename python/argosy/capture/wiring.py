"""How the components of a model feed each other."""

from __future__ import annotations

from .trace import Traced

#: Outputs that other components know under another name.
_RENAMED = {"last_hidden_state": "encoder_hidden_states"}


def wiring(traced: list[Traced]) -> list[dict[str, str]]:
    """Which output of a component feeds which input of a later one: ``{"from": "encoder.cross.0.key", "to":
    "decoder.past_key_values.0.encoder.key"}``. Outputs find inputs of their own name."""
    return wires([(each.component.name, list(each.input_paths.values()), each.output_names) for each in traced])


def wires(components: list[tuple[str, list[str], list[str]]]) -> list[dict[str, str]]:
    """The same from names: of components, and of what goes in and out."""
    found = []
    for i, (source, _, outputs) in enumerate(components):
        for target, inputs, _ in components[i + 1 :]:
            known = set(inputs)
            for output in outputs:
                if (name := _input_name(output)) in known:
                    found.append({"from": f"{source}.{output}", "to": f"{target}.{name}"})
    return found


def _input_name(output: str) -> str:
    if output.startswith("cross."):
        layer, _, part = output.removeprefix("cross.").partition(".")
        return f"past_key_values.{layer}.encoder.{part}"
    return _RENAMED.get(output, output)
