"""Building a model without its weights: parameters are fake, what no checkpoint need hold is real.

The steps are those of ``from_pretrained``: build on the meta device, make the non-persistent buffers real, let the model's
own initialisation fill these, tie weights. Parameters have no memory, but for the few that the model allows a checkpoint to
lack because it can compute them (tables of sines, biases of zero).
"""

from __future__ import annotations

import contextlib
import copy
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv


@contextlib.contextmanager
def on_meta() -> Iterator[None]:
    """What is created inside has shapes only."""
    try:
        from transformers.initialization import meta_device_safe_creation_ops
    except ImportError:  # before transformers 5
        meta_device_safe_creation_ops = contextlib.nullcontext
    with torch.device("meta"), meta_device_safe_creation_ops(), _without_initialisation(), torch.no_grad():
        yield


@contextlib.contextmanager
def _without_initialisation() -> Iterator[None]:
    """Modules of torch initialise their weights, which takes half of the time that it takes to make them and gives nothing on meta."""

    def unless_on_meta(original: Callable) -> Callable:
        return lambda tensor, *args, **kwargs: tensor if tensor.is_meta else original(tensor, *args, **kwargs)

    originals = {name: getattr(torch.nn.init, name) for name in ("uniform_", "normal_", "kaiming_uniform_", "zeros_", "ones_")}
    vars(torch.nn.init).update({name: unless_on_meta(original) for name, original in originals.items()})
    try:
        yield
    finally:
        vars(torch.nn.init).update(originals)


def build_on_meta(model_class: Any, config: Any, dtype: torch.dtype | None = None) -> torch.nn.Module:
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
    model = with_own_values(model)
    _give_fake_weights(model)
    return model


def with_own_values(model: torch.nn.Module) -> torch.nn.Module:
    """The same with weights that are still on meta."""
    if hasattr(model, "initialize_weights") and _initialises_buffers():
        if values := _give_values(model, seed=0):
            other = build_on_meta(type(model), model.config, model.dtype)
            _forget_random(model, values, _give_values(other, seed=1))
    else:
        model = _build_with_buffers(model)
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


def computed_weights(model: torch.nn.Module) -> list[str]:
    """Weights of a model without weights that have their values: a checkpoint may lack them."""
    known = named_tensors(model)
    tensors = ((name, known[name] if name in known else tensor_of(model, name)) for name in model.state_dict())
    return [name for name, tensor in tensors if not tensor.is_meta and not isinstance(tensor, FakeTensor)]


#: Tensors of more elements than all of these together are not computed, but asked of the checkpoint.
_MOST_COMPUTED = 1 << 24


def _may_be_missing(model: torch.nn.Module) -> list[str]:
    patterns = [re.compile(pattern) for pattern in getattr(model, "_keys_to_ignore_on_load_missing", None) or ()]
    tied = getattr(model, "all_tied_weights_keys", {})
    state = model.state_dict()
    names = [name for name in state if name not in tied and any(pattern.search(name) for pattern in patterns)]
    return names if sum(state[name].numel() for name in names) <= _MOST_COMPUTED else []


def _give_values(model: torch.nn.Module, seed: int) -> dict[str, torch.Tensor]:
    """Makes what a checkpoint need not hold real, with the values that the model's initialisation gives it. Returns the
    weights among it; the rest are buffers that are never saved."""
    weights = _may_be_missing(model)
    for name in weights:
        _replace(model, name, torch.empty_like(tensor_of(model, name), device="cpu"))
    buffers = _non_persistent_buffers(model)
    # A run may have left one buffer under several names.
    made = {id(buffer): torch.empty_like(buffer, device="cpu") for _, buffer in buffers}
    for name, buffer in buffers:
        _replace(model, name, made[id(buffer)])
    known = named_tensors(model)
    for name in model.state_dict().keys() - set(weights):
        tensor = known[name] if name in known else tensor_of(model, name)
        tensor._is_hf_initialized = True  # nothing to initialise: a checkpoint holds it
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model.initialize_weights()
        model.tie_weights()
    return {name: tensor_of(model, name) for name in weights}


def _forget_random(model: torch.nn.Module, values: dict[str, torch.Tensor], others: dict[str, torch.Tensor]) -> None:
    """Numbers that depend on the seed are no values: these weights must come from a checkpoint after all."""
    for name, value in values.items():
        if not torch.equal(value, others[name]):
            _replace(model, name, torch.empty_like(value, device="meta"))


def _replace(model: torch.nn.Module, name: str, tensor: torch.Tensor) -> None:
    owner, _, attribute = name.rpartition(".")
    module = model.get_submodule(owner)
    if attribute in module._parameters:
        module._parameters[attribute] = torch.nn.Parameter(tensor.detach(), requires_grad=False)
    else:
        module._buffers[attribute] = tensor


def _non_persistent_buffers(model: torch.nn.Module) -> list[tuple[str, torch.Tensor]]:
    persistent = model.state_dict().keys()
    return [(name, buffer) for name, buffer in model.named_buffers(remove_duplicate=False) if name not in persistent]


def named_tensors(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Parameters and buffers by all of their names: one walk, where ``tensor_of`` walks for each."""
    return {**dict(model.named_parameters(remove_duplicate=False)), **dict(model.named_buffers(remove_duplicate=False))}


def tensor_of(model: torch.nn.Module, name: str) -> torch.Tensor:
    owner, _, attribute = name.rpartition(".")
    return getattr(model.get_submodule(owner), attribute)


def ties(model: torch.nn.Module) -> dict[str, str]:
    """Which weights share the values of which by the model's rules, unless a checkpoint holds both and they differ."""
    tied = dict(getattr(model, "all_tied_weights_keys", None) or {})
    for name in tied:
        seen = {name}
        while tied[name] in tied and tied[name] not in seen:
            seen.add(tied[name])
            tied[name] = tied[tied[name]]
    return {name: owner for name, owner in tied.items() if owner not in tied}


def _give_fake_weights(model: torch.nn.Module) -> None:
    """Replaces parameters and buffers that are still on meta by fake CPU tensors.

    Weights that the model's rules tie become tensors of their own: a graph that uses one for both could not be given a
    checkpoint that holds both and in which they differ. ``from_pretrained`` does not tie those.
    """
    tied = ties(model)
    names: dict[int, list[str]] = {}  # a module that is used in several places has several
    for name, module in model.named_modules(remove_duplicate=False):
        names.setdefault(id(module), []).append(f"{name}." if name else "")

    def apart(module: torch.nn.Module, name: str) -> str:
        places = [place + name for place in names[id(module)]]
        return places[0] if all(place in tied for place in places) else ""

    for holder, name, _, fake in stand_ins(model, lambda tensor: tensor.device.type == "meta", apart=apart):
        holder[name] = fake


def stand_ins(
    model: torch.nn.Module,
    chosen: Callable[[torch.Tensor], bool],
    dtype: torch.dtype | None = None,
    apart: Callable[[torch.nn.Module, str], str] = lambda module, name: "",
) -> list[tuple[dict, str, torch.Tensor, torch.Tensor]]:
    """Where the model holds which of the ``chosen`` tensors, and a fake CPU tensor, of ``dtype`` if one is given, for it: the same
    one for all places of a tensor, but for those that ``apart`` gives names."""
    mode = FakeTensorMode(shape_env=ShapeEnv(), allow_non_fake_inputs=True)
    fakes: dict[tuple[int, str], torch.Tensor] = {}
    found = []  # keeps tensors alive, so that ids stay unique
    for module in model.modules():
        for holder in (module._parameters, module._buffers):
            for name, tensor in holder.items():
                if tensor is None or not chosen(tensor):
                    continue
                key = id(tensor), apart(module, name)
                if key not in fakes:
                    with mode:
                        fake = torch.empty_strided(tensor.shape, tensor.stride(), dtype=dtype or tensor.dtype, device="cpu")
                    fakes[key] = torch.nn.Parameter(fake, requires_grad=False) if holder is module._parameters else fake
                found.append((holder, name, tensor, fakes[key]))
    return found


def fake_mode(model: torch.nn.Module) -> FakeTensorMode:
    """The mode of a model whose weights are fake."""
    return next(parameter.fake_mode for parameter in model.parameters() if isinstance(parameter, FakeTensor))
