"""`argosy.export`: the program from Python, with a model of the Hub; and what it raises."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from hub_server import HubServer, hub_server
from warm import warm_python

import argosy
from argosy import ExportError

torch = pytest.importorskip("torch", reason="captures are made with it")
transformers = pytest.importorskip("transformers", reason="captures are made with it")

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()


@pytest.fixture
def environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARGOSY_BIN", str(PROGRAM))
    monkeypatch.setenv("ARGOSY_PYTHON", warm_python())
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY / "python"))
    monkeypatch.setenv("ARGOSY_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def write_model(folder: Path) -> None:
    torch.manual_seed(0)
    sizes = {"hidden_size": 16, "intermediate_size": 32, "num_attention_heads": 2, "vocab_size": 50}
    config = transformers.LlamaConfig(**sizes, num_hidden_layers=2, num_key_value_heads=1)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


RUN = """
import json, sys, torch
sys.modules["transformers"] = sys.modules["argosy"] = None
program = torch.export.load(sys.argv[1])
args, kwargs = program.example_inputs
outputs = program.module()(*args, **kwargs)
print(json.dumps({name: list(value.shape) for name, value in outputs.items()}))
"""


def test_the_first_export_downloads_and_the_second_asks_nothing(
    tmp_path: Path, environment: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_model(tmp_path / "model")
    for name in ("first", "second", "third"):
        (tmp_path / name).mkdir()
    with hub_server() as hub:
        commit = hub.add("org/name", tmp_path / "model")
        for name, value in hub.environment(tmp_path / "home").items():
            monkeypatch.setenv(name, value)
        steps: list[dict] = []
        output = argosy.export("org/name", "pt2", tmp_path / "first/a.pt2", check="off", progress=steps.append)
        assert output == tmp_path / "first/a.pt2" and hub.downloads("model.safetensors")
        tasks = list(dict.fromkeys(step["task"] for step in steps if "task" in step))
        assert tasks[0] == "download org/name" and tasks[-1] == "export a.pt2", tasks
        assert any("stage" in step for step in steps), "progress of the capture is passed on"
        check_requests(hub, tmp_path, monkeypatch)
        output = argosy.export("org/name", "pt2", tmp_path / "third/a.pt2", check="off", revision=commit, offline=True)
        assert output.read_bytes() == (tmp_path / "first/a.pt2").read_bytes()
    done = subprocess.run([sys.executable, "-c", RUN, str(output)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "logits" in json.loads(done.stdout)


def check_requests(hub: HubServer, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second export needs neither the Hub nor Python, and writes the same bytes."""
    hub.log.clear()
    with monkeypatch.context() as context:
        context.setenv("ARGOSY_PYTHON", "/bin/false")
        argosy.export("org/name", "pt2", folder / "second/a.pt2", check="off")
    assert hub.log == []
    assert (folder / "second/a.pt2").read_bytes() == (folder / "first/a.pt2").read_bytes()


def test_errors_have_code_and_hint(tmp_path: Path, environment: None, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ExportError, match="there is no folder") as caught:
        argosy.export(tmp_path / "none", "pt2", tmp_path / "out.pt2")
    assert caught.value.code == "not-found" and caught.value.hint.startswith("check the path")
    assert caught.value.args[0].startswith("there is no folder") and "  hint" not in caught.value.args[0]
    with pytest.raises(ExportError, match="revision") as caught:
        write_model(tmp_path / "model")
        argosy.export(tmp_path / "model", "pt2", tmp_path / "out.pt2", revision="v1")
    assert caught.value.code == "invalid-input"
    with pytest.raises(ExportError, match="no-such-flag") as caught:
        argosy.export(tmp_path / "model", "pt2", tmp_path / "out.pt2", no_such_flag=3)
    assert caught.value.code == "invalid-input"
    with pytest.raises(ExportError, match="the model is a Linear") as caught:
        argosy.export(torch.nn.Linear(1, 1), "pt2", tmp_path / "out.pt2")
    assert "DynamoExporter" in caught.value.hint
    monkeypatch.setenv("ARGOSY_BIN", str(tmp_path / "nothing"))
    with pytest.raises(ExportError, match="there is no program") as caught:
        argosy.export(tmp_path / "model", "pt2", tmp_path / "out.pt2")
    assert caught.value.code == "not-found"
    assert not (tmp_path / "out.pt2").exists()


@pytest.mark.parametrize("said", ["decode differs by 0.5", "error[invalid-input]: decode differs\n  hint: look at it"])
def test_wrong_results_have_a_code_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    program = tmp_path / "argosy"
    program.write_text(f"#!/bin/sh\nprintf '%s\\n' '{said}' >&2\nexit 3\n")
    program.chmod(0o755)
    monkeypatch.setenv("ARGOSY_BIN", str(program))
    with pytest.raises(ExportError, match="decode differs") as caught:
        argosy.export("model", "pt2", tmp_path / "out.pt2")
    assert caught.value.code == "wrong-results"
