"""Weights stored as integers, against the same scheme in PyTorch."""

from __future__ import annotations

import copy
import os
import subprocess
from pathlib import Path

import pytest
from warm import warm_python

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = [REPOSITORY / "build" / preset / "apps/cli/argosy" for preset in ("release", "dev")]
PROGRAM = os.environ.get("ARGOSY_BIN") or next((str(path) for path in PROGRAMS if path.exists()), "argosy")

nn, F = torch.nn, torch.nn.functional


def fitted(weight: torch.Tensor, group: int, bits: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Integers and scales: the scale that is best for the integers, integers for it, and so on."""
    least, most = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    values = weight.detach().float().view(weight.shape[0], -1, group)
    scale = (values.abs().amax(2) / -least).clamp_min(2**-23)
    for _ in range(20):
        integers = (values / scale[..., None]).round().clamp(least, most)
        products, squares = (values * integers).sum(2), (integers * integers).sum(2)
        scale = torch.where(squares > 0, products / squares, scale).clamp_min(2**-23)
    return (values / scale[..., None]).round().clamp(least, most), scale


def eight_bits(x: torch.Tensor) -> torch.Tensor:
    """As XNNPACK does with rows of activations."""
    low, high = x.amin(-1, keepdim=True).clamp(max=0), x.amax(-1, keepdim=True).clamp(min=0)
    scale = torch.where(high == low, 1.0, 255 / (high - low))
    zero = (
        torch.where(low * scale + high * scale - 1 > 0, -128 - low * scale, 127 - high * scale).clamp(-128, 127).round()
    )
    return (((x * scale).round() + zero).clamp(-128, 127) - zero) / scale


class Linear(nn.Module):
    def __init__(self, layer: nn.Linear, encoding: str, group: int) -> None:
        super().__init__()
        integers, scale = fitted(layer.weight, group or layer.in_features, 4 if encoding.endswith("4w") else 8)
        scale = scale.bfloat16().float() if group else scale
        self.weight, self.bias = (integers * scale[..., None]).view_as(layer.weight), layer.bias
        self.is_dynamic = encoding.startswith("8da")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(eight_bits(x) if self.is_dynamic else x, self.weight, self.bias)


class Embedding(nn.Module):
    def __init__(self, layer: nn.Embedding, encoding: str) -> None:
        super().__init__()
        integers, scale = fitted(layer.weight, layer.embedding_dim, 4 if encoding == "4w" else 8)
        self.weight = (integers * scale[..., None]).view_as(layer.weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.embedding(x, self.weight)


def quantized(model: nn.Module, linear: str, group: int, embedding: str) -> nn.Module:
    model = copy.deepcopy(model)
    for name, layer in list(model.named_modules()):
        parent = model.get_submodule(name.rpartition(".")[0])
        if isinstance(layer, nn.Linear):
            setattr(parent, name.rpartition(".")[2], Linear(layer, linear, group))
        elif isinstance(layer, nn.Embedding) and embedding:
            setattr(parent, name.rpartition(".")[2], Embedding(layer, embedding))
    return model


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> tuple[nn.Module, Path, dict]:
    folder = tmp_path_factory.mktemp("quantized")
    torch.manual_seed(0)
    config = transformers.LlamaConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=2, vocab_size=128,
        max_position_embeddings=64, attention_bias=True, tie_word_embeddings=True, initializer_range=0.1,
    )  # fmt: skip
    model = transformers.LlamaForCausalLM(config).eval()
    set_biases(model)
    model.save_pretrained(folder / "model")
    return model, folder / "model", surroundings(folder)


def set_biases(model: nn.Module) -> None:
    """Fresh models have biases of zero, which hide what becomes of them."""
    for name, weight in model.named_parameters():
        if name.endswith("bias"):
            nn.init.normal_(weight, std=0.5)


def surroundings(folder: Path) -> dict[str, str]:
    return {
        **os.environ,
        "ARGOSY_PYTHON": warm_python(),
        "PYTHONPATH": str(REPOSITORY / "python"),
        "ARGOSY_CACHE": str(folder / "cache"),
    }


# A rounding that falls on the other side moves what follows, so only what has none is compared closely.
@pytest.mark.parametrize(
    ("linear", "group", "embedding", "tolerance"),
    [
        ("8da4w", 32, "8w", 3e-2),
        ("8da4w", 0, "", 3e-2),
        ("8da8w", 0, "4w", 3e-2),
        ("8w", 0, "8w", 1e-5),
        ("4w", 0, "", 1e-5),
    ],
)
def test_agrees_with_the_same_scheme_in_torch(checkpoint, tmp_path, linear, group, embedding, tolerance) -> None:
    model, folder, environment = checkpoint
    program = tmp_path / "model.pte"
    command = [
        PROGRAM,
        "export",
        "executorch",
        "--model",
        folder,
        "-o",
        program,
        "--task",
        "text-generation",
        "--all-logits",
    ]
    command += ["--no-custom-sdpa", "--no-custom-kv-cache", "--check", "off"]
    command += ["--qlinear", linear, "--qlinear-group-size", str(group)]
    command += ["--qembedding", embedding] if embedding else []
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    if embedding:
        pytest.importorskip("executorch.kernels.quantized")
    loaded = portable._load_for_executorch(str(program))
    tokens = torch.randint(0, 128, (1, 17), generator=torch.Generator().manual_seed(1))
    (found,) = loaded.run_method("forward", (tokens, torch.arange(17)))
    with torch.no_grad():
        wanted = quantized(model, linear, group, embedding)(tokens).logits
        original = model(tokens).logits
    spread = wanted.max() - wanted.min()
    assert (found - wanted).abs().max() <= tolerance * spread
    # The scheme is what was asked for: it is far closer to its simulation than the model is.
    assert (found - wanted).norm() < 0.5 * (original - wanted).norm()


@pytest.mark.parametrize("linear", ["8w", "4w"])
def test_biases_of_every_layer_are_added_as_they_are(tmp_path, linear) -> None:
    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=64, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4, vocab_size=128,
        max_position_embeddings=64, initializer_range=0.1,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).eval()
    set_biases(model)
    model.save_pretrained(tmp_path / "model")
    program = tmp_path / "model.pte"
    command = [PROGRAM, "export", "executorch", "--model", tmp_path / "model", "-o", program, "--task", "fill-mask"]
    command += ["--check", "off", "--qlinear", linear]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings(tmp_path), check=False)
    assert done.returncode == 0, done.stderr
    loaded = portable._load_for_executorch(str(program))
    tokens = torch.randint(0, 128, (1, 17), generator=torch.Generator().manual_seed(1))
    (found,) = loaded.run_method("forward", (tokens, torch.ones_like(tokens)))
    with torch.no_grad():
        wanted = quantized(model, linear, 0, "")(tokens).logits
    assert (found - wanted).abs().max() <= 1e-5 * (wanted.max() - wanted.min())


@pytest.mark.parametrize("linear", ["8w", "4w"])
def test_integers_of_wide_layers_are_those_of_the_check(tmp_path, linear) -> None:
    """A scale that differs in its last bit makes a few of many weights the next integer, and that is no rounding any more."""
    from argosy.check.engines import find_export
    from argosy.check.schemes import QuantizedModel

    torch.manual_seed(0)
    config = transformers.BertConfig(
        hidden_size=64, intermediate_size=8192, num_hidden_layers=1, num_attention_heads=4, vocab_size=128,
        max_position_embeddings=64, initializer_range=0.1,
    )  # fmt: skip
    model = transformers.BertForMaskedLM(config).eval()
    model.save_pretrained(tmp_path / "model")
    program = tmp_path / "model.pte"
    command = [PROGRAM, "export", "executorch", "--model", tmp_path / "model", "-o", program, "--task", "fill-mask"]
    command += ["--check", "off", "--qlinear", linear]
    done = subprocess.run(command, capture_output=True, text=True, env=surroundings(tmp_path), check=False)
    assert done.returncode == 0, done.stderr
    loaded = portable._load_for_executorch(str(program))
    tokens = torch.randint(0, 128, (1, 17), generator=torch.Generator().manual_seed(1))
    (found,) = loaded.run_method("forward", (tokens, torch.ones_like(tokens)))
    with torch.no_grad(), QuantizedModel(model, find_export(program).manifest["quantized"]):
        wanted = model(tokens).logits
    assert (found - wanted).abs().max() <= 2e-6 * (wanted.max() - wanted.min())


def test_says_what_has_no_kernel(checkpoint, tmp_path) -> None:
    _, folder, environment = checkpoint
    command = [
        PROGRAM,
        "export",
        "executorch",
        "--model",
        folder,
        "-o",
        tmp_path / "model.pte",
        "--task",
        "text-generation",
    ]
    for flags, text in (
        (["--qlinear", "4w", "--qlinear-group-size", "32"], "no kernel for 4w in groups of 32"),
        (["--qlinear", "8da8w", "--qlinear-group-size", "32"], "no kernel for 8da8w in groups of 32"),
        (["--qlinear", "8da4w", "--recipe", "portable"], "computed by XNNPACK alone"),
        (["--qlinear", "8w", "--dtype", "fp16"], "8w is for arithmetic in float32, and"),
    ):
        done = subprocess.run([*command, *flags], capture_output=True, text=True, env=environment, check=False)
        assert done.returncode != 0 and text in done.stderr
