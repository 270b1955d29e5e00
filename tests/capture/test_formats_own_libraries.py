"""Checkpoints written by the library of their format: what C++ streams of them is what that library gives back, bit for bit."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="plans are made by PyTorch code")
reason = "the library is not among the tests' packages: pip install compressed-tensors"
base = pytest.importorskip("compressed_tensors.compressors.base", reason=reason)
quantization = pytest.importorskip("compressed_tensors.quantization", reason=reason)

from tiny_checkpoints import Tensors, assert_streams, llama, quantise, write  # noqa: E402

#: By the name of the format: what weights become, and whether groups of a row have scales.
FORMATS: dict[str, tuple[dict[str, Any], bool]] = {
    "pack-quantized": ({"num_bits": 4, "type": "int"}, True),
    "pack-quantized, 8 bits": ({"num_bits": 8, "type": "int"}, True),
    "int-quantized": ({"num_bits": 8, "type": "int"}, False),
    "float-quantized": ({"num_bits": 8, "type": "float"}, False),
}


def by_library(name: str, settings: dict[str, Any]) -> Callable[[str, Any], tuple[Tensors, Any]]:
    """A linear layer as the library compresses it, and the weight that it makes of that."""
    arguments = quantization.QuantizationArgs(**settings)
    scheme = quantization.QuantizationScheme(targets=["Linear"], weights=arguments)
    compressor = base.BaseCompressor.get_value_from_registry(name)

    def make(layer: str, weight: Any) -> tuple[Tensors, Any]:
        groups = weight.unflatten(1, (-1, settings["group_size"])) if "group_size" in settings else weight[:, None]
        low, high = groups.amin(-1), groups.amax(-1)
        scales, points = quantization.utils.calculate_qparams(low, high, arguments)
        given = {"weight": weight, "weight_scale": scales.to(weight.dtype), "weight_zero_point": points}
        stored = compressor.compress(given, scheme)
        dense = compressor.decompress(stored, scheme)["weight"]
        return {f"{layer}.{key}": tensor for key, tensor in stored.items() if tensor is not None}, dense

    return make


#: Floats have no zero points.
CASES = [(name, symmetric) for name, (weights, _) in FORMATS.items() for symmetric in (True, False) if symmetric or weights["type"] == "int"]


@pytest.mark.parametrize(("name", "symmetric"), CASES)
def test_compressed_tensors(name: str, symmetric: bool, tmp_path: Path) -> None:
    weights, has_groups = FORMATS[name]
    kind = {"strategy": "group", "group_size": 16} if has_groups else {"strategy": "channel"}
    settings = {**weights, **kind, "symmetric": symmetric}
    form = name.split(",")[0]
    stored, expected = quantise(llama(tmp_path / "m"), by_library(form, settings))
    group = {"targets": ["Linear"], "weights": settings, "format": form}
    write(tmp_path / "m", stored, {"config_groups": {"group_0": group}, "ignore": ["lm_head"], "quant_method": "compressed-tensors",
                                   "format": form})  # fmt: skip
    assert_streams(tmp_path / "m", expected)
