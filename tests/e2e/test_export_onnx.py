"""`argosy export onnx` as users see it: models that ONNX Runtime runs, weights where they were asked for, output that is
whole or not there, clear refusals."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from export_kill import MAKE_LLAMA, contents, kill_exports
from exporter_tool import PROGRAM, Exporter, llama_inputs, make_exporter, save_twins, twin
from safetensors.torch import load_file, save_file


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("export"), "onnx")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """llama has one component, t5 two."""
    return save_twins(tmp_path_factory.mktemp("twins"), "llama", "t5")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 MB: large enough for threads, kills and full disks."""
    model = tmp_path_factory.mktemp("small") / "model"
    subprocess.run([sys.executable, MAKE_LLAMA, "17m", model], check=True)
    return model


def run(model: Path, inputs: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
    session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
    names = [each.name for each in session.get_outputs()]
    wanted = {each.name for each in session.get_inputs()}
    results = session.run(names, {name: value.numpy() for name, value in inputs.items() if name in wanted})
    return dict(zip(names, results, strict=True))


def some_tokens(vocabulary: int, shape: tuple[int, int] = (3, 7)) -> torch.Tensor:
    return torch.randint(3, vocabulary, shape, generator=torch.Generator().manual_seed(0))


def expect_llama(model: Path, source: Path | None = None, tolerance: float = 1e-4) -> None:
    """The exported decode agrees with the eager twin, or with the checkpoint in ``source``."""
    from transformers import AutoModelForCausalLM

    eager = (
        twin("llama") if source is None else AutoModelForCausalLM.from_pretrained(source, dtype=torch.float32).eval()
    )
    tokens = some_tokens(eager.config.vocab_size)
    dtype = {1: torch.float32, 10: torch.float16}[first_float_input(model)]
    found = run(model, llama_inputs(eager.config, tokens, dtype, "past_key_values.{}.{}"))["logits"].astype(np.float32)
    with torch.no_grad():
        expected = eager(tokens).logits.numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * max(1.0, float(np.abs(expected).max())))


def first_float_input(model: Path) -> int:
    types = [each.type.tensor_type.elem_type for each in onnx.load(model, load_external_data=False).graph.input]
    return next(each for each in types if each in (1, 10))


def properties(model: Path) -> dict[str, str]:
    return {each.key: each.value for each in onnx.load(model, load_external_data=False).metadata_props}


def external_files(model: Path) -> set[str]:
    loaded = onnx.load(model, load_external_data=False)
    entries = [{entry.key: entry.value for entry in each.external_data} for each in loaded.graph.initializer]
    return {entry["location"] for entry in entries if entry}


def graph_files(folder: Path) -> list[str]:
    return [name for name in names(folder) if name.endswith((".onnx", ".data"))]


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_one_model_with_its_data_beside_it(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    said = exporter.export(twins / "llama", tmp_path / "new/llama.onnx")
    assert "LlamaForCausalLM, 1 component (decode)" in said
    assert names(tmp_path / "new") == ["llama.onnx", "llama.onnx.data"]
    onnx.checker.check_model(str(tmp_path / "new/llama.onnx"), full_check=True)
    expect_llama(tmp_path / "new/llama.onnx")
    loaded = onnx.load(tmp_path / "new/llama.onnx", load_external_data=False)
    assert (loaded.producer_name, loaded.ir_version) == ("argosy", 10)
    assert [(each.domain, each.version) for each in loaded.opset_import] == [("", 22)]
    found = properties(tmp_path / "new/llama.onnx")
    assert found["argosy.model_class"] == "LlamaForCausalLM"
    assert found["argosy.component"] == "decode"
    assert found["argosy.torch"] == torch.__version__
    manifest = json.loads(found["argosy.manifest"])
    assert (manifest["format"], manifest["component"]) == ("argosy-onnx", "decode")
    assert manifest["check"] == {"kind": "off", "why": "not asked for"}
    assert str(tmp_path) not in str(found) and str(twins) not in str(found)


def test_dims_have_names(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", tmp_path / "a.onnx")
    inputs = {each.name: each for each in onnx.load(tmp_path / "a.onnx", load_external_data=False).graph.input}
    dims = [dim.dim_param for dim in inputs["input_ids"].type.tensor_type.shape.dim]
    assert dims == ["batch", "sequence"]


def test_dims_of_one_size_are_numbers(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", tmp_path / "a.onnx", "--shape", "batch=2,sequence=1..64")
    loaded = onnx.load(tmp_path / "a.onnx", load_external_data=False)
    onnx.checker.check_model(str(tmp_path / "a.onnx"), full_check=True)
    for value in [*loaded.graph.input, *loaded.graph.output]:
        first, *others = value.type.tensor_type.shape.dim
        assert first.dim_value == 2, value.name
        assert not [dim for dim in others if dim.dim_param == "batch"]
    eager = twin("llama")
    tokens = some_tokens(eager.config.vocab_size, (2, 7))
    found = run(tmp_path / "a.onnx", llama_inputs(eager.config, tokens, state="past_key_values.{}.{}"))["logits"]
    with torch.no_grad():
        np.testing.assert_allclose(found, eager(tokens).logits.numpy(), rtol=0, atol=1e-4)
    with pytest.raises(Exception, match="dimensions"):
        run(tmp_path / "a.onnx", llama_inputs(eager.config, tokens[:1], state="past_key_values.{}.{}"))


def test_components_share_one_data_file(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "t5", "--output_dir", tmp_path / "t5")
    assert {"README.md", "bundle.json", "config.json", "tokenizer.json"} < set(names(tmp_path / "t5"))
    assert graph_files(tmp_path / "t5") == ["decoder.onnx", "encoder.onnx", "model.onnx.data"]
    for component in ("encoder", "decoder"):
        onnx.checker.check_model(str(tmp_path / f"t5/{component}.onnx"), full_check=True)
    inputs = {"input_ids": some_tokens(30), "attention_mask": torch.ones(3, 7, dtype=torch.int64)}
    found = next(value for name, value in run(tmp_path / "t5/encoder.onnx", inputs).items() if "hidden_state" in name)
    with torch.no_grad():
        expected = twin("t5").get_encoder()(**inputs).last_hidden_state.numpy()
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    manifest = json.loads((tmp_path / "t5/bundle.json").read_text())
    assert [each["name"] for each in manifest["components"]] == ["encoder", "decoder"]
    assert manifest["wiring"] and manifest["component"] is None
    assert manifest["files"][:3] == ["encoder.onnx", "decoder.onnx", "model.onnx.data"]
    assert {*manifest["files"], "bundle.json"} == set(names(tmp_path / "t5"))
    said = exporter.export(twins / "t5", tmp_path / "t5.onnx", code=1)
    assert "there are 2" in said and "folder" in said


def test_what_is_so_of_several_graphs_is_one_warning(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    shape = ("--prefill", "--shape", "batch=1")
    said = exporter.export(small, *shape, tmp_path / "both")
    (line,) = [line for line in said.splitlines() if "the batch size is fixed" in line]
    assert line.endswith("(and 1 more like it; --log-level info shows them)")
    said = exporter.export(small, *shape, "--log-level", "info", tmp_path / "again")
    assert said.count("the batch size is fixed") == 2 and "more like it" not in said


def test_prefill_and_decode_share_their_weights(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    exporter.export(small, "--prefill", tmp_path / "both")
    assert graph_files(tmp_path / "both") == ["decode.onnx", "model.onnx.data", "prefill.onnx"]
    bytes_written = sum(path.stat().st_size for path in (tmp_path / "both").iterdir())
    assert bytes_written <= 1.02 * (small / "model.safetensors").stat().st_size


def test_linked_weights_take_no_space(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    said = exporter.export(small, "--weights", "link", tmp_path / "linked")
    assert "linked" in said
    link = tmp_path / "linked/model.safetensors"
    assert not link.is_symlink()
    assert contents(link) == contents(small / "model.safetensors")
    new = sum(path.stat().st_size for path in (tmp_path / "linked").iterdir() if path != link)
    assert new < 4_000_000
    assert "model.safetensors" in external_files(tmp_path / "linked/decode.onnx")
    expect_llama(tmp_path / "linked/decode.onnx", small)
    exporter.export(small, "--weights", "link", tmp_path / "linked")  # again
    assert contents(link) == contents(small / "model.safetensors")
    exporter.export(small, "--weights", "link", tmp_path / "one/a.onnx")
    assert "a.onnx.model.safetensors" in names(tmp_path / "one")
    expect_llama(tmp_path / "one/a.onnx", small)


def test_links_of_the_hubs_cache_are_followed(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    snapshot = tmp_path / "models--org--name/snapshots/0123"
    (tmp_path / "models--org--name/blobs").mkdir(parents=True)
    snapshot.mkdir(parents=True)
    for name in ("config.json", "model.safetensors"):
        blob = tmp_path / "models--org--name/blobs" / hashlib.sha256(name.encode()).hexdigest()
        os.link(small / name, blob)
        (snapshot / name).symlink_to(os.path.relpath(blob, snapshot))
    exporter.export(snapshot, "--weights", "link", tmp_path / "linked")
    assert not any(path.is_symlink() for path in (tmp_path / "linked").iterdir())
    assert (tmp_path / "linked/model.safetensors").exists()
    expect_llama(tmp_path / "linked/decode.onnx", small)


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs a second file system")
def test_links_to_another_file_system_are_refused(exporter: Exporter, small: Path) -> None:
    place = Path(f"/dev/shm/argosy-test-{os.getpid()}")
    said = exporter.export(small, "--weights", "link", place, code=1)
    assert "different file systems" in said and "--weights copy" in said
    assert not place.exists()


def test_embedded_weights(exporter: Exporter, twins: Path, small: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", "--weights", "embed", tmp_path / "a.onnx")
    exporter.export(small, "--weights", "embed", tmp_path / "b.onnx")
    assert names(tmp_path) == ["a.onnx", "b.onnx"]
    assert not external_files(tmp_path / "a.onnx")
    onnx.checker.check_model(str(tmp_path / "b.onnx"))
    expect_llama(tmp_path / "a.onnx")
    expect_llama(tmp_path / "b.onnx", small)


@pytest.mark.parametrize("opset", [18, 20, 23, 24])
def test_other_opsets(exporter: Exporter, twins: Path, tmp_path: Path, opset: int) -> None:
    exporter.export(twins / "llama", "--opset", str(opset), tmp_path / "a.onnx")
    assert onnx.load(tmp_path / "a.onnx", load_external_data=False).opset_import[0].version == opset
    expect_llama(tmp_path / "a.onnx")


def test_without_optimisation(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", "--optimize", "off", tmp_path / "plain.onnx")
    exporter.export(twins / "llama", tmp_path / "a.onnx")
    nodes = [len(onnx.load(tmp_path / name, load_external_data=False).graph.node) for name in ("plain.onnx", "a.onnx")]
    assert nodes[0] > nodes[1]
    expect_llama(tmp_path / "plain.onnx")


def test_float16_is_converted_on_the_way(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    exporter.export(small, "--dtype", "fp16", tmp_path / "half.onnx")
    loaded = onnx.load(tmp_path / "half.onnx")
    weights = {each.name: each for each in loaded.graph.initializer}
    tensors = load_file(small / "model.safetensors")
    found = onnx.numpy_helper.to_array(weights["model.layers.1.mlp.up_proj.weight"])
    np.testing.assert_array_equal(found, tensors["model.layers.1.mlp.up_proj.weight"].half().numpy())
    expect_llama(tmp_path / "half.onnx", small, tolerance=5e-3)


def test_bfloat16_becomes_float32_unless_asked_for(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    config = json.loads((small / "config.json").read_text())
    (model / "config.json").write_text(json.dumps({**config, "dtype": "bfloat16"}))
    tensors = {name: value.bfloat16() for name, value in load_file(small / "model.safetensors").items()}
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    said = exporter.export(model, tmp_path / "a.onnx", "--log-level", "info")
    assert "bfloat16" in said and "float32" in said
    expect_llama(tmp_path / "a.onnx", model)
    exporter.export(model, tmp_path / "b.onnx", "--dtype", "bf16")
    types = {each.data_type for each in onnx.load(tmp_path / "b.onnx", load_external_data=False).graph.initializer}
    assert onnx.TensorProto.BFLOAT16 in types


def test_values_too_large_for_float16_are_reported(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text((small / "config.json").read_text())
    tensors = load_file(small / "model.safetensors")
    tensors["model.layers.1.mlp.up_proj.weight"][5, 7:9] = 1e6
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    said = exporter.export(model, tmp_path / "half.onnx", "--dtype", "float16")
    assert "2 values of model.layers.1.mlp.up_proj.weight are too large for float16" in said


def test_same_input_gives_the_same_bytes(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    hashes = set()
    for number, arguments in enumerate([(), (), ("--threads", "1"), ("--threads", "4"), ("--memory", "60MB")]):
        exporter.export(small, tmp_path / str(number) / "out", *arguments)
        hashes.add(contents(tmp_path / str(number) / "out"))
    assert len(hashes) == 1


def test_a_capture_alone_becomes_a_model_with_its_weights_as_inputs(
    exporter: Exporter, twins: Path, tmp_path: Path
) -> None:
    exporter.run("capture", "--model", twins / "llama", "-o", tmp_path / "llama.capture")
    exporter.run("opt", tmp_path / "llama.capture", "-o", tmp_path / "llama.onnx")
    loaded = onnx.load(tmp_path / "llama.onnx")
    assert "model.layers.1.mlp.up_proj.weight" in {each.name for each in loaded.graph.input}
    onnx.checker.check_model(loaded, full_check=True)


def test_progress_is_a_json_object_a_line(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    said = exporter.export(twins / "llama", tmp_path / "a.onnx", "--progress", "json")
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert lines[-1]["finished"]
    assert lines[-1]["bytes_done"] == lines[-1]["bytes_total"] > 0


def test_a_dry_run_writes_nothing(exporter: Exporter, twins: Path, small: Path, tmp_path: Path) -> None:
    exporter.export(twins / "t5", tmp_path / "real")
    arguments = ("export", "onnx", "--model", twins / "t5", "--dry-run")
    told, _ = exporter.run(*arguments, "-o", tmp_path / "dry")
    for name in ("encoder.onnx", "decoder.onnx", "model.onnx.data"):
        assert f"{tmp_path}/dry/{name}" in told
    exporter.export(small, tmp_path / "real")
    told, _ = exporter.run("export", "onnx", "--model", small, "--dry-run", "--weights", "link", "-o", tmp_path / "dry")
    assert "would link" in told and "dry/model.safetensors" in told
    assert names(tmp_path) == ["real"]


def test_only_earlier_exports_are_replaced(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    for _ in range(2):
        exporter.export(twins / "llama", tmp_path / "a.onnx")
        exporter.export(twins / "llama", tmp_path / "folder")
    foreign = tmp_path / "foreign.onnx"
    onnx.save(onnx.helper.make_model(onnx.helper.make_graph([], "g", [], [])), foreign)
    before = foreign.read_bytes()
    assert "was not written by argosy export" in exporter.export(twins / "llama", foreign, code=1)
    assert foreign.read_bytes() == before
    (tmp_path / "folder/notes.txt").write_text("mine")
    before = contents(tmp_path / "folder")
    assert "notes.txt" in exporter.export(twins / "llama", tmp_path / "folder", code=1)
    assert contents(tmp_path / "folder") == before


def test_rejects_what_makes_no_sense(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    for arguments in (("--opset", "17"), ("--opset", "25"), ("--weights", "nowhere"), ("--optimize", "wild")):
        exporter.export(twins / "llama", tmp_path / "a.onnx", *arguments, code=2)
    assert not list(tmp_path.iterdir())


def test_a_full_disk_leaves_nothing_behind(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    exporter.export(small, tmp_path / "folder")
    before = contents(tmp_path / "folder")
    for output in ("folder", "new", "new.onnx"):
        done = subprocess.run(
            [PROGRAM, "export", "onnx", "--model", small, "-o", tmp_path / output, "--check", "off"],
            env={**os.environ, **exporter.environment(), "ARGOSY_CACHE": str(exporter.cache)},
            capture_output=True, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000)),
        )  # fmt: skip
        assert done.returncode == 1
        assert "File too large" in done.stderr and "ulimit -f" in done.stderr
        assert names(tmp_path) == ["folder"]
    assert contents(tmp_path / "folder") == before


@pytest.mark.parametrize("output", ["model.onnx", "folder"])
def test_a_killed_export_leaves_the_old_output_or_the_new(exporter: Exporter, tmp_path: Path, output: str) -> None:
    environment = {**os.environ, **exporter.environment(), "ARGOSY_CACHE": str(exporter.cache)}
    seen = kill_exports(PROGRAM, "onnx", tmp_path, output, 6, environment)
    assert seen["old"] > 0


def test_passes_can_be_watched(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    watched = ["--dump-ir", tmp_path / "ir", "--after", "functionalise,legalise-for-onnx", "--verify-each"]
    exporter.export(twins / "llama", *watched, "-o", tmp_path / "out")
    dumps = sorted((tmp_path / "ir").iterdir())
    assert [path.name.split("_", 1)[1] for path in dumps] == ["functionalise.ir", "legalise-for-onnx.ir"]
    # What was dumped is a program again.
    exporter.run("opt", dumps[1], "--passes", "legalise-for-onnx", "-o", tmp_path / "again.ir")
    assert (tmp_path / "again.ir").read_bytes() == dumps[1].read_bytes()
