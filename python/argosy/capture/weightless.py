"""Building a model without its weights: parameters are fake, buffers that no checkpoint holds are real.

The steps are those of ``from_pretrained``: build on the meta device, make the non-persistent buffers real, let the model's
own initialisation fill these, tie weights. A parameter never has memory.
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Iterator

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils._python_dispatch import TorchDispatchMode


@contextlib.contextmanager
def on_meta() -> Iterator[None]:
    """What is created inside has shapes only."""
    try:
        from transformers.initialization import meta_device_safe_creation_ops
    except ImportError:  # before transformers 5
        meta_device_safe_creation_ops = contextlib.nullcontext
    with torch.device("meta"), meta_device_safe_creation_ops(), torch.no_grad():
        yield


def build_on_meta(model_class: type, config, dtype: torch.dtype | None = None) -> torch.nn.Module:
    """The whole model on the meta device, in ``dtype`` or the configuration's."""
    dtype = dtype or getattr(config, "dtype", None) or getattr(config, "torch_dtype", None) or torch.float32
    if isinstance(dtype, str):
        dtype = getattr(torch, dtype)
    with on_meta():
        try:
            model = model_class._from_config(copy.deepcopy(config), dtype=dtype, attn_implementation="sdpa")
        except (ValueError, ImportError):  # the class, or a model inside it, has no sdpa: let it choose
            model = model_class._from_config(copy.deepcopy(config), dtype=dtype)
    _keep_in_float32(model, dtype)
    return model.to("meta").eval().requires_grad_(False)  # some code asks for the CPU by name


def _keep_in_float32(model: torch.nn.Module, dtype: torch.dtype) -> None:
    """Gives float32 to the parameters that ``from_pretrained`` keeps in it, whatever dtype is asked for."""
    plan = model._get_dtype_plan(dtype) if hasattr(model, "_get_dtype_plan") else {}
    patterns = [re.compile(re.escape(name).replace(r"\*", ".*")) for name in plan]
    for name, parameter in model.named_parameters():
        if any(pattern.search(name) for pattern in patterns):
            parameter.data = parameter.data.to(torch.float32)


def without_weights(model: torch.nn.Module) -> torch.nn.Module:
    """The model on meta that ``build_on_meta`` made (which is used up), ready to be traced: weights are fake CPU tensors,
    buffers that no checkpoint holds have their values."""
    if hasattr(model, "initialize_weights") and _initialises_buffers():
        _give_real_buffers(model)
    else:
        model = _build_with_buffers(model)
    _give_fake_weights(model)
    return model


def _initialises_buffers() -> bool:
    try:
        import transformers.initialization  # noqa: F401
    except ImportError:
        return False
    return True


def _build_with_buffers(model: torch.nn.Module) -> torch.nn.Module:
    """Before transformers 5 the values of buffers were only known while a model was built: build it again with real
    buffers; each parameter exists for as long as it takes to drop its memory."""
    from transformers.modeling_utils import no_init_weights

    register = torch.nn.Module.register_parameter

    def on_meta_only(self: torch.nn.Module, name: str, parameter: torch.nn.Parameter | None) -> None:
        register(self, name, parameter)
        if parameter is not None:
            self._parameters[name] = torch.nn.Parameter(parameter.to("meta"), requires_grad=False)

    torch.nn.Module.register_parameter = on_meta_only
    try:
        with no_init_weights(), torch.no_grad():
            built = type(model)._from_config(model.config, dtype=model.dtype)
    finally:
        torch.nn.Module.register_parameter = register
    built.tie_weights()
    return built.eval().requires_grad_(False)


def _give_real_buffers(model: torch.nn.Module) -> None:
    """Makes the non-persistent buffers of a model on meta real, with the values that its initialisation gives them."""
    for name, buffer in _non_persistent_buffers(model):
        owner, _, attribute = name.rpartition(".")
        model.get_submodule(owner)._buffers[attribute] = torch.empty_like(buffer, device="cpu")
    for name in model.state_dict():
        _tensor_of(model, name)._is_hf_initialized = True  # nothing to initialise: a checkpoint holds it
    with torch.no_grad():
        model.initialize_weights()
        model.tie_weights()


def _non_persistent_buffers(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    persistent = model.state_dict().keys()
    return [(name, buffer) for name, buffer in model.named_buffers() if name not in persistent]


def _tensor_of(model: torch.nn.Module, name: str) -> torch.Tensor:
    owner, _, attribute = name.rpartition(".")
    return getattr(model.get_submodule(owner), attribute)


def _give_fake_weights(model: torch.nn.Module) -> None:
    """Replaces parameters and buffers that are still on meta by fake CPU tensors; tied ones stay one tensor."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fakes: dict[int, torch.Tensor] = {}
    originals = []  # kept alive, so that ids stay unique

    def fake(tensor: torch.Tensor) -> torch.Tensor:
        with mode:
            return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="cpu")

    for module in model.modules():
        for name, parameter in module._parameters.items():
            if parameter is None:
                continue
            originals.append(parameter)
            if id(parameter) not in fakes:
                fakes[id(parameter)] = torch.nn.Parameter(fake(parameter), requires_grad=False)
            module._parameters[name] = fakes[id(parameter)]
        for name, buffer in module._buffers.items():
            if buffer is not None and buffer.device.type == "meta":
                originals.append(buffer)
                fakes.setdefault(id(buffer), fake(buffer))
                module._buffers[name] = fakes[id(buffer)]


def fake_mode(model: torch.nn.Module) -> FakeTensorMode:
    """The mode of a model whose weights are fake."""
    return next(parameter.fake_mode for parameter in model.parameters() if isinstance(parameter, FakeTensor))


class ShapesOnly(TorchDispatchMode):
    """While it is active, code that asks a tensor on meta for a value is told one (or true), so that a call whose shapes
    do not depend on values runs to its end on the meta device."""

    def __enter__(self):
        self._autocast = torch.autocast
        # Code of transformers 4 switches autocast off for the device of its input, which torch has none of for meta.
        torch.autocast = lambda device_type, *args, **kwargs: (
            contextlib.nullcontext() if device_type == "meta" else self._autocast(device_type, *args, **kwargs)
        )
        return super().__enter__()

    def __exit__(self, *error):
        torch.autocast = self._autocast
        return super().__exit__(*error)

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        if function is torch.ops.aten._local_scalar_dense.default and args[0].is_meta:
            return torch.ones((), dtype=args[0].dtype).item()
        return function(*args, **(kwargs or {}))
