"""The cache of captures as users see it: hits without Python, one capture for many processes, keys that miss nothing."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from cli_tool import REPOSITORY
from lonely_program import copy_program
from warm import cpu_seconds, warm_python

PROGRAM = Path(os.environ.get("ARGOSY_BIN", REPOSITORY / "build/release/apps/cli/argosy")).absolute()
GOLDEN = REPOSITORY / "tests/capture/version_1.capture"

CONFIGURATION = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 64,
    "rms_norm_eps": 1e-5,
    "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0},
}


def write_model(folder: Path, **changes: object) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "config.json").write_text(json.dumps({**CONFIGURATION, **changes}))
    return folder


@dataclass
class Tool:
    """The program with a cache of its own, no Python in sight, and a stand-in where one is asked for: a script that
    counts its starts and copies the golden capture."""

    folder: Path

    def __post_init__(self) -> None:
        self.cache = self.folder / "cache"
        self.log = self.folder / "starts"
        (self.folder / "empty").mkdir()
        # alone in its folder, so that there is no Python beside it
        self.program = copy_program(PROGRAM, self.folder)
        self.stand_in = self.script(f'cp "{GOLDEN}" "$last"')

    def script(self, last_line: str) -> Path:
        path = self.folder / f"python-{len(list(self.folder.iterdir()))}"
        has_no_extensions = '[ "$2" = argosy.extensions ] && exit 1'
        lines = ["#!/bin/sh", "PATH=/usr/bin:/bin", has_no_extensions, f'echo "$@" >> "{self.log}"', "for last; do :; done", last_line]
        path.write_text("\n".join(lines) + "\n")
        path.chmod(0o755)
        return path

    def starts(self) -> int:
        return len(self.log.read_text().splitlines()) if self.log.exists() else 0

    def environment(self, python: Path | None) -> dict[str, str]:
        variables = {"PATH": str(self.folder / "empty"), "ARGOSY_CACHE": str(self.cache), "HOME": str(self.folder)}
        return variables if python is None else {**variables, "ARGOSY_PYTHON": str(python)}

    def start(self, *arguments: str | Path, python: Path | None = None) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [str(self.program), *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=self.environment(python),
        )

    def run(self, *arguments: str | Path, code: int = 0, python: Path | None = None) -> tuple[str, str]:
        process = self.start(*arguments, python=python)
        stdout, stderr = process.communicate(timeout=120)
        assert process.returncode == code, f"exit code {process.returncode}\n{stdout}\n{stderr}"
        return stdout, stderr

    def capture(self, model: Path, *arguments: str | Path, code: int = 0, python: Path | None = None) -> str:
        """stderr of a capture into out.capture."""
        output = self.folder / "out.capture"
        return self.run("capture", "--model", model, "-o", output, *arguments, code=code, python=python)[1]

    def entries(self) -> list[dict]:
        return json.loads(self.run("cache", "ls", "--json")[0])["entries"]


@pytest.fixture
def tool(tmp_path: Path) -> Tool:
    return Tool(tmp_path)


def test_a_miss_starts_python_and_says_so_and_a_hit_does_not(tool: Tool, tmp_path: Path) -> None:
    said = tool.capture(write_model(tmp_path / "a"), "--task", "text-generation", python=tool.stand_in)
    assert re.search(r"^Tracing llama for text-generation \(first time\)… [0-9.]+ s$", said, re.MULTILINE), said
    assert "\x1b" not in said and str(tool.stand_in) not in said
    assert (tmp_path / "out.capture").read_bytes() == GOLDEN.read_bytes()
    assert "--model" in tool.log.read_text() and "--task text-generation" in tool.log.read_text()
    (tmp_path / "out.capture").unlink()
    said = tool.capture(write_model(tmp_path / "b"), "--task", "text-generation")
    assert "from the cache" in said and "torch" in said
    assert (tmp_path / "out.capture").read_bytes() == GOLDEN.read_bytes()
    assert tool.starts() == 1


def test_without_python_a_miss_is_an_error_with_a_hint(tool: Tool, tmp_path: Path) -> None:
    said = tool.capture(write_model(tmp_path / "a"), code=1)
    assert said.startswith("error[not-found]: the cache has no capture of this model, and there is no Python")
    assert "hint: install Python with argosy, torch and transformers" in said
    assert not (tmp_path / "out.capture").exists()


def test_why_python_failed_is_a_line_and_the_rest_a_file(tool: Tool, tmp_path: Path) -> None:
    failing = tool.script("echo first >&2; echo 'error: no such layer' >&2; exit 7")
    said = tool.capture(write_model(tmp_path / "a"), code=1, python=failing)
    log = tool.cache / "logs" / "argosy.capture.log"
    assert f'no capture was made: no such layer\n  hint: all that Python said is in "{log}"\n' in said
    assert log.read_text() == f"{failing} -m argosy.capture ended with 7\nfirst\nerror: no such layer\n"
    assert "failed after" in said and "Traceback" not in said
    assert tool.entries() == []
    missing = tool.script("echo Traceback; echo \"ModuleNotFoundError: No module named 'torch'\"; exit 1")
    said = tool.capture(tmp_path / "a", code=1, python=missing)
    needs = f"error[not-found]: the first export of an architecture needs torch and transformers, and {missing} has no torch\n"
    assert f"{needs}  hint: pip install 'argosy[torch]', or name another Python" in said and "Traceback" not in said
    absent = tmp_path / "nothing"
    assert f'ARGOSY_PYTHON is "{absent}", which is no program' in tool.capture(tmp_path / "a", code=1, python=absent)


def test_what_cannot_be_read_never_enters_the_cache(tool: Tool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "a")
    said = tool.capture(model, code=1, python=tool.script('echo nonsense > "$last"'))
    assert "error[" in said and "what was just made for the cache" in said
    assert tool.entries() == []
    assert not list(tool.cache.glob("captures/*/*")) and not list(tool.cache.glob("captures/*/.*"))


def test_ten_processes_at_once_leave_one_valid_entry(tool: Tool, tmp_path: Path) -> None:
    slow = tool.script(f'sleep 1; cp "{GOLDEN}" "$last"')
    models = [write_model(tmp_path / f"m{i}", _name_or_path=f"m{i}") for i in range(10)]
    outputs = [tmp_path / f"{i}.capture" for i in range(10)]
    running = [
        tool.start("capture", "--model", model, "-o", output, python=slow)
        for model, output in zip(models, outputs, strict=True)
    ]
    said = [process.communicate(timeout=60)[1] for process in running]
    assert [process.returncode for process in running] == [0] * 10, said
    assert tool.starts() == 1
    assert len(tool.entries()) == 1
    assert {output.read_bytes() for output in outputs} == {GOLDEN.read_bytes()}
    assert sum("another process makes the same capture" in text for text in said) > 0


def test_a_killed_process_blocks_nobody(tool: Tool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "a")
    hanging = tool.script('echo half > "$last"; sleep 60')
    process = tool.start("capture", "--model", model, "-o", tmp_path / "x.capture", python=hanging)
    while not list(tool.cache.glob("captures/*/.*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    start = time.monotonic()
    tool.capture(model, python=tool.stand_in)
    assert time.monotonic() - start < 30, "it waited for the process that was killed"
    assert len(tool.entries()) == 1
    assert not list(tool.cache.glob("captures/*/.*")), "what the killed process left is still there"
    process.stdout.close()
    process.stderr.close()


def test_a_damaged_entry_is_passed_over(tool: Tool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "a")
    tool.capture(model, python=tool.stand_in)
    (path,) = tool.cache.glob("captures/*/*.capture")
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)
    assert "is damaged and not used" in tool.capture(model, python=tool.stand_in)
    assert (tmp_path / "out.capture").read_bytes() == GOLDEN.read_bytes()
    assert tool.starts() == 2


def test_recapture_makes_a_new_entry(tool: Tool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "a")
    tool.capture(model, python=tool.stand_in)
    assert "Tracing LlamaForCausalLM (anew, about 1 s)… " in tool.capture(model, "--recapture", python=tool.stand_in)
    assert tool.starts() == 2


def test_the_way_of_tracing_is_passed_on_and_changes_no_key(tool: Tool, tmp_path: Path) -> None:
    model = write_model(tmp_path / "a")
    tool.capture(model, "--trace", "whole", python=tool.stand_in)
    assert "--trace whole" in tool.log.read_text()
    assert "from the cache" in tool.capture(model)
    tool.capture(model, "--trace", "stamped", "--recapture", python=tool.stand_in)
    assert "--trace" not in tool.log.read_text().splitlines()[-1]


# ---- keys ----


def ignored_fields() -> list[str]:
    """The list in C++; Python leaves the same ones out of a capture."""
    source = (REPOSITORY / "src/cache/capture_key.cpp").read_text()
    return re.findall(r'"(\w+)"', re.search(r"kIgnored = \{(.*?)\}", source, re.S).group(1))


def test_both_languages_leave_out_the_same_fields() -> None:
    pytest.importorskip("torch", reason="the package's own list is beside code that needs it")
    from argosy.capture.configuration import IGNORED_FIELDS

    assert sorted(ignored_fields()) == sorted(IGNORED_FIELDS)


def test_fields_that_do_not_matter_hit(tool: Tool, tmp_path: Path) -> None:
    tool.capture(write_model(tmp_path / "a", text_config={"n": 1}), python=tool.stand_in)
    for field in ignored_fields():
        assert "from the cache" in tool.capture(write_model(tmp_path / "b", text_config={"n": 1}, **{field: "other"}))
        assert "from the cache" in tool.capture(write_model(tmp_path / "b", text_config={"n": 1, field: "other"}))
    reordered = json.dumps(dict(reversed({**CONFIGURATION, "text_config": {"n": 1}}.items())), indent=3)
    (tmp_path / "b/config.json").write_text(reordered.replace("1e-05", "0.00001"))
    assert "from the cache" in tool.capture(tmp_path / "b")


@pytest.mark.parametrize(
    "changes",
    [
        {"rms_norm_eps": 1e-6},
        {"image_token_id": 5},
        {"architectures": ["LlamaModel"]},
        {"dtype": "bfloat16"},
        {"rope_parameters": {"rope_type": "default", "rope_theta": 20000.0}},
        {"pad_token_id": 0},
        {"tie_word_embeddings": True},
        {"num_key_value_heads": 4},
        {"some_field_that_nobody_knows": None},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_fields_that_matter_miss(tool: Tool, tmp_path: Path, changes: dict) -> None:
    tool.capture(write_model(tmp_path / "a"), python=tool.stand_in)
    tool.capture(write_model(tmp_path / "b", **changes), code=1)


@pytest.mark.parametrize(
    "arguments", [["--task", "feature-extraction"], ["--shape", "batch=1"], ["--prefill"]], ids=str
)
def test_options_that_matter_miss(tool: Tool, tmp_path: Path, arguments: list[str]) -> None:
    model = write_model(tmp_path / "a")
    tool.capture(model, python=tool.stand_in)
    tool.capture(model, *arguments, code=1)
    tool.capture(model, *arguments, python=tool.stand_in)
    assert all(argument in tool.log.read_text() for argument in arguments)


def test_models_are_found_in_the_hub_s_cache(tool: Tool, tmp_path: Path) -> None:
    repository = tmp_path / ".cache/huggingface/hub/models--org--name"
    (repository / "snapshots").mkdir(parents=True)
    (repository / "blobs").mkdir()
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("rev")
    blob = write_model(tmp_path / "a") / "config.json"
    (repository / "blobs/hash").write_text(blob.read_text())
    (repository / "snapshots/rev").mkdir()
    (repository / "snapshots/rev/config.json").symlink_to("../../blobs/hash")
    tool.capture(tmp_path / "a", python=tool.stand_in)
    for name in (repository / "snapshots/rev", repository, Path("org/name")):
        assert "from the cache" in tool.capture(name)


# ---- argosy cache ----


def test_entries_are_listed_exported_imported_and_pruned(tool: Tool, tmp_path: Path) -> None:
    tool.capture(write_model(tmp_path / "a"), python=tool.stand_in)
    tool.capture(write_model(tmp_path / "b", rms_norm_eps=1.0), python=tool.stand_in)
    keys = [entry["key"] for entry in tool.entries()]
    assert len(set(keys)) == 2
    text, _ = tool.run("cache", "ls")
    assert all(key[:12] in text for key in keys) and f"{tool.cache}: 2 entries" in text
    text, _ = tool.run("cache", "ls", "--long")
    assert "Golden" in text and "transformers" in text
    tool.run("cache", "export", keys[0][:8], "-o", tmp_path / "one.zip")
    tool.run("cache", "export", "-o", tmp_path / "all.zip")
    assert tool.run("cache", "prune")[0] == "removed: 0 entries, 0 B\n"
    tool.run("cache", "prune", "--all")
    assert tool.entries() == []
    assert "1 entry" in tool.run("cache", "import", tmp_path / "one.zip")[0]
    assert [entry["key"] for entry in tool.entries()] == keys[:1]
    assert "1 entry" in tool.run("cache", "import", tmp_path / "all.zip")[0]
    assert "from the cache" in tool.capture(tmp_path / "a") and "from the cache" in tool.capture(tmp_path / "b")
    copied = tmp_path / "elsewhere"
    shutil.copytree(tool.cache, copied)
    tool.run("cache", "prune", "--all")
    tool.run("cache", "import", copied)
    assert len(tool.entries()) == 2


def test_entries_are_called_after_the_first_model_and_have_ages(tool: Tool, tmp_path: Path) -> None:
    hub = tmp_path / "hub/models--org--a-name-that-is-longer-than-a-column-may-be/snapshots/rev"
    hub.mkdir(parents=True)
    tool.capture(write_model(tmp_path / "base"), python=tool.stand_in)
    tool.capture(write_model(tmp_path / "fine-tune"))
    tool.capture(write_model(hub, rms_norm_eps=1.0), python=tool.stand_in)
    entries = {entry["name"]: entry for entry in tool.entries()}
    assert set(entries) == {"base", "org/a-name-that-is-longer-than-a-column-may-be"}
    assert all(0 <= entry["age_seconds"] < 60 for entry in entries.values())
    for name, age in (("base", 7 * 60), (hub.parents[1].name[8:].replace("--", "/"), 3 * 86400 + 5)):
        os.utime(entries[name]["path"], (time.time() - age,) * 2)
    lines = tool.run("cache", "ls")[0].splitlines()
    assert lines[0].split() == ["kind", "key", "first", "made", "for", "size", "age"]
    rows = {line.split()[2]: line for line in lines[1:3]}
    assert rows["base"].endswith("  7 minutes") and rows["org/a-name-that-is-longer-tha…"].endswith("  3 days")
    assert max(map(len, lines[:3])) <= 80
    # The same capture under another name is the same: names are beside the files.
    assert str(tmp_path) not in (Path(entries["base"]["path"]).parent / "name.txt").read_text()
    tool.run("cache", "prune", "--all")
    assert not list((tool.cache / "captures").iterdir())


def test_wrong_imports_and_exports_are_errors(tool: Tool, tmp_path: Path) -> None:
    assert "error[" in tool.run("cache", "import", GOLDEN, code=1)[1]
    assert "error[not-found]" in tool.run("cache", "export", "abc", "-o", tmp_path / "x.zip", code=1)[1]
    tool.run("cache", code=2)
    assert tool.entries() == []


# ---- with the real Python ----


@pytest.fixture
def real_python(tool: Tool) -> Path:
    for package in ("torch", "transformers"):
        pytest.importorskip(package, reason="captures are made with it")
    script = tool.folder / "real-python"
    sources = REPOSITORY / "python"
    variables = f'PYTHONPATH="{sources}" OMP_NUM_THREADS=1'
    script.write_text(f'#!/bin/sh\nexec /usr/bin/env {variables} "{warm_python()}" "$@"\n')
    script.chmod(0o755)
    return script


def test_a_real_capture_does_not_depend_on_what_the_key_leaves_out(
    tool: Tool, tmp_path: Path, real_python: Path
) -> None:
    tool.capture(write_model(tmp_path / "a"), python=real_python)
    first = (tmp_path / "out.capture").read_bytes()
    others = {name: {"quant_method": "fp8"} if name.endswith("_config") else "other" for name in ignored_fields()}
    changed = write_model(tmp_path / "b", **others)
    start = cpu_seconds()
    assert "LlamaForCausalLM" in tool.capture(changed)
    assert cpu_seconds() - start < 0.3
    tool.capture(changed, "--recapture", python=real_python)
    assert (tmp_path / "out.capture").read_bytes() == first
    assert len(tool.entries()) == 1


def test_a_checkpoint_s_plan_is_cached_too(tool: Tool, tmp_path: Path, real_python: Path) -> None:
    import torch
    import transformers
    from safetensors import safe_open

    torch.manual_seed(0)
    config = transformers.MixtralConfig(**{**CONFIGURATION, "num_local_experts": 2, "architectures": None})
    model = transformers.MixtralForCausalLM(config)
    for name in ("a", "b"):
        model.save_pretrained(tmp_path / name)
    output = tmp_path / "out.safetensors"
    _, said = tool.run("weights", "--model", tmp_path / "a", "-o", output, python=real_python)
    assert "Planning the weights of MixtralForCausalLM (first time)… " in said
    first = output.read_bytes()
    with safe_open(output, "pt") as file:
        assert {name: list(file.get_tensor(name).shape) for name in file.keys()} == {
            name: list(tensor.shape) for name, tensor in model.state_dict().items()
        }
    output.unlink()
    tool.run("weights", "--model", tmp_path / "b", "-o", output)
    assert output.read_bytes() == first
    (entry,) = tool.entries()
    assert (entry["kind"], entry["model_class"]) == ("plan", "MixtralForCausalLM")
    model.to(torch.bfloat16).save_pretrained(tmp_path / "b")
    assert "error[not-found]" in tool.run("weights", "--model", tmp_path / "b", "-o", output, code=1)[1]
