"""A variant is added to a bundle that is there: others keep their bytes and times, and all is as if exported at once."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
import torch
import transformers
from sweeps.exporting import export
from test_fast_graphs import ARGOSY, TOKENIZER, save_model
from test_variants import contents
from thorough import thorough


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("adding") / "model"
    save_model("llama", folder, {})
    return folder


def run(model: Path, output: Path, engine: str, dtype: str, *more: str) -> tuple[str, str]:
    return export(ARGOSY, "onnx", "--model", model, "--for", engine, "--dtype", dtype, *(more or ("--check", "off")), "-o", output)


def made(model: Path, output: Path, engine: str, dtype: str, *more: str) -> str:
    refusal, said = run(model, output, engine, dtype, *more)
    assert refusal == "", said
    return said


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    return {str(file.relative_to(folder)): (file.stat().st_ino, file.stat().st_mtime_ns) for file in folder.rglob("*") if file.is_file()}


@pytest.mark.parametrize("engine", ("transformersjs", "genai"))
@pytest.mark.parametrize(("before", "added"), [("fp32,q4", "q8"), ("q8,fp32", "fp16,q4f16")])
def test_the_result_is_as_if_exported_at_once(engine: str, before: str, added: str, model: Path, tmp_path: Path) -> None:
    made(model, tmp_path / "out", engine, before)
    old = stamps(tmp_path / "out")
    said = made(model, tmp_path / "out", engine, added, "--check", "off", "--add")
    assert " linked" in said
    made(model, tmp_path / "whole", engine, f"{before},{added}")
    assert contents(tmp_path / "out") == contents(tmp_path / "whole")
    now = stamps(tmp_path / "out")
    kept = [name for name in old if name.startswith("onnx/" if engine == "transformersjs" else tuple(before.split(",")))]
    assert len(kept) >= 4 and {name: now[name] for name in kept} == {name: old[name] for name in kept}
    assert not [file for file in tmp_path.iterdir() if file.name not in ("out", "whole")]


def test_a_bundle_of_one_variant_becomes_one_of_several(model: Path, tmp_path: Path) -> None:
    for name, options in (("named", ("--dtype", "q4")), ("plain", ())):
        out = tmp_path / name
        refusal, said = export(ARGOSY, "onnx", "--model", model, "--for", "transformersjs", "--check", "off", *options, "-o", out)
        assert refusal == "", said
        first = "q4" if options else "fp32"
        made(model, out, "transformersjs", "q8", "--check", "off", "--add")
        made(model, tmp_path / f"{name}-whole", "transformersjs", f"{first},q8")
        assert contents(out) == contents(tmp_path / f"{name}-whole")


@pytest.mark.parametrize(("engine", "before", "manifest"), [("transformersjs", "q8", "bundle.json"), thorough(("optimum", "fp32,q8", "q8/bundle.json"))])
def test_checks_and_figures_of_others_stay(engine: str, before: str, manifest: str, tmp_path: Path) -> None:
    model, out, whole = tmp_path / "encoder", tmp_path / "out", tmp_path / "whole"
    torch.manual_seed(0)
    sizes = {"vocab_size": 2048, "hidden_size": 64, "num_hidden_layers": 1, "num_attention_heads": 4, "intermediate_size": 96}
    transformers.BertModel(transformers.BertConfig(**sizes)).save_pretrained(model)
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (model / name).write_bytes((TOKENIZER / name).read_bytes())
    made(model, out, engine, before, "--check", "full")
    check = json.loads((out / manifest).read_text())["check"]
    assert check["quality"]["least_cosine"] > 0.9
    made(model, out, engine, "q4", "--check", "full", "--add")
    made(model, whole, engine, f"{before},q4", "--check", "full")
    assert json.loads((out / manifest).read_text())["check"] == check
    assert (out / "quality.svg").read_bytes().count(b"<circle") == 1 + len(before.split(","))
    assert contents(out) == contents(whole)


def test_what_is_another_model_or_made_otherwise_is_refused(model: Path, tmp_path: Path) -> None:
    for engine in ("transformersjs", "genai"):
        out = tmp_path / engine
        made(model, out, engine, "fp32,q4")
        before = contents(out)

        def refused(words: str, folder: Path = model, engine: str = engine, dtype: str = "q8", *more: str, out: Path = out) -> None:
            refusal, said = run(folder, out, engine, dtype, "--check", "off", "--add", *more)
            assert words in refusal, said
            assert contents(out) == before  # noqa: B023

        refused("has q4 already", dtype="fp16,q4")
        refused("not for optimum", engine="optimum")
        refused("was made with other options", model, engine, "q8", "--opset", "21")
        refused("is not what this export writes", model, engine, "q8", "--quantize-block", "64")
        refused("--add adds variants, and none is named", dtype="auto")
        other = tmp_path / f"other-{engine}" / "model"  # of the same name and configuration
        shutil.copytree(model, other)
        stored = (other / "model.safetensors").read_bytes()
        begin = 8 + int.from_bytes(stored[:8], "little")  # of the first tensor
        (other / "model.safetensors").write_bytes(stored[:begin] + bytes(8) + stored[begin + 8 :])
        refused("is not what this export writes: values of", other)
        renamed = tmp_path / f"renamed-{engine}"
        shutil.copytree(model, renamed)
        refused("was made of another model (source of bundle.json differs)", renamed)
        config = json.loads((other / "config.json").read_text())
        (other / "config.json").write_text(json.dumps({**config, "rms_norm_eps": 0.5}))
        refused("was made of a model with another configuration", other)
    refusal, _ = run(model, tmp_path / "none", "genai", "q8", "--check", "off", "--add")
    assert "has no bundle that a variant could be added to" in refusal
    made(model, tmp_path / "one", "genai", "fp32")
    refusal, _ = run(model, tmp_path / "one", "genai", "q8", "--check", "off", "--add")
    assert "is itself a bundle of one variant" in refusal


@pytest.mark.parametrize("engine", ("transformersjs", "genai"))
def test_a_killed_export_leaves_the_old_bundle(engine: str, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    made(model, out, engine, "fp32,q4")
    made(model, tmp_path / "whole", engine, "fp32,q4,q8")
    old, whole = contents(out), contents(tmp_path / "whole")
    command = [ARGOSY, "export", "onnx", "--model", model, "--for", engine, "--dtype", "q8", "--check", "off", "--add", "-o", out]
    seen = set()
    for delay in (0.02, 0.05, 0.08, 0.11, 0.14, 0.2):
        process = subprocess.Popen(list(map(str, command)), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.wait()
        found = contents(out)
        assert found in (old, whole)
        seen.add(found == whole)
        if found == whole:
            break
    assert False in seen
