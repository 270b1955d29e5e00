"""What XNNPACK is given of a graph, against PyTorch: one part each, at several sizes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
portable = pytest.importorskip("executorch.extension.pybindings.portable_lib")

REPOSITORY = Path(__file__).parents[2]
PROGRAMS = [REPOSITORY / "build" / preset / "apps/cli/argosy" for preset in ("release", "dev")]
PROGRAM = os.environ.get("ARGOSY_BIN") or next((str(path) for path in PROGRAMS if path.exists()), "argosy")
ENVIRONMENT = {**os.environ, "ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(REPOSITORY / "python")}

nn, F = torch.nn, torch.nn.functional
BATCH = torch.export.Dim("batch", min=1, max=4)
LENGTH = torch.export.Dim("length", min=1, max=32)


class Layers(nn.Module):
    """A function of some layers and an input."""

    def __init__(self, function, **layers: nn.Module) -> None:
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x):
        return self.function(self, x)


@pytest.fixture(scope="module")
def schemas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("schemas") / "op_schemas.txt"
    subprocess.run([sys.executable, "-m", "argosy.schemas", "-o", path], check=True, env=ENVIRONMENT)
    return path


def run(
    folder: Path, schemas: Path, module: nn.Module, inputs: list, dims: dict, parts: int = 1, tolerance=1e-5
) -> None:
    """Exports a module that was traced with the first input, and calls it with all of them."""
    torch.manual_seed(0)
    module = module.eval()
    archive, program = folder / "module.pt2", folder / "module.pte"
    torch.export.save(torch.export.export(module, (inputs[0],), dynamic_shapes=(dims,)), archive)
    command = [PROGRAM, "opt", archive, "-o", program, "--recipe", "xnnpack", "--schemas", schemas]
    done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, check=False)
    assert done.returncode == 0, done.stderr
    assert program.read_bytes().count(b"XH00") == parts
    loaded = portable._load_for_executorch(str(program), program_verification=portable.Verification.InternalConsistency)
    for x in inputs:
        found = loaded.run_method("forward", (x,))
        with torch.no_grad():
            wanted = module(x)
        wanted = [wanted] if isinstance(wanted, torch.Tensor) else wanted
        assert len(found) == len(wanted)
        for index, (a, b) in enumerate(zip(found, wanted, strict=True)):
            assert a.shape == b.shape, index
            assert (a - b).abs().max() <= tolerance * b.abs().max().clamp(min=1e-3), index


def elementwise(_, x):
    y = x.abs() + 1
    halves = torch.cat([-x[..., 8:], x[..., :8]], -1)
    return [
        F.silu(x), F.gelu(x), F.gelu(x, approximate="tanh"), F.relu(x), F.relu6(x), F.hardswish(x), F.leaky_relu(x), F.elu(x),
        F.hardsigmoid(x), torch.exp(x), torch.sqrt(y), torch.rsqrt(y), torch.tanh(x), torch.ceil(x), torch.floor(x), torch.log(y),
        torch.maximum(x, 2 - x), torch.minimum(x, x * x), x.clamp(-0.5, 0.7), 1 / y, x / y, 1 - x, x - 2, x**3, x.softmax(-1),
        halves * y, x * y.sum(-1, keepdim=True), torch.cat([x + i for i in range(7)], 1), F.pad(x, (1, 2)), *x.split([4, 10, 2], -1),
        x[..., ::2] - x[..., 1::2], x[:, 0].contiguous() * 2,
    ]  # fmt: skip


def attention(layers, x):
    q, k = (layer(x).view(2, -1, 4, 4).transpose(1, 2) for layer in (layers.a, layers.b))
    weights = torch.softmax(q @ k.transpose(-1, -2) * 0.5, -1)
    return (weights @ q).transpose(1, 2).reshape(2, -1, 16) + x


def norms(layers, x):
    return (
        layers.n(layers.a(x)),
        x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6),
        F.rms_norm(x, (16,), layers.n.weight),
    )


def test_elementwise_and_shapes(tmp_path: Path, schemas: Path) -> None:
    sizes = [torch.randn(2, 5, 16), torch.randn(2, 9, 16), torch.randn(2, 1, 16)]
    run(tmp_path, schemas, Layers(elementwise), sizes, {1: LENGTH})


def test_attention(tmp_path: Path, schemas: Path) -> None:
    layers = Layers(attention, a=nn.Linear(16, 16), b=nn.Linear(16, 16, bias=False))
    run(tmp_path, schemas, layers, [torch.randn(2, 5, 16), torch.randn(2, 32, 16)], {1: LENGTH})


def test_norms_of_two_sizes_that_vary(tmp_path: Path, schemas: Path) -> None:
    layers = Layers(norms, a=nn.Linear(16, 16), n=nn.LayerNorm(16))
    nn.init.normal_(layers.n.weight), nn.init.normal_(layers.n.bias)
    run(tmp_path, schemas, layers, [3 * torch.randn(2, 5, 16), torch.randn(4, 9, 16)], {0: BATCH, 1: LENGTH})


def test_half(tmp_path: Path, schemas: Path) -> None:
    def half(layers, x):
        y = layers.n(100 * layers.a(x))
        return F.silu(y), torch.softmax((y @ x.transpose(-1, -2)).float(), -1).half()

    layers = Layers(half, a=nn.Linear(16, 16), n=nn.LayerNorm(16)).half()
    sizes = [torch.randn(2, 5, 16).half(), torch.randn(2, 9, 16).half()]
    run(tmp_path, schemas, layers, sizes, {1: LENGTH}, tolerance=5e-3)


def test_images(tmp_path: Path, schemas: Path) -> None:
    norm = nn.BatchNorm2d(16)
    norm.running_mean.normal_(), norm.running_var.uniform_(0.5, 2)
    stem = nn.Sequential(nn.Conv2d(3, 16, 3, 2, 1, bias=False), norm, nn.ReLU(), nn.MaxPool2d(3, 2, 1))
    depth = nn.Sequential(nn.Conv2d(16, 16, 3, 1, 1, groups=16), nn.Conv2d(16, 32, 1, groups=2), nn.AvgPool2d(2))
    up = nn.Sequential(nn.ConvTranspose2d(32, 8, 3, 2, 1, 1, groups=2), nn.Upsample(scale_factor=2, mode="bilinear"))
    last = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
    scale = nn.Conv2d(16, 16, 1)

    def image(layers, x):
        x = layers.stem(x)
        x = layers.depth(x + layers.scale(x) * layers.scale.weight[:, :1, :1, 0].reshape(16, 1, 1))
        return layers.last(layers.up(x)), x

    layers = Layers(image, stem=stem, depth=depth, up=up, last=last, scale=scale)
    run(tmp_path, schemas, layers, [torch.randn(2, 3, 32, 32), torch.randn(3, 3, 32, 32)], {0: BATCH}, parts=1)


def test_sound(tmp_path: Path, schemas: Path) -> None:
    layers = nn.Sequential(nn.Conv1d(8, 16, 3, 2, 1), nn.GELU(), nn.Conv1d(16, 16, 4, padding=3, groups=16))
    layers.append(nn.ConvTranspose1d(16, 8, 4, 2, 1))
    run(
        tmp_path,
        schemas,
        Layers(lambda own, x: own.m(x), m=layers),
        [torch.randn(2, 8, 30), torch.randn(1, 8, 30)],
        {0: BATCH},
    )
