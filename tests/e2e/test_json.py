"""--json: every command that has a result says it as one object on stdout too, and what it says to people stays on stderr."""

from __future__ import annotations

import json
import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from warm import warm_python

pytest.importorskip("torch", reason="captures and checks are made with it")
pytest.importorskip("onnxruntime_genai", reason="a bundle is run in it")

PROGRAM = os.environ.get("ARGOSY_BIN", str(REPOSITORY / "build/release/apps/cli/argosy"))
MODEL = REPOSITORY / "tests/fixtures/trained-decoder"
PROGRAM_TEXT = """\
schema aten::neg(Tensor self) -> Tensor
graph (%x: f32[4]) {
  %y: f32[4] = aten.neg.default(self=%x)
  return %y
}
"""
WRONG_TEXT = PROGRAM_TEXT.replace("self=%x", "self=none")

#: What is called in a folder that has the files of `place`, and the members that the object then has besides those of all.
COMMANDS = {
    "export onnx": ("--model model --for genai --check off again",
                    "output is_folder model model_class engine files total_bytes components checks is_verified next"),
    "export executorch": ("--model model --task text-generation --check off pte", "output engine files is_verified next"),
    "export pt2": ("--model model --dry-run x.pt2", "dry_run output model checkpoint_bytes is_exact free_disk_bytes"),
    "capture": ("--model model -o x.capture", "output bytes from_cache key model_class task torch transformers"),
    "weights": ("--model model -o x.safetensors", "output bytes weights unused notes"),
    "explain": ("out", "path graphs"),
    "inspect": ("out", "graphs"),
    "run": ("out --prompt x --max-new-tokens 2 --temperature 1 --seed 3",
            "text engine engine_version prompt_tokens new_tokens opening_seconds generation_seconds seed"),
    "check": ("out --against model --tokens 2", "ok kind engine model_class summary rows"),
    "lint": ("out", "engine errors warnings graphs files findings"),
    "push": ("out org/name --dry-run", "folder repository revision dry_run files total_bytes title"),
    "sweep": ("jobs.jsonl -o swept", "folder table page jobs ended different"),
    "cache ls": ("", "cache entries total_bytes"),
    "cache prune": ("--dry-run", "dry_run removed total_bytes"),
    "cache export": ("-o cache.zip", "output exported total_bytes"),
    "cache import": ("one.zip", "cache added total_bytes"),
    "cache keygen": ("another-key", "output public_key"),
    "cache push": ("shared --sign key", "output public_key pushed total_bytes"),
    "cache pull": ("--registry shared", "cache added total_bytes"),
    "doctor": ("", "argosy python packages abilities"),
    "opt": ("a.ir --passes=verify", "nodes passes output program"),
    "replay": ("a.repro", "outcome"),
}  # fmt: skip
#: Other forms of them.
FORMS = {
    "lint --list-rules": "rules",
    "opt --list-passes": "passes",
    "opt --golden golden.ir": "golden_files failed",
    "opt a.ir -o b.ir": "nodes passes output",
}
#: What fails, and with which code.
FAILURES = {
    "export onnx --model none --for genai x": "not-found",
    "export pt2 --model model --min-agreement 1 x.pt2": "invalid-input",
    "capture --model none -o y.capture": "not-found",
    "weights --model none -o y.safetensors": "not-found",
    "explain none": "not-found",
    "inspect none": "not-found",
    "run none --prompt x": "not-found",
    "check none --against model --tokens 2": "not-found",
    "lint none": "not-found",
    "push none org/name": "not-found",
    "sweep none": "not-found",
    "cache export abc -o y.zip": "not-found",
    "cache import none": "not-found",
    "cache keygen key": "io",
    "cache pull --registry none": "not-found",
    "cache push shared --sign none": "not-found",
    "opt none": "not-found",
    "replay none": "not-found",
}


@dataclass(frozen=True)
class Place:
    folder: Path
    environment: dict[str, str]

    def call(self, line: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([PROGRAM, *line.split()], cwd=self.folder, env=self.environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=600)  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Place:
    folder = tmp_path_factory.mktemp("json")
    (folder / "model").symlink_to(MODEL)
    (folder / "a.ir").write_text(PROGRAM_TEXT)
    (folder / "jobs.jsonl").write_text('{"model": "model", "options": {"for": "genai"}, "check": "off"}\n')
    (folder / "wrong.ir").write_text(WRONG_TEXT)
    (folder / "golden.ir").write_text(f"# passes: eliminate-dead-code\n{PROGRAM_TEXT}# ---- expect\n{PROGRAM_TEXT}")
    own = {"ARGOSY_CACHE": str(folder / "cache"), "ARGOSY_PYTHON": warm_python(), "PYTHONPATH": str(REPOSITORY / "python"),
           "ARGOSY_REGISTRY_KEYS": str(folder / "keys.txt")}  # fmt: skip
    made = Place(folder, {**os.environ, **own})
    done = made.call("export onnx --model model --for genai --check off out")
    assert done.returncode == 0, done.stderr
    assert made.call("cache export -o one.zip").returncode == 0
    (folder / "keys.txt").write_text(made.call("cache keygen key").stdout)
    assert made.call("cache push shared --sign key").returncode == 0
    made.call("opt wrong.ir --passes=verify --repro-dir a.repro")
    (folder / "a.repro/program.ir").write_text(PROGRAM_TEXT)
    return made


@pytest.mark.parametrize("command", COMMANDS)
def test_a_result_is_one_object(place: Place, command: str) -> None:
    arguments, members = COMMANDS[command]
    done = place.call(f"{command} {arguments} --json")
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert not set(members.split()) - set(found)
    if command != "inspect":  # its object is of the file alone, the same each time
        assert next(iter(found)) == "command" and found["command"] == command
        assert found["exit_code"] == 0 and found["seconds"] >= 0 and "error" not in found


@pytest.mark.parametrize("form", FORMS)
def test_other_forms_are_objects_too(place: Place, form: str) -> None:
    done = place.call(f"{form} --json")
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"] == 0
    assert set(FORMS[form].split()) == set(found) - {"command", "seconds", "exit_code"}


@pytest.mark.parametrize("line", FAILURES)
def test_a_failure_is_an_object_with_the_error(place: Place, line: str) -> None:
    done = place.call(f"{line} --json")
    assert done.returncode == 1, done.stdout + done.stderr
    found = json.loads(done.stdout)
    assert set(found) == {"command", "seconds", "exit_code", "error"} and found["exit_code"] == 1
    assert line.startswith(found["command"]) and set(found["error"]) == {"code", "message", "hint"}
    assert found["error"]["code"] == FAILURES[line]
    assert f"error[{FAILURES[line]}]: {found['error']['message']}\n" in done.stderr


def test_what_the_object_says_is_so(place: Place) -> None:
    found = json.loads(place.call("export onnx --model model --for genai --check off said --json").stdout)
    assert found["output"] == "said" and found["is_folder"] and found["engine"] == "genai"
    for file in found["files"]:
        assert (place.folder / file["path"]).is_file()
    assert found["total_bytes"] == sum(file["bytes"] for file in found["files"])
    assert found["checks"][0]["kind"] == "off" and not found["is_verified"]
    assert found["next"].startswith("argosy run said ")
    weights = json.loads(place.call("weights --model model -o own.safetensors --json").stdout)
    assert weights["bytes"] == (place.folder / "own.safetensors").stat().st_size
    entries = json.loads(place.call("cache ls --json").stdout)["entries"]
    assert {entry["name"] for entry in entries} == {"model"} and all(0 <= entry["age_seconds"] < 3600 for entry in entries)
    spoilt = place.call("opt wrong.ir --passes=verify --json")
    assert spoilt.returncode == 1 and json.loads(spoilt.stdout)["error"]["message"] in spoilt.stderr


def test_a_bundle_with_errors_is_a_result_that_is_wrong(place: Place) -> None:
    (place.folder / "empty").mkdir()
    (place.folder / "empty/bundle.json").write_text('{"engine": "genai", "files": ["model.onnx"]}')
    done = place.call("lint empty --json")
    found = json.loads(done.stdout)
    assert done.returncode == found["exit_code"] == 3 and found["errors"] > 0 and "error" not in found


def test_every_command_is_tested_here_and_listed_in_the_docs() -> None:
    page = subprocess.run([PROGRAM, "help", "--man"], capture_output=True, text=True, check=True).stdout
    commands = {part.splitlines()[0] for part in page.split(".SS argosy ")[1:] if re.search(r"^\.B .*\\-\\-json", part, re.MULTILINE)}
    assert commands == set(COMMANDS)
    listed = (REPOSITORY / "docs/how-to/scripts.md").read_text()
    missing = [command for command, (_, members) in COMMANDS.items()
               if f"`{command}`" not in listed or any(f"`{member}`" not in listed for member in members.split())]  # fmt: skip
    assert not missing
