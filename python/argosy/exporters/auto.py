"""The right configuration class and exporter for a format that is known at run time only."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any

from ..errors import ExportError
from ..extensions import load_extensions
from .base import HfExporter
from .configs import DynamoConfig, ExecutorchConfig, ExportConfigMixin, ExportFormat, OnnxConfig


class _Exporters(dict[str, Any]):
    """Classes, or modules and names of classes, so that only the exporter in use is imported."""

    def __getitem__(self, name: str) -> type[HfExporter]:
        found = super().__getitem__(name)
        if isinstance(found, tuple):
            found = self[name] = getattr(importlib.import_module(found[0], __package__), found[1])
        return found


#: Format to exporter.
AUTO_EXPORTER_MAPPING = _Exporters(
    dynamo=(".exporter_dynamo", "DynamoExporter"),
    onnx=(".exporter_onnx", "OnnxExporter"),
    executorch=(".exporter_executorch", "ExecutorchExporter"),
)

#: Format to configuration.
AUTO_EXPORT_CONFIG_MAPPING: dict[str, type[ExportConfigMixin]] = {
    "dynamo": DynamoConfig,
    "onnx": OnnxConfig,
    "executorch": ExecutorchConfig,
}


class AutoExportConfig:
    """Makes the configuration that a dict describes."""

    @classmethod
    def from_dict(cls, config_dict: Mapping[str, Any]) -> ExportConfigMixin:
        """The configuration of the class that belongs to ``config_dict["export_format"]``."""
        return _look_up(AUTO_EXPORT_CONFIG_MAPPING, config_dict.get("export_format"), "configuration").from_dict(config_dict)


class AutoHfExporter:
    """Makes the exporter that belongs to a configuration."""

    @classmethod
    def from_config(cls, config: ExportConfigMixin | Mapping[str, Any], **options: Any) -> HfExporter:
        """An exporter for the format of `config`; `options` go to its constructor."""
        if isinstance(config, Mapping):
            config = AutoExportConfig.from_dict(config)
        return _look_up(AUTO_EXPORTER_MAPPING, config.export_format, "exporter")(**options)


def get_hf_exporter(export_config: ExportConfigMixin | Mapping[str, Any]) -> HfExporter:
    """The same as `AutoHfExporter.from_config`."""
    return AutoHfExporter.from_config(export_config)


def register_exporter(name: str) -> Callable[[type[HfExporter]], type[HfExporter]]:
    """Registers the decorated subclass of `HfExporter` for a format, in place of the one there was."""

    def decorate(exporter: type[HfExporter]) -> type[HfExporter]:
        _check_class(exporter, HfExporter)
        AUTO_EXPORTER_MAPPING[name] = exporter
        return exporter

    return decorate


def register_export_config(name: str) -> Callable[[type[ExportConfigMixin]], type[ExportConfigMixin]]:
    """Registers the decorated configuration class for a format, in place of the one there was."""

    def decorate(config: type[ExportConfigMixin]) -> type[ExportConfigMixin]:
        _check_class(config, ExportConfigMixin)
        AUTO_EXPORT_CONFIG_MAPPING[name] = config
        return config

    return decorate


def _name(export_format: Any) -> str:
    return export_format.value if isinstance(export_format, ExportFormat) else export_format


def _look_up(table: Mapping[str, Any], export_format: Any, what: str) -> Any:
    if export_format is None:
        raise ExportError(
            "the configuration has no export_format",
            code="invalid-input",
            hint=f"add one: {', '.join(f'{name!r}' for name in table)}",
        )
    load_extensions()
    name = _name(export_format)
    if name not in table:
        raise ExportError(
            f"there is no {what} for {name!r}",
            code="invalid-input",
            hint=f"there is one for {', '.join(sorted(table))}",
        )
    return table[name]


def _check_class(given: Any, base: type) -> None:
    if not isinstance(given, type) or not issubclass(given, base):
        raise ExportError(
            f"{given!r} is no subclass of {base.__name__}", code="invalid-input", hint=f"derive it from {base.__name__}"
        )
