"""The tensors of a quantised checkpoint, while those that make up a weight are taken from among them and put back as one recipe.

What a method expects of a tensor is checked here, against the checkpoint's headers; messages name the tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import torch

from ..errors import ExportError
from .weight_plan_headers import HeaderTensor, dtype_text
from .weight_plan_recipe import RecipeTensor, source


class StoredTensors:
    """``names`` of what is left, and what has been made so far."""

    def __init__(self, tensors: Sequence[HeaderTensor], dtype: torch.dtype) -> None:
        self.dtype = dtype
        self._contents = {each.name: each.content for each in tensors if each.content is not None}
        self._left = {each.name: source(each.name, each.dtype, each.shape) for each in tensors}
        self._made: dict[str, RecipeTensor] = {}
        self._counts: Counter[str] = Counter()

    def names(self, suffix: str = "") -> list[str]:
        return [name for name in self._left if name.endswith(suffix)]

    def __contains__(self, name: str) -> bool:
        return name in self._left

    def __getitem__(self, name: str) -> RecipeTensor:
        return self._left[name]

    def take(self, name: str, of: str, *, dtypes: Sequence[torch.dtype] = (), rank: int | None = None) -> RecipeTensor:
        """Removes a tensor of the weight ``of``, which must be there, of one of these dtypes and of that rank."""
        if name not in self._left:
            raise ExportError(
                f"the checkpoint has no {name!r}, without which {of!r} has no value",
                code="invalid-input",
                hint="download the checkpoint again, with all its files",
            )
        tensor = self._left.pop(name)
        if dtypes and tensor.dtype not in dtypes:
            wanted = " or ".join(map(dtype_text, dtypes))
            raise wrong_tensor(name, tensor, f"{wanted} is expected")
        if rank is not None and tensor.dim() != rank:
            raise wrong_tensor(name, tensor, f"{rank} dims are expected")
        return tensor

    def take_if_there(self, name: str, of: str, *, dtypes: Sequence[torch.dtype] = (), rank: int | None = None
                      ) -> RecipeTensor | None:  # fmt: skip
        return self.take(name, of, dtypes=dtypes, rank=rank) if name in self._left else None

    def content(self, name: str) -> bytes | None:
        """The bytes of a tensor that holds settings."""
        return self._contents.get(name)

    def drop(self, *names: str) -> None:
        """Removes tensors that weights do not depend on, if they are there."""
        for name in names:
            self._left.pop(name, None)

    def put(self, name: str, weight: RecipeTensor, how: str) -> None:
        """A weight by its name in the float model; ``how`` it is stored is for the note."""
        if name in self._left or name in self._made:
            raise ExportError(
                f"the checkpoint holds {name!r} twice, quantised and not",
                code="invalid-input",
                hint="remove one of them",
            )
        self._made[name] = weight
        self._counts[how] += 1

    def state(self) -> dict[str, RecipeTensor]:
        merged = {**self._left, **self._made}
        return {name: merged[name] for name in sorted(merged, key=str.encode)}

    def notes(self) -> list[str]:
        return [read_note(count, how, self.dtype) for how, count in sorted(self._counts.items())]


def read_note(count: int, how: str, dtype: torch.dtype) -> str:
    """What there is to say of so many weights that are stored so."""
    are = "weight is" if count == 1 else "weights are"
    return f"{count} {are} stored as {how}: read as {dtype_text(dtype)} while streaming"


def wrong_tensor(name: str, tensor: RecipeTensor, what: str) -> ExportError:
    return ExportError(
        f"{name!r} is {dtype_text(tensor.dtype)}{list(tensor.shape)}: {what}",
        code="invalid-input",
        hint="the checkpoint and the quantization_config of its config.json may not belong together",
    )


def unsupported(what: str, hint: str = "give the model's checkpoint in float32, float16 or bfloat16") -> ExportError:
    return ExportError(f"the checkpoint is quantised in a way that is not read: {what}", code="unsupported-feature", hint=hint)


def as_grid(
    name: str, shape: Sequence[int], scales: RecipeTensor, block: Sequence[int] | None = None
) -> tuple[RecipeTensor, list[int]]:
    """``scales`` in as many dims as the values that they are for, and how many values share one along each dim.

    ``block`` is that of the last dims by the configuration; it counts where the number of scales agrees with it. One scale is for
    the whole tensor, one for each row may come without a second dim.
    """
    rank = len(shape)
    if scales.numel() == 1:
        return scales.view([1] * rank), [max(size, 1) for size in shape]
    if scales.dim() == 1 and rank == 2 and scales.shape[0] == shape[0]:
        scales = scales.view([shape[0], 1])
    if scales.dim() != rank:
        raise wrong_tensor(name, scales, f"scales of a tensor of shape {list(shape)} are expected")
    sizes = [1] * (rank - len(block)) + list(block) if block else []
    if sizes and all(-(-size // one) == count for size, one, count in zip(shape, sizes, scales.shape, strict=True)):
        return scales, sizes
    if any(count == 0 or size % count for size, count in zip(shape, scales.shape, strict=True)):
        within = f" in blocks of {by_text(block)}" if block else ""
        raise wrong_tensor(name, scales, f"scales of a tensor of shape {list(shape)}{within} are expected")
    return scales, [max(size // count, 1) for size, count in zip(shape, scales.shape, strict=True)]


def block_text(shape: Sequence[int], block: Sequence[int]) -> str:
    """How many values share a scale, in words."""
    if list(shape[-2:]) == list(block[-2:]):
        return "with one scale each"
    if block[-1] == shape[-1] and block[-2] == 1:
        return "with a scale for each row"
    return f"in blocks of {block[-1] if block[-2] == 1 else by_text(block[-2:])}"


def by_text(block: Sequence[int]) -> str:
    return "x".join(map(str, block))
