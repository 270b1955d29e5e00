"""Checkpoints that torch.save wrote (pytorch_model.bin): the same weights, and the same exports, as from safetensors; no code runs."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import zipfile
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch", reason="files are written by PyTorch")
transformers = pytest.importorskip("transformers", reason="plans are transformers' loading rules")

from safetensors.torch import load_file  # noqa: E402
from sweeps import PROGRAM  # noqa: E402
from sweeps.weight_plans import stream  # noqa: E402
from tiny_checkpoints import llama  # noqa: E402

from argosy.capture.weight_plan import make_weight_plan  # noqa: E402
from argosy.capture.weight_plan_headers import headers_hash, read_checkpoint_headers  # noqa: E402
from argosy.errors import ExportError  # noqa: E402

DTYPES = [torch.float32, torch.float16, torch.bfloat16, torch.float64, torch.uint8, torch.int8, torch.int16, torch.int32, torch.int64,
          torch.bool, torch.complex64, torch.uint16, torch.uint32, torch.uint64, torch.float8_e4m3fn, torch.float8_e5m2]  # fmt: skip


def as_torch_file(source: Path, folder: Path, **options: Any) -> dict[str, Any]:
    """The model of a folder with its weights in pytorch_model.bin."""
    folder.mkdir()
    for path in source.iterdir():
        if path.suffix == ".json":
            (folder / path.name).write_bytes(path.read_bytes())
    tensors = load_file(source / "model.safetensors")
    torch.save(tensors, folder / "pytorch_model.bin", **options)
    return tensors


def refused(folder: Path) -> tuple[str, str]:
    """What Python and what C++ say of a folder."""
    with pytest.raises(ExportError) as error:
        make_weight_plan(folder)
    done = subprocess.run([PROGRAM, "inspect", folder], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return str(error.value), done.stderr


@pytest.mark.parametrize("protocol", [2, 4, 5])
def test_weights_are_those_of_the_same_safetensors(protocol: int, tmp_path: Path) -> None:
    llama(tmp_path / "a")
    tensors = as_torch_file(tmp_path / "a", tmp_path / "b", pickle_protocol=protocol)
    plan = make_weight_plan(tmp_path / "b")
    assert plan == make_weight_plan(tmp_path / "a")
    found, message = stream(plan, tmp_path / "b", PROGRAM)
    assert not message
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_a_model_s_own_state_dict_with_ties_parameters_and_versions(tmp_path: Path) -> None:
    llama(tmp_path / "a", tie_word_embeddings=True)
    as_torch_file(tmp_path / "a", tmp_path / "b")
    model = transformers.LlamaForCausalLM.from_pretrained(tmp_path / "a", dtype="auto")
    state = model.state_dict(keep_vars=True)
    assert state["lm_head.weight"].data_ptr() == state["model.embed_tokens.weight"].data_ptr()
    assert isinstance(state["lm_head.weight"], torch.nn.Parameter) and state._metadata
    torch.save(state, tmp_path / "b/pytorch_model.bin")
    found, message = stream(make_weight_plan(tmp_path / "b"), tmp_path / "b", PROGRAM)
    assert not message
    for name, tensor in state.items():
        assert name == "lm_head.weight" or torch.equal(found[name], tensor), name


def test_shards_are_found_by_their_index(tmp_path: Path) -> None:
    llama(tmp_path / "a")
    tensors = as_torch_file(tmp_path / "a", tmp_path / "b")
    (tmp_path / "b/pytorch_model.bin").unlink()
    names = sorted(tensors)
    files = {name: f"pytorch_model-0000{1 + i % 2}-of-00002.bin" for i, name in enumerate(names)}
    for file in set(files.values()):
        torch.save({name: tensors[name] for name in names if files[name] == file}, tmp_path / "b" / file)
    (tmp_path / "b/pytorch_model.bin.index.json").write_text(json.dumps({"metadata": {}, "weight_map": files}))
    found, message = stream(make_weight_plan(tmp_path / "b"), tmp_path / "b", PROGRAM)
    assert not message
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)


def test_transposed_and_cut_tensors_keep_their_values(tmp_path: Path) -> None:
    llama(tmp_path / "a")
    tensors = as_torch_file(tmp_path / "a", tmp_path / "b")
    changed = dict(tensors)
    q, up, embedding = ("model.layers.0.self_attn.q_proj.weight", "model.layers.1.mlp.up_proj.weight", "model.embed_tokens.weight")
    changed[q] = tensors[q].t().contiguous().t()
    changed[up] = torch.cat([torch.zeros(3, 48, dtype=torch.bfloat16), tensors[up]])[3:]
    changed[embedding] = tensors[embedding].view(8, 8, 48).permute(2, 0, 1).contiguous().permute(1, 2, 0).flatten(0, 1)
    assert not changed[q].is_contiguous() and changed[up].storage_offset() and not changed[embedding].is_contiguous()
    torch.save(changed, tmp_path / "b/pytorch_model.bin")
    found, message = stream(make_weight_plan(tmp_path / "b"), tmp_path / "b", PROGRAM)
    assert not message
    assert all(torch.equal(found[name], tensors[name]) for name in tensors)
    changed[q] = torch.zeros(48, 96, dtype=torch.bfloat16)[:, ::2]
    torch.save(changed, tmp_path / "b/pytorch_model.bin")
    _, message = stream(make_weight_plan(tmp_path / "b"), tmp_path / "b", PROGRAM)
    assert f'tensor "{q}" has shape [48, 48] and strides [96, 2], which repeat or leave out elements' in message


def test_every_dtype_has_the_same_header_in_both_readers(tmp_path: Path) -> None:
    tensors = {f"{dtype}"[6:]: torch.zeros(2, 3, dtype=dtype) for dtype in DTYPES}
    torch.save(tensors, tmp_path / "pytorch_model.bin")
    headers = read_checkpoint_headers(tmp_path)
    assert {each.name: (each.dtype, each.shape) for each in headers} == {
        name: (tensor.dtype, (2, 3)) for name, tensor in tensors.items()
    }
    # C++ takes a plan only for a checkpoint whose hash it finds to be the plan's.
    plan = {"format": "argosy-weight-plan", "version": 3, "model_class": "M", "checkpoint_hash": headers_hash(headers),
            "weights": [{"name": "w", "dtype": "f16", "shape": [2, 3], "sources": ["float16"]}], "missing": [], "unexpected": []}  # fmt: skip
    found, message = stream(plan, tmp_path, PROGRAM)
    assert not message and found["w"].shape == (2, 3)


def test_an_export_has_the_bytes_of_one_from_safetensors(tmp_path: Path) -> None:
    llama(tmp_path / "a/model")
    (tmp_path / "b").mkdir()
    as_torch_file(tmp_path / "a/model", tmp_path / "b/model")
    for name in ("a", "b"):
        command = [PROGRAM, "export", "onnx", "--model", "model", "--check", "off", "-o", "out"]
        subprocess.run(command, check=True, cwd=tmp_path / name, capture_output=True, env={**os.environ, "HF_HUB_OFFLINE": "1"})
    files = {path.relative_to(tmp_path / "a") for path in (tmp_path / "a/out").rglob("*") if path.is_file()}
    assert files == {path.relative_to(tmp_path / "b") for path in (tmp_path / "b/out").rglob("*") if path.is_file()}
    assert any(path.suffix == ".onnx" for path in files)
    different = [path for path in files if (tmp_path / "a" / path).read_bytes() != (tmp_path / "b" / path).read_bytes()]
    assert not different


class Call:
    """What a hostile pickle does: calls a function when it is loaded."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.path}",)


def test_what_would_run_code_is_refused_by_name_and_does_not_run(tmp_path: Path) -> None:
    llama(tmp_path / "a")
    tensors = as_torch_file(tmp_path / "a", tmp_path / "b")
    torch.save({**tensors, "x": Call(tmp_path / "ran")}, tmp_path / "b/pytorch_model.bin")
    for said in refused(tmp_path / "b"):
        assert f"it asks for {os.system.__module__}.system" in said.replace('"', "").replace("'", "")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("root", "options", "message"),
    [
        ({"epoch": 3}, {}, "where a tensor is expected"),
        ([torch.zeros(2)], {}, "where a dict of tensors is expected"),
        ({"x": torch.zeros(2).to_sparse()}, {}, "torch._utils._rebuild_sparse_tensor"),
        ({"x": torch.zeros(2)}, {"_use_new_zipfile_serialization": False}, "before version 1.6"),
    ],
)
def test_what_is_no_state_dict_is_refused(root: Any, options: dict[str, Any], message: str, tmp_path: Path) -> None:
    llama(tmp_path / "a")
    as_torch_file(tmp_path / "a", tmp_path / "b")
    torch.save(root, tmp_path / "b/pytorch_model.bin", **options)
    for said in refused(tmp_path / "b"):
        assert message in said


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\x80\x02}q\x00(",
        b"N" + b"\x85" * 200_000 + b".",
        b"h\x07.",
        b"(" * 100 + b"t.",
        b"\x80\x02]q\x01h\x01aR.",
        pickle.dumps({"a": {1, 2}}, 2),
        pickle.dumps(Path("x"), 4),
    ],
)
def test_pickles_that_are_none_are_refused(content: bytes, tmp_path: Path) -> None:
    llama(tmp_path / "a")
    as_torch_file(tmp_path / "a", tmp_path / "b")
    with zipfile.ZipFile(tmp_path / "b/pytorch_model.bin", "w") as archive:
        archive.writestr("x/data.pkl", content)
    for said in refused(tmp_path / "b"):
        assert "error[" in said or "pytorch_model.bin" in said
