"""The base class of exporters."""

from __future__ import annotations

import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Mapping, MutableMapping
from typing import TYPE_CHECKING, Any

from ..errors import ExportError
from ..extensions import load_extensions
from .configs import ExportConfigMixin
from .versions import warn_on_drift

if TYPE_CHECKING:
    import torch


class HfExporter(ABC):
    """Turns a live model into a program of one format. A subclass implements `export`."""

    required_packages: tuple[str, ...] = ("torch", "transformers")
    config_class: type[ExportConfigMixin] = ExportConfigMixin

    def __init__(self) -> None:
        self.validate_environment()
        load_extensions()

    def validate_environment(self) -> None:
        """Fails if a package is missing; warns once about versions that were never tested."""
        missing = [name for name in self.required_packages if importlib.util.find_spec(name) is None]
        if missing:
            raise ExportError(
                f"{type(self).__name__} needs {', '.join(missing)}",
                code="not-found",
                hint=f"pip install {' '.join(missing)}",
            )
        warn_on_drift()

    @abstractmethod
    def export(
        self,
        model: torch.nn.Module,
        sample_inputs: MutableMapping[str, Any],
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
    ) -> Any:
        """The program for one model. `sample_inputs` are the arguments of its forward: ``model(**sample_inputs)``."""

    def export_for_generation(
        self,
        model: torch.nn.Module,
        sample_inputs: MutableMapping[str, Any],
        config: ExportConfigMixin | Mapping[str, Any] | None = None,
        generation_config: Any = None,
    ) -> dict[str, Any]:
        """The programs of all components of a generative model, by name.

        `sample_inputs` are the arguments of ``model.generate``; `decompose_for_generation` finds the components. `config`
        is one for all of them, or a dict with one for each component's name.
        """
        from .decompose import decompose_for_generation

        components = decompose_for_generation(model, sample_inputs, generation_config=generation_config)
        configs = self._configs_for(components, config)
        exported = {}
        for name, (module, inputs) in components.items():
            try:
                exported[name] = self.export(module, inputs, config=configs[name])
            except Exception as error:
                error.add_note(f"in component {name!r}, a {type(module).__name__}, with inputs {', '.join(inputs)}")
                raise
        return exported

    def _configs_for(self, components: Mapping[str, Any], config: Any) -> dict[str, Any]:
        by_component = isinstance(config, Mapping) and any(
            isinstance(value, (ExportConfigMixin, Mapping)) and key != "dynamic_shapes" for key, value in config.items()
        )
        if not by_component:
            return dict.fromkeys(components, config)
        missing = sorted(set(components) - set(config))
        if missing:
            raise ExportError(
                f"no configuration for {', '.join(missing)}",
                code="invalid-input",
                hint=f"the components are {', '.join(components)}; give one for each, or a single one for all",
            )
        return {name: config[name] for name in components}
