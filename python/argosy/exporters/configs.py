"""What an export is asked for: one dataclass per format, made from and to plain dicts."""

from __future__ import annotations

import copy
import dataclasses
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum, StrEnum
from os import PathLike
from typing import Any, TypeVar

from ..errors import ExportError

Config = TypeVar("Config", bound="ExportConfigMixin")


class ExportFormat(StrEnum):
    """What an export writes. Equal to its name, so that a dict with ``"onnx"`` does as well."""

    DYNAMO = "dynamo"
    ONNX = "onnx"
    EXECUTORCH = "executorch"


@dataclass
class ExportConfigMixin:
    """Base of all configurations. Fields are checked when one is made; an unknown key in a dict is an error."""

    export_format: ExportFormat | str

    def __post_init__(self) -> None:
        expected = type(self).__dataclass_fields__["export_format"].default
        if expected is not dataclasses.MISSING and self.export_format != expected:
            raise ExportError(
                f"{type(self).__name__} is for {_text(expected)}, not for {_text(self.export_format)}",
                code="invalid-input",
                hint="leave export_format out, or use AutoExportConfig.from_dict, which picks the class by it",
            )
        if expected is not dataclasses.MISSING:
            self.export_format = expected

    @classmethod
    def from_dict(cls: type[Config], config_dict: Mapping[str, Any]) -> Config:
        """A configuration with these fields; the others have their defaults."""
        known = [field.name for field in dataclasses.fields(cls)]
        unknown = sorted(set(config_dict) - set(known))
        if unknown:
            raise ExportError(
                f"{cls.__name__} has no {', '.join(map(repr, unknown))}",
                code="invalid-input",
                hint=f"its fields are {', '.join(known)}",
            )
        return cls(**config_dict)

    @classmethod
    def accept(cls: type[Config], config: ExportConfigMixin | Mapping[str, Any] | None) -> Config:
        """`config` itself, one made from a dict, or the default one for None."""
        if config is None:
            return cls()  # type: ignore[call-arg]
        if isinstance(config, Mapping):
            return cls.from_dict(config)
        if not isinstance(config, cls):
            raise ExportError(
                f"the configuration is a {type(config).__name__}",
                code="invalid-input",
                hint=f"give a {cls.__name__}, or a dict of its fields",
            )
        return config

    def to_dict(self) -> dict[str, Any]:
        """All fields by name, copied."""
        return {field.name: copy.deepcopy(getattr(self, field.name)) for field in dataclasses.fields(self)}

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        yield from self.to_dict().items()


def _text(value: Any) -> str:
    return repr(value.value if isinstance(value, Enum) else value)


def _check_types(config: ExportConfigMixin, **kinds: tuple[type, ...]) -> None:
    for name, allowed in kinds.items():
        value = getattr(config, name)
        # True is an int in Python, but no opset version.
        if not isinstance(value, allowed) or (isinstance(value, bool) and bool not in allowed):
            names = " or ".join("None" if kind is type(None) else kind.__name__ for kind in allowed)
            raise ExportError(
                f"{name} is {value!r}", code="invalid-input", hint=f"{type(config).__name__}.{name} is a {names}"
            )


@dataclass
class DynamoConfig(ExportConfigMixin):
    """Export to a `torch.export.ExportedProgram`."""

    export_format: ExportFormat | str = ExportFormat.DYNAMO
    dynamic: bool = False
    """Axes may vary: all of them, unless `dynamic_shapes` says which."""
    strict: bool = False
    """torch.export's strict mode: traces the bytecode, which finds more errors and fails more often."""
    dynamic_shapes: dict[str, Any] | None = None
    """Which axes vary, as torch.export takes it; goes before `dynamic`."""
    prefer_deferred_runtime_asserts_over_guards: bool = False
    """Conditions on sizes become checks in the graph instead of errors of the trace."""
    check: bool = False
    """Run what comes out beside the model, on the sample inputs and, where the batch varies, with one more row."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_types(
            self,
            dynamic=(bool,),
            strict=(bool,),
            dynamic_shapes=(dict, tuple, list, type(None)),
            prefer_deferred_runtime_asserts_over_guards=(bool,),
            check=(bool,),
        )


@dataclass
class OnnxConfig(DynamoConfig):
    """Export to ONNX."""

    export_format: ExportFormat | str = ExportFormat.ONNX
    output_path: str | PathLike | None = None
    """The ``.onnx`` file; None keeps the model in memory."""
    opset_version: int | None = None
    """None takes the default of the exporter."""
    external_data: bool = True
    """Weights in a file beside the model, as models above 2 GB need."""
    optimize: bool = True
    export_params: bool = True
    """False leaves the weights out of the file."""
    keep_initializers_as_inputs: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_types(
            self,
            output_path=(str, PathLike, type(None)),
            opset_version=(int, type(None)),
            external_data=(bool,),
            optimize=(bool,),
            export_params=(bool,),
            keep_initializers_as_inputs=(bool,),
        )


@dataclass
class ExecutorchConfig(DynamoConfig):
    """Export to ExecuTorch."""

    export_format: ExportFormat | str = ExportFormat.EXECUTORCH
    backend: str = "xnnpack"
    """``"xnnpack"``, or ``"portable"`` for ExecuTorch's own kernels alone."""
    max_sizes: dict[str, int] | None = None
    """The largest size of dims that vary, by name: memory is reserved for it. Else a ``Dim``'s own bound, or a usual one
    (`ExecutorchProgram.notes` tells it)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_types(self, backend=(str,), max_sizes=(dict, type(None)))
