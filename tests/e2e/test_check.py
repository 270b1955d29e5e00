"""Checks of exports as users see them: what is right passes and is remembered, what is wrong ends with exit code 3."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from cli_tool import REPOSITORY
from lonely_program import copy_program
from warm import warm_python

for package in ("torch", "transformers"):
    pytest.importorskip(package, reason="checks run the eager model")

import torch  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import LlamaConfig, T5Config  # noqa: E402

from argosy.capture.twin import build  # noqa: E402
from argosy.check.__main__ import main  # noqa: E402

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
COLUMNS = ["component", "call", "shape", "ok", "abs", "rel", ">0.1", ">0.01", "seconds_model", "seconds_program",
           "worst", "tokens", "note"]  # fmt: skip


@dataclass
class Tool:
    """The program with a cache of its own; Python is in sight only where it is given."""

    folder: Path

    def __post_init__(self) -> None:
        self.cache = self.folder / "cache"
        (self.folder / "empty").mkdir()
        self.program = copy_program(PROGRAM, self.folder)  # alone: there is no Python beside it
        self.starts = self.folder / "starts"
        self.python = self.script("python", '"$@"')

    def script(self, name: str, arguments: str) -> Path:
        """A Python that counts its starts."""
        path = self.folder / name
        environment = f'PYTHONPATH="{REPOSITORY / "python"}" OMP_NUM_THREADS=1 TRANSFORMERS_VERBOSITY=error'
        path.write_text(f'#!/bin/sh\necho "$@" >> "{self.starts}"\nexec /usr/bin/env {environment} "{warm_python()}" {arguments}\n')
        path.chmod(0o755)
        return path

    def run(self, *arguments: str | Path, code: int = 0, python: Path | None = None) -> tuple[str, str]:
        variables = {"PATH": str(self.folder / "empty"), "ARGOSY_CACHE": str(self.cache), "HOME": str(self.folder)}
        if python is not None:
            variables["ARGOSY_PYTHON"] = str(python)
        done = subprocess.run([str(self.program), *map(str, arguments)], capture_output=True, text=True, env=variables)
        assert done.returncode == code, f"exit code {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout, done.stderr

    def modules(self) -> list[str]:
        """Those that Python was started with."""
        lines = self.starts.read_text().splitlines() if self.starts.exists() else []
        return [module for line in lines if (module := line.split()[1]) != "argosy.extensions"]


def manifest(archive: Path) -> dict[str, Any]:
    with zipfile.ZipFile(archive) as file:
        return json.loads(file.read(next(name for name in file.namelist() if name.endswith("extra/argosy.json"))))


def changed_graph(archive: Path, to: Path, change: Callable[[list[dict[str, Any]]], None]) -> Path:
    """A copy of an archive with other nodes."""
    with zipfile.ZipFile(archive) as file, zipfile.ZipFile(to, "w", zipfile.ZIP_STORED) as copy:
        for name in file.namelist():
            data = file.read(name)
            if name.endswith("models/model.json"):
                document = json.loads(data)
                change(document["graph_module"]["graph"]["nodes"])
                data = json.dumps(document).encode()
            copy.writestr(name, data)
    return to


def checked(capsys: pytest.CaptureFixture[str], *arguments: str | Path, code: int) -> dict[str, Any]:
    capsys.readouterr()
    assert main([*map(str, arguments), "--json", "--progress", "off"]) == code
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def tool(tmp_path_factory: pytest.TempPathFactory) -> Tool:
    return Tool(tmp_path_factory.mktemp("check"))


@pytest.fixture(scope="module")
def model(tool: Tool) -> Path:
    """A checkpoint in bfloat16, as most are, whose weights make a difference."""
    config = LlamaConfig(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, vocab_size=64)  # fmt: skip
    build(config).to(torch.bfloat16).save_pretrained(tool.folder / "llama")
    return tool.folder / "llama"


@pytest.fixture(scope="module")
def first(tool: Tool, model: Path) -> tuple[Path, str]:
    """The first export, which checks, and what it said."""
    output = tool.folder / "llama.pt2"
    _, said = tool.run("export", "pt2", "--model", model, "-o", output, python=tool.python)
    return output, said


@pytest.fixture(scope="module")
def exported(tool: Tool, model: Path, first: tuple[Path, str]) -> Path:
    """In float32, in which figures are exact. The check of another capture is not remembered, and not asked for."""
    output = tool.folder / "exact.pt2"
    arguments = ["--dtype", "float32", "--check", "off", "-o", output]
    tool.run("export", "pt2", "--model", model, *arguments, python=tool.python)
    return output


# ---- on a twin ----


def test_an_export_is_checked_once_and_then_without_python(tool: Tool, model: Path, first: tuple[Path, str]) -> None:
    output, said = first
    assert "] Verifying against PyTorch on a small random-weight copy… " in said and "check: a small model of this kind" in said
    assert manifest(output)["check"]["kind"] == "twin"
    assert "agrees with PyTorch" in manifest(output)["check"]["compared"]
    assert tool.modules() == ["argosy.capture", "argosy.capture.weight_plan", "argosy.check"]
    (entry,) = [entry for entry in json.loads(tool.run("cache", "ls", "--json")[0])["entries"] if entry["kind"] == "check"]
    assert (entry["model_class"], entry["readable"]) == ("LlamaForCausalLM", True)
    figures = json.loads(Path(entry["path"]).read_text())
    assert figures["ok"] and all(list(row) == COLUMNS for row in figures["rows"])
    calls = {row["call"] for row in figures["rows"]}
    assert calls == {"edge", "generate 0", "generate 1", "generate 2", "greedy", "edge, bfloat16"}
    assert next(row for row in figures["rows"] if row["call"] == "greedy")["tokens"] == [12, 12]
    other = tool.folder / "again"
    _, said = tool.run("export", "pt2", "--model", model, "-o", other)
    assert "check: a small model of this kind" in said and len(tool.modules()) == 3
    assert "[2/3] Verifying against PyTorch on a small random-weight copy… it passed before\n" in said
    assert manifest(other / "decode.pt2")["check"]["kind"] == "twin"


def test_checks_move_with_the_cache_and_what_cannot_be_checked_says_so(
    tool: Tool, model: Path, first: tuple[Path, str]
) -> None:
    archive, output = tool.folder / "cache.zip", tool.folder / "unchecked.pt2"
    tool.run("cache", "export", "-o", archive)
    shutil.rmtree(tool.cache / "checks")
    _, said = tool.run("export", "pt2", "--model", model, "-o", output)
    assert "warning: the export is not checked: there is no Python to check with" in said
    assert manifest(output)["check"] == {"kind": "none", "why": "there is no Python to check with"}
    failing = tool.folder / "failing"
    failing.write_text("#!/bin/sh\necho \"No module named 'torch'\"\nexit 1\n")
    failing.chmod(0o755)
    _, said = tool.run("export", "pt2", "--model", model, "-o", output, python=failing)
    assert "not checked: Python has no torch: pip install 'argosy[torch]'" in said and manifest(output)["check"]["kind"] == "none"
    _, said = tool.run("export", "pt2", "--model", model, "--check", "full", "-o", output, code=1)
    assert "not checked: there is no Python to check with" in said
    assert "1 entry" in tool.run("cache", "import", archive)[0]
    tool.run("export", "pt2", "--model", model, "-o", output)
    assert manifest(output)["check"]["kind"] == "twin"


def test_a_twin_that_is_exported_wrong_fails_the_export(tool: Tool, model: Path, exported: Path) -> None:
    """The twin's exporter is replaced by one that spoils what it writes."""
    spoiler = tool.folder / "spoiler"
    spoiler.write_text(f"""#!{sys.executable}
import json, subprocess, sys, zipfile
done = subprocess.run(["{PROGRAM}", *sys.argv[1:]])
path = sys.argv[sys.argv.index("-o") + 1]
entries = {{}}
with zipfile.ZipFile(path) as file:
    entries = {{name: file.read(name) for name in file.namelist()}}
with zipfile.ZipFile(path, "w") as file:
    for name, data in entries.items():
        file.writestr(name, data.replace(b"aten.sin.default", b"aten.cos.default"))
sys.exit(done.returncode)
""")
    spoiler.chmod(0o755)
    python = tool.script("spoiling", f'"$@" --program "{spoiler}"')
    output = tool.folder / "wrong.pt2"
    # The cache has capture and plan of this dtype, and no check.
    arguments = ["export", "pt2", "--model", model, "--dtype", "float32", "-o", output]
    _, said = tool.run(*arguments, code=3, python=python)
    assert "LlamaForCausalLM in pt2 is wrong in" in said and "decode at 2x19 on 23, 3 padded (edge): " in said
    assert "nothing is written to" in said and not output.exists()
    entries = json.loads(tool.run("cache", "ls", "--json")[0])["entries"]
    assert sum(entry["kind"] == "check" for entry in entries) == 1


# ---- on the model's own weights ----


def test_a_right_export_passes(exported: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    result = checked(capsys, exported, "--against", model, code=0)
    assert result["ok"] and result["tolerance"] == 1e-4
    assert all(list(row) == COLUMNS for row in result["rows"])
    assert {row["call"] for row in result["rows"]} == {"edge", "generate 0", "generate 1", "generate 2", "greedy"}
    assert [row["tokens"] for row in result["rows"] if row["call"] == "greedy"] == [[12, 12]] * 3
    assert all(row["abs"] < 1e-5 for row in result["rows"] if row["call"] != "greedy")
    assert main([str(exported), "--against", str(model), "--calls", "edge", "--progress", "off"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head.split() == "component call shape abs rel >0.1 >0.01 eager s engine s".split()
    assert len(rows) == 4 and "agrees with PyTorch: 3 component calls at edge shapes" in rows[-1]


def lost_mask(nodes: list[dict[str, Any]]) -> None:
    for node in nodes:
        if "scaled_dot_product_attention" in node["target"]:
            node["inputs"] = [each for each in node["inputs"] if each["name"] != "attn_mask"]


def wrong_constant(nodes: list[dict[str, Any]]) -> None:
    """The norms' epsilon, 1e-2 instead of 1e-6."""
    found = [each for node in nodes if node["target"].endswith("add.Scalar") for each in node["inputs"]
             if each["arg"].get("as_float") == 1e-6]  # fmt: skip
    assert found
    for each in found:
        each["arg"]["as_float"] = 1e-2


@pytest.mark.parametrize("change", [lost_mask, wrong_constant])
def test_a_wrong_graph_is_found(
    exported: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], change: Callable
) -> None:
    archive = changed_graph(exported, tmp_path / "wrong.pt2", change)
    result = checked(capsys, archive, "--against", model, "--calls", "edge,observed", code=3)
    assert not result["ok"]
    wrong = [row for row in result["rows"] if row["ok"] is False]
    assert wrong and all(row["note"].endswith(f"off by {row['abs']:.2g}") for row in wrong)


def test_a_graph_that_does_not_run_is_wrong(exported: Path, model: Path, tmp_path: Path, capsys: Any) -> None:
    def change(nodes: list[dict[str, Any]]) -> None:
        node = next(node for node in nodes if node["target"].endswith("aten.transpose.int"))
        node["inputs"][1]["arg"] = {"as_int": 0}

    archive = changed_graph(exported, tmp_path / "wrong.pt2", change)
    result = checked(capsys, archive, "--against", model, "--calls", "edge", code=3)
    assert any(row["abs"] is None and "Error" in row["note"] for row in result["rows"])


def test_wrong_weights_are_found_and_near_ties_are_told(
    exported: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    weights = load_file(model / "model.safetensors")
    other = tmp_path / "other"
    shutil.copytree(model, other)
    one, two = (f"model.layers.{i}.self_attn.q_proj.weight" for i in (0, 1))
    save_file({**weights, one: weights[two].clone(), two: weights[one].clone()}, other / "model.safetensors", {"format": "pt"})
    result = checked(capsys, exported, "--against", other, code=3)
    assert all(row["ok"] is False for row in result["rows"])
    assert all(row["tokens"][0] < 12 and "apart" in row["note"] for row in result["rows"] if row["call"] == "greedy")

    # Two words that are all but the same: which of them is best is a matter of chance.
    head = weights["lm_head.weight"].float()
    exact = {name: tensor.float() for name, tensor in weights.items()}
    head = head[torch.arange(64) // 2 * 2]
    for folder, sign in (("one", 1.0), ("two", -1.0)):
        shutil.copytree(model, tmp_path / folder)
        shifted = head.clone()
        shifted[::2] *= 1 + sign * 2e-6
        save_file({**exact, "lm_head.weight": shifted}, tmp_path / folder / "model.safetensors", {"format": "pt"})
    archive = tmp_path / "one.pt2"
    export_again(exported, tmp_path / "one", archive)
    result = checked(capsys, archive, "--against", tmp_path / "two", "--calls", "greedy", code=0)
    assert any("near tie" in (row["note"] or "") for row in result["rows"])


def export_again(exported: Path, model: Path, output: Path) -> None:
    """Another checkpoint of the same names, with the capture and the plan of the tool's cache."""
    cache = exported.parent / "cache"
    variables = {**os.environ, "ARGOSY_CACHE": str(cache), "ARGOSY_PYTHON": str(exported.parent / "python")}
    command = [PROGRAM, "export", "pt2", "--model", model, "--dtype", "float32", "--check", "off", "-o", output]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr


def test_a_full_check_decides_whether_there_is_an_export(
    tool: Tool, model: Path, first: tuple[Path, str], tmp_path: Path
) -> None:
    output = tmp_path / "out"
    arguments = ["export", "pt2", "--model", model, "--check", "full", "-o", output]
    _, said = tool.run(*arguments, python=tool.python)
    assert "Verifying against PyTorch with the model's own weights… " in said and "check: this model with its own weights agrees with PyTorch: " in said
    assert manifest(output / "decode.pt2")["check"]["kind"] == "full"
    entries = json.loads(tool.run("cache", "ls", "--json")[0])["entries"]
    plans = [json.loads(Path(entry["path"]).read_text()) for entry in entries if entry["kind"] == "plan"]
    plan = next(plan for plan in plans if plan["dtype"] == "bf16")
    one, two = (next(each for each in plan["weights"] if each["name"] == f"model.layers.{i}.mlp.up_proj.weight") for i in (0, 1))
    one["sources"], two["sources"] = two["sources"], one["sources"]
    (tmp_path / "swapped.json").write_text(json.dumps(plan))
    single = shutil.copy(first[0], tmp_path / "single.pt2")
    arguments = [*arguments[:-1], single, "--plan", tmp_path / "swapped.json"]
    _, said = tool.run(*arguments, code=3, python=tool.python)
    assert "the export differs from the model" in said and "(edge): " in said
    assert single.read_bytes() == first[0].read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "single.pt2", "swapped.json"]


def test_the_command_passes_table_and_exit_code_on(tool: Tool, exported: Path, model: Path, tmp_path: Path) -> None:
    archive = changed_graph(exported, tmp_path / "wrong.pt2", lost_mask)
    stdout, _ = tool.run("check", archive, "--against", model, "--calls", "edge", code=3, python=tool.python)
    assert "WRONG: " in stdout and "of 3 calls are wrong" in stdout
    assert "there is no Python to check with" in tool.run("check", exported, "--against", model, code=1)[1]
    tool.run("check", exported, code=2)


def test_an_encoder_and_its_decoder(tool: Tool, capsys: pytest.CaptureFixture[str]) -> None:
    T5Config(d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4, vocab_size=64).save_pretrained(tool.folder / "t5")
    arguments = ["--twin", tool.folder / "t5", "--program", PROGRAM, "--shape", "batch=1,sequence=1..4"]
    result = checked(capsys, *arguments, code=0)
    rows = {(row["component"], row["call"]) for row in result["rows"]}
    assert rows >= {("encoder", "edge"), ("encoder", "generate 0"), ("decoder", "edge"), ("decoder", "generate 2")}
    assert [row["tokens"] for row in result["rows"] if row["call"] == "greedy"] == [[12, 12]]
    shapes = [row["shape"] for row in result["rows"] if (row["component"], row["call"]) == ("decoder", "edge")]
    assert shapes[0] == "1x4 on 23, 3 padded" and all(shape.startswith("1x") for shape in shapes)


def test_what_is_no_export_is_refused(tmp_path: Path, model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "x.pt2", "w") as file:
        file.writestr("x/archive_format", "pt2")
    assert main([str(tmp_path / "absent.pt2"), "--against", str(model)]) == 1
    assert "error[not-found]: there is no " in capsys.readouterr().err
    assert main([str(tmp_path / "x.pt2"), "--against", str(model)]) == 1
    assert "has no extra/argosy.json" in capsys.readouterr().err
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path / "x.pt2")])
    assert ended.value.code == 2
