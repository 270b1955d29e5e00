"""ExecutorchExporter on live models: what it returns runs in ExecuTorch's runtime and gives what the model gives."""

from __future__ import annotations

import io
import sys
from pathlib import Path

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, ViTConfig, ViTForImageClassification

sys.path.append(str(Path(__file__).parents[1] / "ops"))
from core import find_core

find_core()
pytest.importorskip("executorch.runtime")

from argosy import ExportError
from argosy.check.executorch_worker import kernels, open_method, open_program
from argosy.exporters import AutoHfExporter, ExecutorchConfig, ExecutorchExporter, ExecutorchProgram, get_leaf_tensors
from argosy.exporters.utils import decompose_for_generation
from argosy.observer.calls import copy_value

TEXT = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 2, "num_attention_heads": 2, "vocab_size": 64}


class Small(torch.nn.Module):
    """An input that is not used, one inside a container, and a weight that is used twice."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.linear = torch.nn.Linear(8, 8)

    def forward(self, x: torch.Tensor, unused: torch.Tensor, parts: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
        y = torch.relu(self.linear(x))
        return {"y": self.linear(y) + parts["bias"], "double": x * 2}


def small_inputs(batch: int = 2, length: int = 5) -> dict:
    torch.manual_seed(1)
    return {"x": torch.randn(batch, length, 8), "unused": torch.randn(3), "parts": {"bias": torch.randn(8)}}


def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    return LlamaForCausalLM(LlamaConfig(**TEXT)).eval()


def prompt(batch: int = 2, length: int = 6) -> dict[str, torch.Tensor]:
    ids = torch.arange(1, batch * length + 1).reshape(batch, length)
    mask = torch.ones_like(ids)
    mask[0, 0] = 0
    return {"input_ids": ids, "attention_mask": mask}


def assert_right(program: ExecutorchProgram, module: torch.nn.Module, inputs: dict, **flags: bool) -> None:
    with torch.no_grad():
        wanted = get_leaf_tensors(module(**copy_value(inputs), **flags))
    made = program(**copy_value(inputs))
    assert len(made) == len(wanted)
    for (name, want), have in zip(wanted.items(), made, strict=True):
        assert want.shape == have.shape, name
        assert torch.allclose(want, have, atol=1e-5), name


@pytest.mark.parametrize("backend", ["portable", "xnnpack"])
def test_inputs_have_the_order_of_the_sample(backend: str, tmp_path: Path) -> None:
    model = Small().eval()
    program = ExecutorchExporter().export(model, small_inputs(), ExecutorchConfig(backend=backend, dynamic=True))
    assert program.input_names == ["x", "unused", "parts.bias"]
    assert program.output_names == ["y", "double"]
    assert_right(program, model, small_inputs())
    assert_right(program, model, small_inputs(4, 200))
    program.save(tmp_path / "model.pte")
    call = open_method(open_program(tmp_path / "model.pte"), "forward")
    made = call(list(get_leaf_tensors(small_inputs(1, 3)).values()))
    assert torch.allclose(made[0], model(**small_inputs(1, 3))["y"], atol=1e-5)


def test_files_are_the_same(tmp_path: Path) -> None:
    program = ExecutorchExporter().export(Small().eval(), small_inputs(), {"backend": "portable"})
    program.save(tmp_path / "saved.pte")
    stream = io.BytesIO()
    program.write_to_file(stream)
    program.write_to_file(tmp_path / "written.pte")
    saved = (tmp_path / "saved.pte").read_bytes()
    assert saved == stream.getvalue() == program.buffer == (tmp_path / "written.pte").read_bytes()
    assert saved[4:8] == b"ET12"
    assert kernels(tmp_path / "saved.pte") & {"aten::linear", "aten::addmm", "aten::bmm", "aten::mm"}


def test_sizes_beyond_the_bounds_are_refused() -> None:
    dims = {"x": {0: torch.export.Dim("batch", min=1, max=3), 1: torch.export.Dim("length", min=1, max=7)},
            "unused": None, "parts": {"bias": None}}  # fmt: skip
    program = ExecutorchExporter().export(Small().eval(), small_inputs(), {"dynamic_shapes": dims, "backend": "portable"})
    assert_right(program, Small().eval(), small_inputs(3, 7))
    with pytest.raises(ExportError, match="resize") as raised:
        program(**small_inputs(3, 8))
    assert raised.value.code == "engine-failed"
    larger = {"dynamic": True, "backend": "portable", "max_sizes": {"x_dim_1": 300}}
    program = ExecutorchExporter().export(Small().eval(), small_inputs(), larger)
    assert_right(program, Small().eval(), small_inputs(1, 300))
    with pytest.raises(ExportError, match="no dim that varies"):
        ExecutorchExporter().export(Small().eval(), small_inputs(), {"max_sizes": {"length": 3}})


def test_wrong_arguments_are_told() -> None:
    program = ExecutorchExporter().export(Small().eval(), small_inputs(), {"backend": "portable"})
    with pytest.raises(ExportError, match="it also takes parts.bias"):
        program(x=torch.ones(2, 5, 8), unused=torch.ones(3))


@pytest.mark.parametrize(("backend", "text"), [("cuda", "CUDA toolkit"), ("coreml", "coremltools"), ("nonsense", "no backend 'nonsense'")])
def test_other_backends_say_what_is_missing(backend: str, text: str) -> None:
    with pytest.raises(ExportError, match=text) as raised:
        ExecutorchExporter().export(Small().eval(), small_inputs(), ExecutorchConfig(backend=backend))
    assert "xnnpack" in raised.value.hint


def test_auto_exporter() -> None:
    assert isinstance(AutoHfExporter.from_config({"export_format": "executorch", "backend": "portable"}), ExecutorchExporter)


def test_llama(tmp_path: Path) -> None:
    model = llama()
    program = ExecutorchExporter().export(model, prompt(), ExecutorchConfig(dynamic=True))
    assert_right(program, model, prompt())
    assert_right(program, model, prompt(3, 11))


def test_export_for_generation() -> None:
    model = llama()
    programs = ExecutorchExporter().export_for_generation(model, prompt(), ExecutorchConfig(dynamic=True))
    assert list(programs) == ["prefill", "decode"]
    for name, (module, inputs) in decompose_for_generation(model, prompt()).items():
        assert_right(programs[name], module, dict(inputs))


def test_picture_model() -> None:
    torch.manual_seed(0)
    sizes = {"image_size": 16, "patch_size": 8, "hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}  # fmt: skip
    model = ViTForImageClassification(ViTConfig(**sizes)).eval()
    program = ExecutorchExporter().export(model, {"pixel_values": torch.randn(2, 3, 16, 16)}, ExecutorchConfig(dynamic=True))
    assert_right(program, model, {"pixel_values": torch.randn(3, 3, 16, 16)})


def test_bounds_that_nobody_asked_for_are_noted() -> None:
    class Plus(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x + 1.0

    inputs = {"x": torch.ones(2, 3)}
    program = ExecutorchExporter().export(Plus(), inputs, ExecutorchConfig(dynamic=True))
    assert "memory is reserved for x_dim_1 of up to 256; max_sizes asks for more" in program.notes
    program = ExecutorchExporter().export(Plus(), inputs, ExecutorchConfig(dynamic=True, max_sizes={"x_dim_0": 8, "x_dim_1": 999}))
    assert not any("reserved" in note for note in program.notes)


def test_another_size_than_a_fixed_one_is_refused() -> None:
    program = ExecutorchExporter().export(torch.nn.ReLU(), {"input": torch.ones(2, 3)})
    assert program(input=torch.ones(2, 3))[0].shape == (2, 3)
    with pytest.raises(ExportError, match="input has 1 where it takes 2"):
        program(input=torch.ones(1, 3))
