"""Mixed float16 of ONNX exports: models that are scaled until float16 overflows inside them stay right, as what becomes large was
seen and stays float32."""

from __future__ import annotations

import json
import math
import re
from functools import cache
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="captures are made by PyTorch code")
pytest.importorskip("transformers", reason="captures are of transformers' models")
onnx = pytest.importorskip("onnx", reason="graphs are read by it")
pytest.importorskip("onnxruntime", reason="graphs are run by it")

from exporter_tool import PROGRAM, make_exporter, twin  # noqa: E402
from thorough import always  # noqa: E402

from argosy.capture.__main__ import main as capture  # noqa: E402
from argosy.capture.session import open_session  # noqa: E402
from argosy.capture.twin import save  # noqa: E402
from argosy.capture.weight_plan import make_weight_plan, write_weight_plan  # noqa: E402
from argosy.check.calls import expected_call  # noqa: E402
from argosy.check.comparison import real_shapes  # noqa: E402
from argosy.check.engines import find_export  # noqa: E402
from argosy.check.onnx_worker import open_onnx  # noqa: E402
from argosy.check.rows import paired  # noqa: E402
from argosy.check.seen import see  # noqa: E402
from argosy.compare import difference as compared  # noqa: E402

HALF = onnx.TensorProto.FLOAT16
#: What the largest results of some layers become; float16 ends at 65504.
LARGE = 2e5
#: Of each model, the layers whose results become so large. ONNX Runtime's processor computes much of a float16 graph in float32,
#: and rounds where kernels of float16 move values: so values of attention are among them.
MODELS = {
    "llama": r"(v_proj|up_proj)$",
    "mistral": r"v_proj$",
    "gemma3_text": r"up_proj$",
    "qwen3": r"(v_proj|down_proj)$",
    "phi": r"(v_proj|fc1)$",
    "opt": r"(v_proj|fc1)$",
    "gpt2": r"(c_attn|c_fc)$",
    "bert": r"(self\.value|intermediate\.dense)$",
    "distilbert": r"(v_lin|ffn\.lin1)$",
    "vit": r"(value|v_proj)$",
    "t5": r"Attention\.v$",
    "whisper": r"(v_proj|fc1)$",
}


def calls(model: torch.nn.Module, components: list) -> list:
    """What components are called with, and what eager answers."""
    return [expected_call(component, model, shape) for component in components for shape in real_shapes(component)]


def enlarge(model: torch.nn.Module, components: list, pattern: str) -> None:
    """Scales weights of some layers in place, until their largest results are ``LARGE``."""
    layers = {name: module for name, module in model.named_modules() if re.search(pattern, name)}
    assert layers, [name for name, _ in model.named_modules()]
    for name, layer in layers.items():  # one after the other, as each is behind others
        sizes = []
        # One layer for queries, keys and values: what softmax reads is left as it is.
        last = slice(-model.config.hidden_size, None) if name.endswith("c_attn") else slice(None)
        hook = layer.register_forward_hook(lambda _, __, output: sizes.append(output[..., last].abs().max().item()))  # noqa: B023
        calls(model, components)
        hook.remove()
        with torch.no_grad():
            for parameter in layer.parameters():
                part = parameter[..., last] if name.endswith("c_attn") else parameter
                part *= LARGE / max(sizes)
                assert part.abs().max() < 65504  # the weights themselves are no reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("mixed")


@cache
def saved(folder: Path, kind: str) -> tuple[Path, list]:
    """The model with its captures and plans, and calls with eager's answers."""
    model = folder / kind
    components = open_session(twin(kind).config).components
    enlarge(twin(kind), components, MODELS[kind])
    save(twin(kind), model)
    for dtype in ("float32", "float16"):
        assert (
            capture(["--model", str(model), "--dtype", dtype, "--progress", "off", "-o", f"{model}-{dtype}.capture"])
            == 0
        )
        write_weight_plan(make_weight_plan(model, dtype=dtype), Path(f"{model}-{dtype}.json"))
    expected = calls(twin(kind), components)
    outputs = [tensor for call in expected for tensor in call.outputs.values() if tensor.is_floating_point()]
    assert all(tensor.isfinite().all() for tensor in outputs)
    return model, expected


def made(model: Path, dtype: str, name: str, *options: str) -> Path:
    output = model.parent / f"{model.name}-{name}"
    make_exporter(model.parent, "onnx").export(model, "--dtype", dtype, *files(model, dtype), *options, "-o", output)
    return output


def files(model: Path, dtype: str) -> list[str]:
    return [f"--capture={model}-{dtype}.capture", f"--plan={model}-{dtype}.json"]


def difference(output: Path, expected: list) -> float:
    """Of the worst call from eager in float32, against the scale of its outputs; infinite if a result is no number."""
    worst = 0.0
    runs = {name: run for file in sorted(output.glob("*.onnx")) for name, run in open_onnx(str(file)).items()}
    is_half = find_export(output).dtype == "float16"
    for call in expected:
        inputs = {
            name: each.half() if is_half and each.is_floating_point() else each for name, each in call.inputs.items()
        }
        found = compared(*paired(call, runs[call.component](inputs)), ignored=call.ignored)
        worst = max(worst, math.inf if found.error or not math.isfinite(found.scaled) else found.scaled)
    return worst


@pytest.mark.parametrize("kind", always(("llama", "bert", "whisper"), MODELS))
def test_what_overflows_in_float16_stays_right(kind: str, folder: Path) -> None:
    model, expected = saved(folder, kind)
    plain = made(model, "float16", "plain")
    seen = see(model, program=str(PROGRAM), options=tuple(files(model, "float32")))
    (folder / "seen.json").write_text(json.dumps({"format": "argosy-seen-values", "version": 1, "graphs": seen}))
    mixed = made(model, "float32", "mixed", "--mixed16", "--seen-values", str(folder / "seen.json"))
    assert difference(plain, expected) > 0.1, "float16 is right here, so the test shows nothing"
    assert difference(mixed, expected) < 1e-2
    reasons = ""
    for file in mixed.glob("*.onnx"):
        graph = onnx.load(file, load_external_data=False)
        assert all(each.type.tensor_type.elem_type != HALF for each in (*graph.graph.input, *graph.graph.output))
        said = next(each.value for each in graph.metadata_props if each.key == "argosy.mixed16")
        found = re.match(r"(\d+) of (\d+) products compute in float16", said)
        assert found and int(found[1]) > 0, said
        reasons += said
    assert "stay float32 as values up to" in reasons


def test_structure_alone_does_not_tell_and_bytes_are_the_same_each_time(folder: Path) -> None:
    model, expected = saved(folder, "bert")
    blind = [made(model, "float32", name, "--mixed16") for name in ("blind", "again")]
    assert difference(blind[0], expected) > 0.1
    first, second = ({file.name: file.read_bytes() for file in output.glob("*.onnx*")} for output in blind)
    assert first == second and len(first) == 2
