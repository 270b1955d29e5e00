"""Models of the Hub, from a server that speaks its API: what is downloaded, when, and what users are told if it fails."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from hub_server import HubServer, hub_server
from lonely_program import copy_program

pytest.importorskip("huggingface_hub", reason="downloads are its work")

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
GOLDEN = REPOSITORY / "tests/capture/version_1.capture"
CONFIGURATION = json.dumps({"model_type": "llama", "architectures": ["LlamaForCausalLM"]}).encode()
SMALL = {
    "config.json": CONFIGURATION,
    "generation_config.json": b"{}",
    "tokenizer.json": b"{}",
    "preprocessor_config.json": b"{}",
    "chat_template.jinja": b"",
    "additional_chat_templates/tool.jinja": b"",
    "README.md": b"# Own",
    "LICENSE.txt": b"",
}
UNWANTED = {
    "modeling_own.py": b"",
    "pytorch_model.bin": b"",
    "pytorch_model.bin.index.json": b"{}",
    "onnx/config.json": b"{}",
    "onnx/model.onnx": b"",
    "original/consolidated.safetensors": b"",
}


def safetensors(tensors: dict[str, bytes]) -> bytes:
    """A file of byte tensors."""
    header, end = {}, 0
    for name, content in tensors.items():
        header[name] = {"dtype": "U8", "shape": [len(content)], "data_offsets": [end, end + len(content)]}
        end += len(content)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(tensors.values())


def plan_of(tensors: dict[str, int], folder: Path) -> Path:
    """A plan that takes byte tensors, given with their lengths, as they are."""
    lines = "".join(f"{name}\tu8\t{length}\n" for name, length in tensors.items())
    weights = [{"name": name, "dtype": "u8", "shape": [length], "sources": [name]} for name, length in tensors.items()]
    plan = {"format": "argosy-weight-plan", "version": 1, "versions": {}, "model_class": "Own", "task": None}
    plan |= {"dtype": "u8", "checkpoint_hash": hashlib.sha256(lines.encode()).hexdigest(), "weights": weights}
    path = folder / "plan.json"
    path.write_text(json.dumps({**plan, "missing": [], "unexpected": []}))
    return path


@dataclass
class Machine:
    """The program on a machine with a Hub's cache of its own. Its Python downloads really; captures are a stand-in's."""

    folder: Path
    hub: HubServer
    home: Path = field(init=False)

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        (self.folder / "empty").mkdir()
        self.program = copy_program(PROGRAM, self.folder)
        self.python = self.folder / "python"
        lines = [
            "#!/bin/sh",
            '[ "$2" = argosy.extensions ] && exit 1',
            f'echo "$@" >> "{self.folder}/starts"',
            'if [ "$2" = argosy.hub ]; then',
            f'  PYTHONPATH="{REPOSITORY}/python" exec "{sys.executable}" "$@"',
            "fi",
            "for last; do :; done",
            f'/bin/cp "{GOLDEN}" "$last"',
        ]
        self.python.write_text("\n".join(lines) + "\n")
        self.python.chmod(0o755)

    @property
    def repository(self) -> Path:
        return self.home / "hub/models--org--name"

    def environment(self, python: bool, **variables: str) -> dict[str, str]:
        result = {"PATH": str(self.folder / "empty"), "HOME": str(self.folder), **self.hub.environment(self.home)}
        if python:
            result["ARGOSY_PYTHON"] = str(self.python)
        return {**result, "ARGOSY_CACHE": str(self.folder / "cache"), **variables}

    def start(self, *arguments: str | Path, python: bool = True, **variables: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.program), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(python, **variables),
        )

    def run(self, *arguments: str | Path, code: int = 0, python: bool = True, **variables: str) -> str:
        """stderr of a run that must end so. What it asked the Hub is in the log alone."""
        self.hub.log.clear()
        process = self.start(*arguments, python=python, **variables)
        output, said = process.communicate(timeout=120)
        assert process.returncode == code, f"exit code {process.returncode}\n{output}\n{said}"
        return said

    def capture(self, *arguments: str | Path, name: str = "org/name", **settings) -> str:
        return self.run("capture", "--model", name, "-o", self.folder / "out.capture", *arguments, **settings)

    def weights(self, tensors: dict[str, int], *arguments: str | Path, **settings) -> str:
        plan = plan_of(tensors, self.folder)
        output = self.folder / "out.safetensors"
        return self.run("weights", "--model", "org/name", "--plan", plan, "-o", output, *arguments, **settings)

    def files(self, commit: str) -> set[str]:
        snapshot = self.repository / "snapshots" / commit
        return {path.relative_to(snapshot).as_posix() for path in snapshot.rglob("*") if path.is_file()}


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with hub_server() as hub:
        yield Machine(tmp_path, hub)


def test_a_capture_downloads_no_weights_and_the_next_asks_nothing(machine: Machine) -> None:
    commit = machine.hub.add("org/name", SMALL | UNWANTED | {"model.safetensors": safetensors({"a": b"1234"})})
    said = machine.capture()
    assert re.search(r"^Downloading the model \(org/name\)… [0-9.]+ s$", said, re.MULTILINE), said
    assert f"argosy: org/name at {commit}, downloaded\n" in said
    assert machine.files(commit) == {"config.json", "generation_config.json"}
    said = machine.capture(python=False)
    assert f"argosy: org/name at {commit}, from the Hub's cache\n" in said and "from the cache" in said
    assert machine.hub.log == []


def test_weights_come_with_what_belongs_to_them(machine: Machine) -> None:
    checkpoint = safetensors({"a": b"1234"})
    commit = machine.hub.add("org/name", SMALL | UNWANTED | {"model.safetensors": checkpoint})
    machine.capture()
    assert "Downloading its weights (org/name)… " in machine.weights({"a": 4})
    assert machine.files(commit) == {*SMALL, "model.safetensors"}
    assert not machine.hub.downloads("config.json"), "what was there is not downloaded again"
    output = machine.folder / "out.safetensors"
    first = output.read_bytes()
    output.unlink()
    machine.weights({"a": 4}, python=False)
    assert machine.hub.log == [] and output.read_bytes() == first
    machine.weights({"a": 4}, python=False, HF_HOME="", HF_HUB_CACHE=str(machine.home / "hub"))


def test_shards_are_those_of_the_index(machine: Machine) -> None:
    index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
    shards = {f"model-{i}.safetensors": safetensors({name: b"1234"}) for i, name in enumerate("abc", 1)}
    files = SMALL | shards | {"model.safetensors.index.json": json.dumps(index).encode()}
    commit = machine.hub.add("org/name", files)
    machine.weights({"a": 4, "b": 4})
    assert machine.files(commit) == set(files) - {"model-3.safetensors"}
    # The blob of a shard is gone, as after a clean-up: only that shard comes again.
    (machine.repository / "snapshots" / commit / "model-2.safetensors").resolve().unlink()
    assert "Downloading 1 of its 2 shards" in machine.weights({"a": 4, "b": 4})
    assert len(machine.hub.downloads(".safetensors")) == 1


def test_an_index_that_leads_elsewhere_brings_nothing(machine: Machine) -> None:
    index = {"weight_map": {"a": "../../../../outside.safetensors"}}
    files = SMALL | {"model.safetensors.index.json": json.dumps(index).encode(), "../outside.safetensors": b"x"}
    machine.hub.add("org/name", files)
    said = machine.weights({"a": 4}, code=1)
    assert "error[not-found]: org/name lacks shards that model.safetensors.index.json names" in said
    assert not list(machine.folder.rglob("outside*"))


def test_code_comes_only_if_it_is_trusted(machine: Machine) -> None:
    configuration = json.dumps({"model_type": "own", "auto_map": {"AutoConfig": "modeling_own.Own"}}).encode()
    commit = machine.hub.add("org/name", SMALL | {"config.json": configuration, "modeling_own.py": b"", "more.py": b""})
    machine.capture()
    assert not any(name.endswith(".py") for name in machine.files(commit))
    assert "Downloading modeling_own.py (org/name)… " in machine.capture("--trust-remote-code")
    assert {"modeling_own.py", "more.py"} < machine.files(commit)
    machine.capture("--trust-remote-code", python=False)
    assert machine.hub.log == []


def test_revisions(machine: Machine) -> None:
    old = machine.hub.add("org/name", {"config.json": CONFIGURATION, "generation_config.json": b"{}"}, "refs/pr/1")
    new = machine.hub.add("org/name", {"config.json": CONFIGURATION})
    assert f"at {old}, downloaded" in machine.capture("--revision", "refs/pr/1")
    assert f"at {new}, downloaded" in machine.capture()
    for revision, commit in (("refs/pr/1", old), (old, old), ("main", new), (new, new)):
        assert f"at {commit}, from the Hub's cache" in machine.capture("--revision", revision, python=False)
    assert f"at {old}, from" in machine.capture("--revision", old, name=str(machine.repository), python=False)
    said = machine.capture("--revision", "v9", code=1)
    assert "error[not-found]: org/name has no revision v9\n" in said and "hint: --revision is a branch" in said
    # A commit that the cache has not.
    newest = machine.hub.add("org/name", {"config.json": CONFIGURATION + b" "})
    assert f"at {new}, from the Hub's cache" in machine.capture(), "a branch is where it was when it was downloaded"
    assert f"at {newest}, downloaded" in machine.capture("--revision", newest)


def test_torch_files_are_taken_where_there_are_no_safetensors(machine: Machine, tmp_path: Path) -> None:
    import torch

    torch.save({"a": torch.arange(4, dtype=torch.uint8)}, tmp_path / "a.bin")
    files = {"config.json": CONFIGURATION, "pytorch_model.bin": (tmp_path / "a.bin").read_bytes(), "training_args.bin": b"\x80"}
    machine.hub.add("org/name", files)
    machine.weights({"a": 4})
    assert machine.hub.downloads("/pytorch_model.bin") and not machine.hub.downloads("/training_args.bin")


def test_other_weights_are_refused(machine: Machine) -> None:
    machine.hub.add("org/name", {"config.json": CONFIGURATION, "tf_model.h5": b"", "own.bin": b""})
    said = machine.weights({"a": 4}, code=1)
    assert "error[unsupported-feature]: org/name has weights in forms that are not read: own.bin, tf_model.h5" in said
    assert "hint: look for a revision with safetensors" in said
    assert not machine.hub.downloads()


def test_errors_say_what_to_do(machine: Machine) -> None:
    machine.hub.add("org/gated", {"config.json": CONFIGURATION}, token="hf_right", gated=True)
    machine.hub.add("org/empty", {"README.md": b""})
    said = machine.capture(name="org/none", code=1)
    assert "error[not-found]: the Hub has no model org/none, or it is private\n  hint: check the name" in said
    said = machine.capture(name="org/gated", code=1)
    assert "error[not-found]: org/gated is gated" in said and "set HF_TOKEN" in said
    said = machine.capture(name="org/gated", code=1, HF_TOKEN="hf_wrong")
    assert "org/gated is gated" in said and "hf_wrong" not in said
    said = machine.capture(name="org/empty", code=1)
    assert "error[unsupported-feature]: org/empty has no config.json" in said
    said = machine.capture(name="org/none", code=1, HF_ENDPOINT="http://127.0.0.1:9")
    assert "error[io]: org/none could not be downloaded from http://127.0.0.1:9: " in said and "hint: check the" in said
    said = machine.capture(name="org/none", code=1, python=False)
    assert "error[not-found]: the Hub's cache lacks the model (org/none), and there is no Python" in said
    said = machine.capture(name="org/none/more", code=1)
    assert 'error[not-found]: there is no folder "org/none/more"' in said


def test_tokens_are_the_hub_s(machine: Machine) -> None:
    machine.hub.add("org/name", {"config.json": CONFIGURATION}, token="hf_secret")
    said = machine.capture("--log-level", "debug", HF_TOKEN="hf_secret")
    assert "hf_secret" not in said and {asked.token for asked in machine.hub.log} == {"hf_secret"}
    shutil.rmtree(machine.home / "hub")
    (machine.home / "token").write_text("hf_secret")
    machine.capture()
    assert {asked.token for asked in machine.hub.log} == {"hf_secret"}


@pytest.mark.parametrize("how", ["--offline", "HF_HUB_OFFLINE"])
def test_offline(machine: Machine, how: str) -> None:
    commit = machine.hub.add("org/name", SMALL | {"model.safetensors": safetensors({"a": b"1234"})})
    arguments = [how] if how.startswith("-") else []
    variables = {} if arguments else {how: "1"}
    said = machine.capture(*arguments, code=1, **variables)
    assert f'the Hub\'s cache in "{machine.home / "hub"}" lacks the model (org/name)' in said
    assert ("leave --offline out" if arguments else "unset HF_HUB_OFFLINE") in said
    assert machine.hub.log == []
    machine.capture()
    assert f"org/name at {commit}, from the Hub's cache" in machine.capture(*arguments, **variables)
    assert "lacks its weights" in machine.weights({"a": 4}, *arguments, code=1, **variables)
    assert machine.hub.log == []


# Parts of ten megabytes are what huggingface_hub writes at a time.
LARGE = safetensors({"a": b"1234", "b": bytes(range(256)) * 100_000})
LARGE_TENSORS = {"a": 4, "b": 25_600_000}


def test_a_broken_connection_is_resumed(machine: Machine) -> None:
    machine.hub.add("org/name", {"config.json": CONFIGURATION, "model.safetensors": LARGE})
    machine.hub.cut["model.safetensors"] = [15 << 20]
    said = machine.weights(LARGE_TENSORS, "--progress", "json")
    assert [asked.range for asked in machine.hub.downloads("model.safetensors")] == [None, f"bytes={10 << 20}-"]
    lines = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    steps = [line for line in lines if line["task"] == "download org/name"]
    assert steps[-1]["finished"] and steps[-1]["bytes_done"] == steps[-1]["bytes_total"] == len(LARGE) + len(
        CONFIGURATION
    )
    done = [step["bytes_done"] for step in steps]
    assert done == sorted(done) and len(done) > 2


def test_a_killed_download_is_resumed_by_the_next(machine: Machine) -> None:
    commit = machine.hub.add("org/name", {"config.json": CONFIGURATION, "model.safetensors": LARGE})
    machine.hub.cut["model.safetensors"] = [11 << 20, *[0] * 100]
    plan = plan_of(LARGE_TENSORS, machine.folder)
    process = machine.start("weights", "--model", "org/name", "--plan", plan, "-o", machine.folder / "out.safetensors")
    while len(machine.hub.downloads("model.safetensors")) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    (children,) = [Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()]
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert process.returncode == 1 and "error[io]: the download failed" in said, said
    assert "model.safetensors" not in machine.files(commit)
    machine.hub.cut.clear()
    machine.weights(LARGE_TENSORS)
    assert [asked.range for asked in machine.hub.downloads("model.safetensors")] == [f"bytes={10 << 20}-"]
    assert (machine.repository / "snapshots" / commit / "model.safetensors").read_bytes() == LARGE
    assert not list(machine.repository.rglob("*incomplete*"))


def test_a_damaged_part_is_not_taken(machine: Machine) -> None:
    commit = machine.hub.add("org/name", {"config.json": CONFIGURATION, "model.safetensors": LARGE})
    machine.capture()
    name = hashlib.sha256(LARGE).hexdigest()
    (machine.repository / "blobs" / f"{name}.argosy-incomplete").write_bytes(b"x" * (10 << 20))
    assert "error[io]: model.safetensors was damaged on its way" in machine.weights(LARGE_TENSORS, code=1)
    machine.weights(LARGE_TENSORS)
    assert (machine.repository / "snapshots" / commit / "model.safetensors").read_bytes() == LARGE
