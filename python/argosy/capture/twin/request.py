"""What rules for inputs look at: a model, its configuration and the sizes that are wanted."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any


#: Pictures as the model's own processor makes them; and larger ones for traces, which cost nothing: small ones are special
#: cases of code that works in windows or strides.
OWN, TRACED = 2, 3


@dataclass(frozen=True)
class Sizes:
    """How large sample inputs are."""

    batch: int = 2
    sequence: int = 11
    """Tokens of text in a row; placeholders of images or audio come on top."""
    padding: int = 0
    """Of these, tokens of padding on the left of the first row."""
    decoder_sequence: int = 7
    """Tokens of the decoder in encoder-decoder models."""
    media: int = 0
    """0 or 1: two sizes of images or audio, where the architecture takes more than one. Of pictures there are ``OWN`` and
    ``TRACED`` too; everything else takes these for 1."""
    free_pictures: bool | None = None
    """Whether pictures may have another size than the one that the configuration names; None: a guess by its fields."""


class Request:
    """What the rules for inputs look at: the model, what its ``forward`` takes, and the sizes wanted."""

    def __init__(self, model: Any, sizes: Sizes, seed: int) -> None:
        import torch

        self.model = model
        self.config = model.config
        self.sizes = sizes
        self.parameters = forward_parameters(model)
        self.main = getattr(model, "main_input_name", "input_ids")
        self.generator = torch.Generator().manual_seed(seed)
        self.inputs: dict[str, Any] = {}
        #: which of two sizes media have
        self.media = min(sizes.media, 1)
        #: patches in a column and in a row of each picture, where pictures are patches
        self.grid: tuple[int, int] | None = None

    def takes(self, *names: str) -> bool:
        """Whether ``forward`` has all these parameters."""
        return all(name in self.parameters for name in names)

    def needs(self, name: str) -> bool:
        """Whether ``forward`` has the parameter, and no default for it."""
        found = inspect.signature(self.model.forward).parameters.get(name)
        return found is not None and found.default is found.empty

    def find(self, *names: str, default: Any = None) -> Any:
        """The first of these attributes that the configuration, or one nested in it, has."""
        return find(self.config, *names, default=default)

    def normal(self, *shape: int) -> Any:
        """Values like those of normalised pixels or samples."""
        import torch

        return torch.randn(shape, generator=self.generator)


def lacks_part(config: Any, name: str) -> bool:
    """Whether a model that may have a part for pictures or sounds has none."""
    return getattr(config, name, config) is None


def forward_parameters(model: Any) -> tuple[str, ...]:
    """Names of the parameters of ``forward``, without the catch-alls."""
    parameters = inspect.signature(model.forward).parameters.values()
    return tuple(p.name for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD))


def nested(config: Any) -> list[Any]:
    """``config`` and every configuration inside it, outermost first."""
    found = [config]
    for value in vars(config).values():
        if hasattr(value, "to_dict") and hasattr(value, "model_type"):
            found += nested(value)
    return found


def find(config: Any, *names: str, default: Any = None) -> Any:
    """The first of ``names`` that ``config``, or else one nested in it, has a value for."""
    for part in nested(config):
        for name in names:
            value = getattr(part, name, None)
            if value is not None and not hasattr(value, "to_dict"):
                return value
    return default


def as_list(value: Any) -> list[Any]:
    """What there is one of or several."""
    return list(value) if isinstance(value, (list, tuple)) else [value]
