"""What `OnnxExporter` returns: an ONNX model in memory, whose weights are those of the live model."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from ..check.onnx_worker import OnnxRunner, open_session
from ..errors import ExportError
from .configs import OnnxConfig
from .float32 import widened
from .tensors import get_leaf_tensors

if TYPE_CHECKING:
    import onnx

    from .._core import OnnxModel

#: A session is opened from memory up to this many bytes of weights; protobuf ends at 2 GB.
_LARGEST_IN_MEMORY = 1 << 30


class ONNXProgram:
    """An exported model. It reads the weights of the model that it was made from when it is saved or first run.

    ::

        program = OnnxExporter().export(model, inputs, OnnxConfig(dynamic=True))
        program.save("model.onnx")
        logits, *caches = program(**inputs)   # in ONNX Runtime
    """

    def __init__(
        self,
        core: OnnxModel,
        config: OnnxConfig,
        exported_program: torch.export.ExportedProgram,
        weights: list[torch.Tensor],
        notes: list[str],
    ) -> None:
        self._core = core
        self._config = config
        self._weights = weights  # the core holds addresses only
        self._runner: OnnxRunner | None = None
        self._folder: tempfile.TemporaryDirectory | None = None
        self.exported_program = exported_program
        #: What was left out or fixed, a line each.
        self.notes = notes

    @property
    def input_names(self) -> list[str]:
        """Of the model, in order. A tensor inside a cache or another container has a dotted name."""
        return list(self._core.inputs)

    @property
    def output_names(self) -> list[str]:
        """The model's outputs, in order."""
        return list(self._core.outputs)

    @property
    def model_proto(self) -> onnx.ModelProto:
        """The model as the ``onnx`` package has it, made anew each time; weights included, as the configuration says."""
        import onnx

        return onnx.load_model_from_string(self._core.to_bytes(**self._exposure()))

    def _exposure(self, include: bool | None = None, keep: bool | None = None) -> dict[str, bool]:
        return {
            "store_weights": self._config.export_params if include is None else include,
            "weights_as_inputs": self._config.keep_initializers_as_inputs if keep is None else keep,
        }

    def save(
        self,
        destination: str | os.PathLike,
        *,
        include_initializers: bool | None = None,
        keep_initializers_as_inputs: bool | None = None,
        external_data: bool | None = None,
    ) -> None:
        """Writes the model; with `external_data` larger weights go to a file beside it (``model.onnx.data``).

        What is not given is as the configuration says.
        """
        self._core.save(
            os.fspath(destination),
            external_data=self._config.external_data if external_data is None else external_data,
            **self._exposure(include_initializers, keep_initializers_as_inputs),
        )

    def initialize_inference_session(self, initializer: Callable[[str | bytes], Any] = open_session) -> None:
        """Opens the model in ONNX Runtime. `initializer` makes the session from a file's name or contents."""
        self.release()
        if self._core.weight_bytes <= _LARGEST_IN_MEMORY:
            session = initializer(self._core.to_bytes())
        else:
            self._folder = tempfile.TemporaryDirectory(prefix="argosy-onnx-")
            path = Path(self._folder.name) / "model.onnx"
            self._core.save(str(path))
            session = initializer(str(path))
        self._runner = OnnxRunner(session)

    def release(self) -> None:
        """Closes the session, if there is one."""
        self._runner = None
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the model in ONNX Runtime on the arguments that the module takes; returns its tensors in order."""
        tensors = self._given(args, kwargs)
        if self._runner is None:
            self.initialize_inference_session()
        assert self._runner is not None
        self._check(tensors)
        return tuple(self._runner(tensors).values())

    def without_weights(self) -> bytes:
        """The model with its weights as inputs, as ``export_params=False`` writes it."""
        return self._core.to_bytes(store_weights=False)

    def outputs_by_name(self, inputs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """What a call gives, by the names that the module's outputs have there."""
        return {name.removeprefix("output."): value for name, value in zip(self.output_names, self(**inputs), strict=True)}

    def call_reference(self, *args: Any, **kwargs: Any) -> tuple[torch.Tensor, ...]:
        """Runs the model as a call does, in the reference implementation of the ``onnx`` package, which is slow."""
        from onnx.reference import ReferenceEvaluator

        tensors = self._given(args, kwargs)
        self._check(tensors)
        arrays = ReferenceEvaluator(self.model_proto).run(None, {name: tensor.numpy() for name, tensor in tensors.items()})
        return tuple(torch.from_numpy(np.asarray(array)) for array in arrays)

    def compute_values(
        self, value_names: Sequence[str], args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> tuple[torch.Tensor, ...]:
        """What values inside the model are in a call, by their names in `model_proto`."""
        import onnx

        model = self.model_proto
        known = {name for node in model.graph.node for name in node.output}
        if unknown := [name for name in value_names if name not in known]:
            raise ExportError(f"the model has no value {', '.join(unknown)}", code="invalid-input",
                              hint="names are those of the outputs of nodes in model_proto.graph")  # fmt: skip
        del model.graph.output[:]
        model.graph.output.extend(onnx.ValueInfoProto(name=name) for name in value_names)
        tensors = self._given(args, kwargs or {})
        self._check(tensors)
        return tuple(OnnxRunner(open_session(model.SerializeToString()))(tensors).values())

    def _given(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        return widened(get_leaf_tensors({**dict(zip(self._arguments(), args, strict=False)), **kwargs}))

    def _arguments(self) -> list[str]:
        """The arguments of the module that have tensors, in order."""
        return list(dict.fromkeys(name.split(".")[0] for name in self.input_names))

    def _check(self, given: Mapping[str, torch.Tensor]) -> None:
        missing = [name for name in self.input_names if name not in given]
        unknown = [name for name in given if name not in self.input_names]
        if missing or unknown:
            texts = [f"it also takes {', '.join(missing)}"] if missing else []
            texts += [f"it has no input {', '.join(unknown)}"] if unknown else []
            raise ExportError(
                f"the model cannot be called like that: {'; '.join(texts)}",
                code="invalid-input",
                hint="give what the model was exported with; prepare_for_export adds what it computes from inputs",
            )

    def __repr__(self) -> str:
        return f"ONNXProgram(inputs={self.input_names}, outputs={self.output_names})"
