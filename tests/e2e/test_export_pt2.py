"""`argosy export pt2` as users see it: archives that torch runs alone, output that is whole or not there, clear refusals."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from export_kill import MAKE_LLAMA, contents, kill_exports
from exporter_tool import PROGRAM, Exporter, llama_inputs, make_exporter, save_twins, twin

RUN_ARCHIVE = Path(__file__).with_name("run_archive.py")


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("export"), "pt2")


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """llama has one component, t5 two."""
    return save_twins(tmp_path_factory.mktemp("twins"), "llama", "t5")


def run_alone(archive: Path, inputs: dict[str, torch.Tensor], folder: Path) -> dict:
    torch.save(inputs, folder / "inputs.pt")
    command = [sys.executable, RUN_ARCHIVE, archive, folder / "inputs.pt", folder / "outputs.pt"]
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return torch.load(folder / "outputs.pt")


def test_an_archive_runs_without_transformers(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    said = exporter.export(twins / "llama", tmp_path / "new/llama.pt2")
    assert "LlamaForCausalLM, 1 component (decode)" in said
    assert said.splitlines()[-2].endswith("s). Not verified: --check off.")
    model = twin("llama")
    tokens = torch.randint(3, model.config.vocab_size, (3, 7), generator=torch.Generator().manual_seed(0))
    ran = run_alone(tmp_path / "new/llama.pt2", llama_inputs(model.config, tokens), tmp_path)
    with torch.no_grad():
        expected = model(tokens).logits
    torch.testing.assert_close(ran["results"]["logits"], expected, rtol=1e-5, atol=1e-5)
    manifest = ran["manifest"]
    assert (manifest["format"], manifest["version"]) == ("argosy-pt2", 1)
    assert manifest["model_class"] == "LlamaForCausalLM"
    assert manifest["component"] == "decode"
    assert [each["name"] for each in manifest["components"]] == ["decode"]
    assert manifest["check"] == {"kind": "off", "why": "not asked for"}


def test_dims_of_one_size_are_numbers(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", tmp_path / "a.pt2", "--shape", "batch=2,sequence=1..64")
    program = torch.export.load(tmp_path / "a.pt2")
    shapes = {node.name: node.meta["val"].shape for node in program.graph.nodes if node.op == "placeholder"}
    assert isinstance(shapes["input_ids"][0], int) and shapes["input_ids"][0] == 2
    symbol = shapes["input_ids"][1].node.expr
    assert (program.range_constraints[symbol].lower, program.range_constraints[symbol].upper) == (1, 64)
    model = twin("llama")
    tokens = torch.randint(3, model.config.vocab_size, (2, 7), generator=torch.Generator().manual_seed(0))
    ran = run_alone(tmp_path / "a.pt2", llama_inputs(model.config, tokens), tmp_path)
    with torch.no_grad():
        torch.testing.assert_close(ran["results"]["logits"], model(tokens).logits, rtol=1e-5, atol=1e-5)


def test_another_dtype_is_that_of_the_whole_program(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "llama", tmp_path / "half.pt2", "--dtype", "bfloat16")
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(twins / "llama", dtype=torch.bfloat16)
    tokens = torch.randint(3, model.config.vocab_size, (2, 5), generator=torch.Generator().manual_seed(0))
    ran = run_alone(tmp_path / "half.pt2", llama_inputs(model.config, tokens, torch.bfloat16), tmp_path)
    with torch.no_grad():
        expected = model(tokens).logits
    assert ran["results"]["logits"].dtype == torch.bfloat16
    torch.testing.assert_close(ran["results"]["logits"], expected, rtol=2e-2, atol=2e-2)


def test_components_have_archives_of_their_own_or_share_one(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "t5", "--output_dir", tmp_path / "t5")
    assert sorted(path.name for path in (tmp_path / "t5").iterdir()) == ["decoder.pt2", "encoder.pt2"]
    tokens = torch.randint(3, 30, (2, 6), generator=torch.Generator().manual_seed(0))
    inputs = {"input_ids": tokens, "attention_mask": torch.ones_like(tokens)}
    ran = run_alone(tmp_path / "t5/encoder.pt2", inputs, tmp_path)
    with torch.no_grad():
        expected = twin("t5").get_encoder()(**inputs).last_hidden_state
    found = next(value for name, value in ran["results"].items() if "hidden_state" in name)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    assert ran["manifest"]["component"] == "encoder"
    assert [each["name"] for each in ran["manifest"]["components"]] == ["encoder", "decoder"]
    assert ran["manifest"]["wiring"]

    from torch.export.pt2_archive._package import load_pt2

    exporter.export(twins / "t5", "-o", tmp_path / "both.pt2")
    both = load_pt2(str(tmp_path / "both.pt2"))
    assert set(both.exported_programs) == {"encoder", "decoder"}
    found = both.exported_programs["encoder"].module()(**inputs)
    torch.testing.assert_close(found, ran["results"])
    # the weights that both components use are there once
    apart = sum(path.stat().st_size for path in (tmp_path / "t5").iterdir())
    assert (tmp_path / "both.pt2").stat().st_size < apart


def test_same_input_gives_the_same_bytes(exporter: Exporter, tmp_path: Path) -> None:
    subprocess.run([sys.executable, MAKE_LLAMA, "17m", tmp_path / "model"], check=True)
    hashes = set()
    for number, arguments in enumerate([(), (), ("--threads", "1"), ("--threads", "4"), ("--memory", "40MB")]):
        place = tmp_path / str(number)
        place.mkdir()
        said = exporter.export(tmp_path / "model", place / "a.pt2", "--log-level", "info", *arguments)
        assert "peak memory" in said
        hashes.add(hashlib.sha256((place / "a.pt2").read_bytes()).hexdigest())
    assert len(hashes) == 1


def test_progress_is_a_json_object_a_line(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    said = exporter.export(twins / "llama", tmp_path / "a.pt2", "--progress", "json")
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    assert lines[-1]["finished"]
    assert lines[-1]["bytes_done"] == lines[-1]["bytes_total"] > 0
    assert {"task", "bytes_per_second", "seconds", "peak_rss_bytes"} <= set(lines[-1])


def test_a_dry_run_writes_nothing(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.export(twins / "t5", tmp_path / "real")
    arguments = ("export", "pt2", "--model", twins / "t5", "--dry-run")
    told, _ = exporter.run(*arguments, "-o", tmp_path / "dry")
    assert f"{tmp_path}/dry/encoder.pt2" in told and f"{tmp_path}/dry/decoder.pt2" in told
    assert "in the cache" in told and "free disk" in told and "peak memory" in told
    told, _ = exporter.run(*arguments, "--shape", "batch=1", "-o", tmp_path / "dry.pt2")
    assert "not in the cache, to be made by Python" in told
    assert [path.name for path in tmp_path.iterdir()] == ["real"]


def test_only_earlier_exports_are_replaced(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    for _ in range(2):
        exporter.export(twins / "llama", tmp_path / "a.pt2")
        exporter.export(twins / "llama", tmp_path / "folder")
    foreign = tmp_path / "foreign.pt2"
    foreign.write_text("mine")
    said = exporter.export(twins / "llama", foreign, code=1)
    assert "was not written by argosy export" in said and "choose another name" in said
    assert foreign.read_text() == "mine"
    (tmp_path / "folder/notes.txt").write_text("mine")
    before = contents(tmp_path / "folder")
    assert "notes.txt" in exporter.export(twins / "llama", tmp_path / "folder", code=1)
    assert "is a file, not a folder" in exporter.export(twins / "llama", tmp_path / "folder/notes.txt", code=1)
    assert contents(tmp_path / "folder") == before


def test_a_weight_that_the_checkpoint_lacks_is_named(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    from safetensors.torch import load_file, save_file

    exporter.export(twins / "llama", tmp_path / "a.pt2")
    model = tmp_path / "model"
    model.mkdir()
    (model / "config.json").write_text((twins / "llama/config.json").read_text())
    tensors = load_file(twins / "llama/model.safetensors")
    del tensors["model.layers.1.mlp.up_proj.weight"]
    save_file(tensors, model / "model.safetensors", {"format": "pt"})
    said = exporter.export(model, tmp_path / "b.pt2", code=1)
    assert "model.layers.1.mlp.up_proj.weight" in said
    assert not (tmp_path / "b.pt2").exists()


def test_rejects_what_makes_no_sense(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    exporter.run("export", "pt2", code=2)
    exporter.run("export", "nonsense", "--model", twins / "llama", code=2)
    exporter.export(twins / "llama", "--threads", "0", tmp_path / "a.pt2", code=2)
    assert "config.json" in exporter.export(tmp_path, tmp_path / "a.pt2", code=1)
    said = exporter.export(twins / "llama", tmp_path / "a.pt2", "--memory", "1MB", code=1)
    assert "--memory 1.00 MB is not enough" in said and "give at least" in said
    said = exporter.export(twins / "llama", tmp_path / "a.pt2", "--capture", twins / "llama/config.json", code=1)
    assert "config.json" in said
    assert not (tmp_path / "a.pt2").exists()


def test_a_full_disk_leaves_nothing_behind(exporter: Exporter, tmp_path: Path) -> None:
    subprocess.run([sys.executable, MAKE_LLAMA, "17m", tmp_path / "model"], check=True)
    place = tmp_path / "place"
    place.mkdir()
    exporter.export(tmp_path / "model", place / "a.pt2")
    before = contents(place / "a.pt2")
    for output in ("a.pt2", "new.pt2", "folder"):
        done = subprocess.run(
            [PROGRAM, "export", "pt2", "--model", tmp_path / "model", "-o", place / output, "--check", "off"],
            env={**os.environ, **exporter.environment(), "ARGOSY_CACHE": str(exporter.cache)},
            capture_output=True, text=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000_000, 20_000_000)),
        )  # fmt: skip
        assert done.returncode == 1
        assert "File too large" in done.stderr and "ulimit -f" in done.stderr
        assert [path.name for path in place.iterdir()] == ["a.pt2"]
    assert contents(place / "a.pt2") == before


@pytest.mark.parametrize("output", ["model.pt2", "folder"])
def test_a_killed_export_leaves_the_old_output_or_the_new(exporter: Exporter, tmp_path: Path, output: str) -> None:
    environment = {**os.environ, **exporter.environment(), "ARGOSY_CACHE": str(exporter.cache)}
    seen = kill_exports(PROGRAM, "pt2", tmp_path, output, 6, environment)
    assert seen["old"] > 0
