"""Layers of integers whose scales are fixed in the file (8a8w), against fake quantisation in PyTorch."""

from __future__ import annotations

import copy
import json
import subprocess
from pathlib import Path

import pytest
from test_quantized_weights import PROGRAM, set_biases, surroundings

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")
safetensors = pytest.importorskip("safetensors.torch")

nn = torch.nn
LAYERS = (nn.Linear, nn.Conv1d, nn.Conv2d)


def vit() -> tuple[nn.Module, torch.Tensor]:
    config = transformers.ViTConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=4, intermediate_size=48, image_size=32,
                                    patch_size=8, num_labels=7, initializer_range=0.2)  # fmt: skip
    return transformers.ViTForImageClassification(config), torch.randn(1, 3, 32, 32)


def mobilenet() -> tuple[nn.Module, torch.Tensor]:
    """Convolutions of all kinds: with a kernel of 1, depthwise, with strides, padded by hand."""
    config = transformers.MobileNetV2Config(num_labels=7, depth_multiplier=0.35, image_size=32)
    return transformers.MobileNetV2ForImageClassification(config), torch.randn(1, 3, 32, 32)


def resnet() -> tuple[nn.Module, torch.Tensor]:
    config = transformers.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1], num_labels=7, layer_type="basic")
    return transformers.ResNetForImageClassification(config), torch.randn(1, 3, 32, 32)


MODELS = {"vit": vit, "mobilenet": mobilenet, "resnet": resnet}


def scale_of(least: float, most: float) -> tuple[float, int]:
    least, most = min(least, 0.0), max(most, 0.0)
    scale = (most - least) / 255
    return scale, round(max(-128, min(127, -128 - least / scale)))


def fake_quantised(model: nn.Module, call: dict[str, torch.Tensor]) -> nn.Module:
    """With the ranges that this call shows."""
    model = copy.deepcopy(model)
    seen: dict[str, tuple[tuple[float, int], tuple[float, int]]] = {}
    hooks = []
    for name, layer in model.named_modules():
        if isinstance(layer, LAYERS):

            def note(_layer, given, made, name=name) -> None:
                ends = [(float(each.min()), float(each.max())) for each in (given[0], made)]
                seen[name] = (scale_of(*ends[0]), scale_of(*ends[1]))

            hooks.append(layer.register_forward_hook(note))
    with torch.no_grad():
        model(**call)
    for hook in hooks:
        hook.remove()
    fake = torch.fake_quantize_per_tensor_affine
    for name, (given, made) in seen.items():
        layer = model.get_submodule(name)
        scales = layer.weight.detach().flatten(1).abs().amax(1) / 127
        zeros = torch.zeros(len(scales), dtype=torch.int32)
        layer.weight.data = torch.fake_quantize_per_channel_affine(layer.weight.detach(), scales, zeros, 0, -128, 127)
        layer.register_forward_pre_hook(lambda _, x, of=given: (fake(x[0], *of, -128, 127),))
        layer.register_forward_hook(lambda _, x, y, of=made: fake(y, *of, -128, 127))
    return model


def export(*arguments: object, folder: Path) -> subprocess.CompletedProcess:
    command = [PROGRAM, "export", "executorch", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, env=surroundings(folder), check=False)


@pytest.fixture(scope="module", params=MODELS)
def checkpoint(request, tmp_path_factory) -> tuple[nn.Module, Path, dict[str, torch.Tensor]]:
    folder = tmp_path_factory.mktemp(request.param)
    torch.manual_seed(0)
    model, picture = MODELS[request.param]()
    set_biases(model.eval())
    model.save_pretrained(folder / "model")
    safetensors.save_file({"pixel_values": picture}, folder / "inputs.safetensors")
    return model, folder, {"pixel_values": picture}


def test_agrees_with_fake_quantisation(checkpoint) -> None:
    model, folder, call = checkpoint
    program = folder / "model.pte"
    done = export("--model", folder / "model", "--task", "image-classification", "--qlinear", "8a8w", "--qconv", "8a8w", "--check", "off",
                  "--calibrate", folder / "inputs.safetensors", "-o", program, folder=folder)  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "stored as 8a8w" in done.stderr + done.stdout and "stay as they are" not in done.stderr
    (found,) = portable._load_for_executorch(str(program)).run_method("forward", (call["pixel_values"],))
    with torch.no_grad():
        wanted = fake_quantised(model, call)(**call).logits
        original = model(**call).logits
    # A sum at the middle between two steps of the output may be rounded to the other one.
    step = float(wanted.max() - wanted.min()) / 255
    assert (found - wanted).abs().max() <= 4 * step
    assert (found - wanted).norm() < 0.5 * (original - wanted).norm()


def test_ranges_of_another_call_are_other_bytes(checkpoint) -> None:
    _, folder, call = checkpoint
    programs = []
    for i, factor in enumerate((1, 1, 3)):
        safetensors.save_file({"pixel_values": factor * call["pixel_values"]}, folder / f"inputs{i}.safetensors")
        programs.append(folder / str(i) / "model.pte")
        programs[-1].parent.mkdir()
        done = export("--model", folder / "model", "--task", "image-classification", "--qconv", "8a8w", "--check", "off",
                      "--calibrate", folder / f"inputs{i}.safetensors", "-o", programs[-1], folder=folder)  # fmt: skip
        assert done.returncode == 0, done.stderr
    first, again, other = (program.read_bytes() for program in programs)
    assert first == again and first != other


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        ((), "8a8w rounds activations to ranges that were seen, and none were"),
        (("--seen-values", "{other}"), '"classifier.weight": no activations of theirs were seen'),
        (("--recipe", "portable", "--seen-values", "{other}"), "linear layers of integers are computed by XNNPACK alone"),
        (("--dtype", "fp16", "--seen-values", "{own}"), "XNNPACK computes no layers of integers in their form"),
        (("--calibrate", "missing.txt"), "missing.txt"),
    ],
)
def test_says_what_stands_in_the_way(tmp_path, flags, text) -> None:
    torch.manual_seed(0)
    vit()[0].save_pretrained(tmp_path / "model")
    for name, layer in (("other", "none"), ("own", "classifier.weight")):
        ranges = {"input": [-1, 1], "output": [-1, 1]}
        document = {"format": "argosy-seen-ranges", "version": 1, "layers": {layer: ranges}}
        (tmp_path / f"{name}.json").write_text(json.dumps(document))
    given = [flag.format(other=tmp_path / "other.json", own=tmp_path / "own.json") for flag in flags]
    done = export("--model", tmp_path / "model", "--qlinear", "8a8w", "--check", "off", *given, "-o", tmp_path / "out", folder=tmp_path)
    assert done.returncode != 0 and text in done.stderr, done.stderr
    assert not (tmp_path / "out").exists()


def test_is_checked_on_a_twin_with_ranges_of_its_own(tmp_path) -> None:
    torch.manual_seed(0)
    model, picture = vit()
    set_biases(model.eval())
    model.save_pretrained(tmp_path / "model")
    safetensors.save_file({"pixel_values": picture}, tmp_path / "inputs.safetensors")
    done = export("--model", tmp_path / "model", "--qlinear", "8a8w", "--qconv", "8a8w", "--calibrate", tmp_path / "inputs.safetensors",
                  "-o", tmp_path / "out", folder=tmp_path)  # fmt: skip
    assert done.returncode == 0, done.stderr
    manifest = json.loads((tmp_path / "out" / "bundle.json").read_text())
    assert manifest["check"]["kind"] == "twin"
    assert {each["encoding"] for each in manifest["quantized"]} == {"8a8w"}
    assert all(each["input"][0] > 0 and -128 <= each["output"][1] <= 127 for each in manifest["quantized"])


