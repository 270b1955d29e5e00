"""Exports of quantised checkpoints: the bytes of an export of the float checkpoint that holds the dequantised values, from the same
capture, and a note that says how weights are stored."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="captures are made by PyTorch code")
transformers = pytest.importorskip("transformers", reason="captures are of transformers' models")

from exporter_tool import make_exporter  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402

OUTPUTS = {"onnx": "out", "pt2": "out.pt2", "executorch": "out.pte"}  # archives hold their own names


def write_pair(folder: Path) -> None:
    """``fp8`` and ``float``, two folders of one model."""
    torch.manual_seed(0)
    config = transformers.LlamaConfig(hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=2,
                                      num_key_value_heads=1, vocab_size=64)  # fmt: skip
    model = transformers.LlamaForCausalLM(config)
    for name in ("float", "fp8"):
        model.save_pretrained(folder / name)
    stored, dense = {}, load_file(folder / "float/model.safetensors")
    for name, tensor in load_file(folder / "fp8/model.safetensors").items():
        stored[name] = tensor
        if name.endswith("_proj.weight"):
            grid = torch.rand(-(-tensor.shape[0] // 40), -(-tensor.shape[1] // 40)) * 0.02
            stored[name], stored[f"{name}_scale_inv"] = (torch.randn(tensor.shape) * 8).to(torch.float8_e4m3fn), grid
            spread = grid.repeat_interleave(40, 0).repeat_interleave(40, 1)[: tensor.shape[0], : tensor.shape[1]]
            dense[name] = stored[name].float() * spread
    save_file(dense, folder / "float/model.safetensors", {"format": "pt"})
    save_file(stored, folder / "fp8/model.safetensors", {"format": "pt"})
    path = folder / "fp8/config.json"
    settings = {"quant_method": "fp8", "weight_block_size": [40, 40], "activation_scheme": "dynamic"}
    path.write_text(json.dumps({**json.loads(path.read_text()), "quantization_config": settings}))


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("quantized")
    write_pair(folder)
    return folder


def export(folder: Path, model: str, backend: str, check: str) -> str:
    """What the program said."""
    output = folder / f"of-{model}" / OUTPUTS[backend]
    output.parent.mkdir(exist_ok=True)
    exporter = make_exporter(folder, backend)
    return exporter.run("export", backend, "--model", folder / model, "-o", output, "--check", check)[1]


def contents(path: Path) -> dict[str, bytes]:
    """What graphs and weights are in; manifests and cards name the folder."""
    files = [path] if path.is_file() else sorted(each for each in path.rglob("*") if each.is_file())
    return {"" if path.is_file() else each.name: each.read_bytes() for each in files if each.suffix not in (".json", ".md")}


@pytest.mark.parametrize("backend", OUTPUTS)
def test_an_export_has_the_bytes_of_the_float_checkpoint_s(backend: str, models: Path) -> None:
    notes, captures = {}, {}
    for model in ("float", "fp8"):
        notes[model] = export(models, model, backend, "off")
        captures[model] = sorted(each.name for each in (models / "cache/captures").glob("*/*.capture"))
    found, expected = (contents(models / f"of-{model}" / OUTPUTS[backend]) for model in ("fp8", "float"))
    assert found and found == expected
    note = "14 weights are stored as f8e4m3fn in blocks of 40x40 (fp8): read as f32 while streaming"
    assert note in notes["fp8"] and "stored as" not in notes["float"]
    assert captures["fp8"] == captures["float"]  # one for both
    if backend == "onnx":  # the bundle's weights are plain
        config = json.loads((models / "of-fp8/out/config.json").read_text())
        assert config["model_type"] == "llama" and "quantization_config" not in config


def test_the_full_check_needs_none_of_the_format_s_libraries(models: Path) -> None:
    assert "check: " in export(models, "fp8", "onnx", "full")
