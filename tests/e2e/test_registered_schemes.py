"""Quantisation schemes of others' packages: the sample of examples/extension, and packages whose schemes do not do what they should."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from cli_tool import REPOSITORY
from exporter_tool import PROGRAM
from onnx import numpy_helper
from safetensors.numpy import load_file
from test_extensions import Extended, install, write_package

SAVE = """
import sys
import torch
from transformers import LlamaConfig, LlamaForCausalLM

torch.manual_seed(0)
sizes = dict(hidden_size=128, intermediate_size=272, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2)
config = LlamaConfig(vocab_size=64, max_position_embeddings=64, tie_word_embeddings=False, **sizes)
LlamaForCausalLM(config).save_pretrained(sys.argv[1])
"""

ODD = """
import os
import numpy as np
from argosy import register_weight_scheme

print("this is no answer")


def usual(blocks, highest=255):
    least, most = np.minimum(blocks.min(2), 0), np.maximum(blocks.max(2), 0)
    scales = np.maximum((most - least) / np.float32(highest), np.float32(1e-6))
    zeros = np.rint(-least / scales)
    print("nor is this")
    return np.clip(np.rint(blocks / scales[..., None]) + zeros[..., None], 0, highest).astype(np.int64), scales, zeros


@register_weight_scheme("ranges8", bits=8, block=16, zero_points=True)
def ranges(blocks):
    blocks[:] += 0  # it may write there
    return usual(blocks)


@register_weight_scheme("flat4", bits=4)
def flat(blocks):
    return np.zeros(blocks.shape[0], np.uint8), blocks.max(2)


@register_weight_scheme("nans4", bits=4)
def nans(blocks):
    return np.zeros_like(blocks), blocks.max(2) * np.nan


@register_weight_scheme("large4", bits=4)
def large(blocks):
    return np.full(blocks.shape, 16), blocks.max(2)


@register_weight_scheme("halves4", bits=4)
def halves(blocks):
    return np.full(blocks.shape, 7.5), blocks.max(2)


@register_weight_scheme("lonely4", bits=4)
def lonely(blocks):
    return np.zeros_like(blocks)


@register_weight_scheme("failing4", bits=4)
def failing(blocks):
    raise KeyError("no such\\nweight")


@register_weight_scheme("ending4", bits=4)
def ending(blocks):
    os._exit(3)


@register_weight_scheme("batch4", bits=4)
def batch(blocks):
    return np.full(blocks.shape, len(blocks) % 8), blocks.max(2)
"""


def weights_of(folder: Path) -> dict[str, np.ndarray]:
    return load_file(folder / "model.safetensors")


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Extended:
    """With the odd package, which imports little."""
    folder = tmp_path_factory.mktemp("odd")
    source = write_package(folder / "source", "odd-schemes", ODD)
    return Extended(PROGRAM, folder / "cache", folder / "none", "onnx", [install(source, folder / "packages")])


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Extended:
    folder = tmp_path_factory.mktemp("sample")
    shutil.copytree(REPOSITORY / "examples/extension", folder / "source")
    return Extended(PROGRAM, folder / "cache", folder / "none", "onnx", [install(folder / "source", folder / "packages")])


@pytest.fixture(scope="module")
def model(odd: Extended, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    odd.python("-c", SAVE, folder)
    return folder


def products(bundle: Path) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray | None, dict[str, int]]]:
    """Of MatMulNBits by the weight: what is stored, and the attributes."""
    graph = onnx.load(next(bundle.glob("*.onnx"))).graph
    stored = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
    found = {}
    for node in graph.node:
        if node.op_type == "MatMulNBits":
            weight, scales, *more = (stored.get(name) for name in node.input[1:4])
            attributes = {each.name: each.i for each in node.attribute}
            found[node.input[1].rpartition(".")[0]] = (weight, scales, more[0] if more else None, attributes)
    return found


def test_a_package_s_scheme_is_what_the_file_has(sample: Extended, model: Path, tmp_path: Path) -> None:
    """Integers and scales are those of the function; the check computes with them; the engine runs the file."""
    _, said = sample.run("export", "onnx", "--model", model, "--quantize", "clipped4,lm_head=int8", tmp_path / "out")
    assert "agrees with PyTorch" in said, said
    manifest = json.loads((tmp_path / "out/bundle.json").read_text(encoding="utf-8"))
    assert {each["encoding"].removesuffix("-a8") for each in manifest["quantized"]} == {"clipped4", "int8"}
    assert manifest["versions"]["argosy-sample"] == "0.1.0" and manifest["check"]["kind"] == "twin"
    assert any(each == "--quantize=clipped4,lm_head=int8" for each in manifest["options"])

    sys.path.insert(0, str(sample.packages[0]))
    try:
        from argosy_sample.schemes import clipped  # noqa: PLC0415
    finally:
        sys.path.remove(str(sample.packages[0]))
    weights, found = weights_of(model), products(tmp_path / "out")
    assert len(found) == 15
    for name, (integers, scales, zeros, attributes) in found.items():
        if name == "lm_head.weight":
            assert attributes["bits"] == 8
            continue
        weight = weights[name]
        padded = np.pad(weight, ((0, 0), (0, -weight.shape[1] % 32)))
        expected, steps = clipped(padded.reshape(len(weight), -1, 32))
        nibbles = np.stack([integers & 15, integers >> 4], -1).reshape(len(weight), -1)[:, : weight.shape[1]]
        np.testing.assert_array_equal(nibbles, expected.reshape(len(weight), -1)[:, : weight.shape[1]], name)
        np.testing.assert_array_equal(scales.reshape(steps.shape), steps, name)
        assert zeros is None and attributes["bits"] == 4 and attributes["block_size"] == 32
        assert (nibbles == 0).any() and (nibbles == 15).any()  # it does clip
    session = onnxruntime.InferenceSession(next((tmp_path / "out").glob("*.onnx")))
    assert "logits" in [each.name for each in session.get_outputs()]


def test_zero_points_other_blocks_and_rows_that_are_looked_up(odd: Extended, model: Path, tmp_path: Path) -> None:
    """And a check is remembered until the package's files change."""
    command = ("export", "onnx", "--model", model, "--quantize", "ranges8,embedding=ranges8", "--dtype", "fp16")
    _, said = odd.run(*command, tmp_path / "usual")
    assert "agrees with PyTorch" in said, said
    assert "it passed before" in odd.run(*command, tmp_path / "again")[1]
    odd.run(*command, "--quantize-block", "32", "--check", "off", tmp_path / "larger")
    for name, block in (("usual", 16), ("larger", 32)):
        found = products(tmp_path / name)
        assert all(attributes["block_size"] == block and zeros is not None for _, _, zeros, attributes in found.values())
        ops = [node.op_type for node in onnx.load(next((tmp_path / name).glob("*.onnx")), load_external_data=False).graph.node]
        assert "GatherBlockQuantized" in ops
    module = odd.packages[0] / "odd_schemes.py"
    module.write_text(module.read_text() + "\n# changed\n")
    assert "it passed before" not in odd.run(*command, tmp_path / "third")[1]


def test_the_bytes_do_not_depend_on_threads_or_memory(odd: Extended, model: Path, tmp_path: Path) -> None:
    command = ("export", "onnx", "--model", model, "--check", "off", "--quantize", "ranges8", "--for", "transformersjs")
    (model / "tokenizer.json").write_text("{}")
    (model / "tokenizer_config.json").write_text("{}")
    odd.run(*command, "--threads", "1", tmp_path / "one")
    odd.run(*command, "--threads", "4", "--memory", "64MB", tmp_path / "four")
    files = sorted(each.relative_to(tmp_path / "one") for each in (tmp_path / "one").rglob("*.onnx*"))
    assert files and all("_quantized" in each.name for each in files)  # engines know them by what products read
    for each in files:
        assert (tmp_path / "one" / each).read_bytes() == (tmp_path / "four" / each).read_bytes(), each


@pytest.mark.parametrize(
    ("scheme", "said"),
    [
        ("flat4", ("returns integers of shape [", "odd_schemes.flat")),
        ("nans4", ("the weight scheme 'nans4' returns a scale that is a NaN",)),
        ("large4", ("returns an integer 16, not one of 0 to 15",)),
        ("halves4", ("returns an integer 7.5, not one of 0 to 15",)),
        ("lonely4", ("returns ndarray in the place of 2 arrays (integers, scales)",)),
        ("failing4", ("the weight scheme 'failing4' fails at odd_schemes.py:", "KeyError: 'no such")),
        ("ending4", ("the Python process of the scheme ending4 of odd-schemes 7.8 has ended",)),
        ("batch4", ("makes another thing of a row alone than of the same row among others",)),
    ],
)
def test_a_scheme_that_does_not_fit_is_an_error_and_nothing_is_written(
    odd: Extended, model: Path, tmp_path: Path, scheme: str, said: tuple[str, ...]
) -> None:
    found = odd.run("export", "onnx", "--model", model, "--check", "off", "--quantize", scheme, tmp_path / "out", code=1)[1]
    assert all(each in found for each in said), found
    assert "Traceback" not in found and "no answer" not in found and not list(tmp_path.iterdir())


def test_a_name_that_nobody_has_is_told_from_those_that_there_are(odd: Extended, model: Path, tmp_path: Path) -> None:
    command = ("export", "onnx", "--model", model, "--check", "off", tmp_path / "out", "--quantize")
    found = odd.run(*command, "range8", code=1)[1]
    assert '--quantize does not know "range8"' in found and "nans4, ranges8" in found and "installed packages have weight schemes" in found
    found = odd.run(*command, "int8,lm_head=ranges8,model=flat4", code=2)[1]
    assert "takes one that is a package's" in found
    plain = Extended(PROGRAM, tmp_path / "cache", tmp_path / "none", "onnx")
    assert '--quantize does not know "ranges8"' in plain.run(*command, "ranges8", code=1)[1]
    assert not (tmp_path / "out").exists()
    # Other backends have kernels for schemes of their own only.
    found = odd.run("export", "executorch", "--model", model, "--qlinear", "ranges8", tmp_path / "pte", code=2)[1]
    assert "ranges8" in found and "8da4w" in found
