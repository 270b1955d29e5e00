"""Engines of others' packages: the sample of examples/extension, and packages whose engines do not do what they should."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path

import onnxruntime
import pytest
from cli_tool import REPOSITORY
from exporter_tool import PROGRAM
from test_extensions import Extended, install, write_package
from test_registered_schemes import SAVE

#: Each returns what its name says.
ODD = """
import os
from argosy import register_engine

print("this is no answer")


@register_engine("second", base="optimum")
def second(bundle):
    print("nor is this")
    return {"second.txt": "\\n".join(sorted(os.listdir(bundle.folder)))}


def register(name, function):
    function.__qualname__ = name
    register_engine(name)(function)


def end(bundle):
    os._exit(3)


register("outside", lambda bundle: {"a.txt": "", "../outside.txt": "a"})
register("overwriting", lambda bundle: {"config.json": "{}"})
register("numbered", lambda bundle: {"a.txt": 5})
register("listed", lambda bundle: ["a.txt"])
register("failing", lambda bundle: {"a.txt": bundle.manifest["no such key"]})
register("ending", end)
"""


@pytest.fixture(scope="module")
def odd(tmp_path_factory: pytest.TempPathFactory) -> Extended:
    folder = tmp_path_factory.mktemp("odd")
    source = write_package(folder / "source", "odd-engines", ODD)
    return Extended(PROGRAM, folder / "cache", folder / "none", "onnx", [install(source, folder / "packages")])


@pytest.fixture(scope="module")
def model(odd: Extended, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("model")
    odd.python("-c", SAVE, folder)
    return folder


def test_a_package_s_engine_gets_its_files(model: Path, tmp_path: Path) -> None:
    shutil.copytree(REPOSITORY / "examples/extension", tmp_path / "source")
    packages = install(tmp_path / "source", tmp_path / "packages")
    sample = Extended(PROGRAM, tmp_path / "cache", tmp_path / "none", "onnx", [packages])
    out = tmp_path / "out"
    _, said = sample.run("export", "onnx", "--model", model, "--for", "sample_server", "--check", "off", out)
    manifest = json.loads((out / "bundle.json").read_text(encoding="utf-8"))
    assert manifest["registered_engine"] == {"name": "sample_server", "package": "argosy-sample", "version": "0.1.0"}
    assert manifest["engine"] == "plain" and "--for=sample_server" in manifest["options"]
    assert [each["file"] for each in manifest["graphs"]] == ["network.onnx"]
    assert {"server.json", "data/vocabulary.bin", "network.onnx"} <= set(manifest["files"])
    [graph] = json.loads((out / "server.json").read_text())["graphs"]
    assert graph["sha256"] == hashlib.sha256((out / "network.onnx").read_bytes()).hexdigest()
    assert "input_ids" in graph["inputs"] and (out / "data/vocabulary.bin").read_bytes() == b"\x40\0\0\0"
    assert "logits" in [each.name for each in onnxruntime.InferenceSession(out / "network.onnx").get_outputs()]
    there = {each.relative_to(out).as_posix() for each in out.rglob("*") if each.is_file()}
    assert there - set(manifest["files"]) <= {"bundle.json"}

    # An export replaces what one wrote, with all of its files.
    sample.run("export", "onnx", "--model", model, "--for", "sample_server", "--check", "off", out)
    assert sample.json("lint", out)["engine"] == "sample_server"
    with (out / "network.onnx").open("ab") as file:
        file.write(b"\x00")
    done = sample.run("lint", out, code=3)[0]
    assert "error[sample_server] network.onnx: is not the graph that server.json lists; export the model again" in done
    settings = json.loads((out / "config.json").read_text())
    del settings["eos_token_id"]
    (out / "config.json").write_text(json.dumps(settings))
    assert "warning[sample_server] config.json: no text ends by itself" in sample.run("lint", out, code=3)[0]
    # Without the package, the rest is looked at, and this is said.
    plain = Extended(PROGRAM, tmp_path / "cache", tmp_path / "none", "onnx")
    said = plain.run("lint", out, code=3)
    assert "sample_server of argosy-sample 0.1.0 is not asked" in said[1] and "error[sample_server]" not in said[0]


def test_an_engine_is_based_on_another_and_is_checked_like_it(odd: Extended, model: Path, tmp_path: Path) -> None:
    _, said = odd.run("export", "onnx", "--model", model, "--for", "second", tmp_path / "out")
    assert "agrees with PyTorch" in said, said
    manifest = json.loads((tmp_path / "out/bundle.json").read_text(encoding="utf-8"))
    assert manifest["engine"] == "optimum" and manifest["registered_engine"]["name"] == "second"
    listed = (tmp_path / "out/second.txt").read_text().split()
    assert {"bundle.json", "config.json", "model.onnx"} <= set(listed)  # all was there when it was asked


@pytest.mark.parametrize(
    ("engine", "said"),
    [
        ("outside", "the engine 'outside' returns a file '../outside.txt', which is no name inside the bundle"),
        ("overwriting", "returns the file 'config.json', which the bundle has already"),
        ("numbered", "returns int for the file 'a.txt', not text or bytes"),
        ("listed", "returns list, not files by their names"),
        ("failing", "the engine 'failing' fails at odd_engines.py:"),
        ("ending", 'the Python process of the engine "ending" has ended'),
    ],
)
def test_an_engine_that_does_not_fit_is_an_error_and_nothing_is_written(
    odd: Extended, model: Path, tmp_path: Path, engine: str, said: str
) -> None:
    found = odd.run("export", "onnx", "--model", model, "--for", engine, "--check", "off", tmp_path / "out", code=1)[1]
    assert said in found and "Traceback" not in found and "no answer" not in found, found
    assert not os.listdir(tmp_path)


def test_a_name_that_nobody_has_is_told_from_those_that_there_are(odd: Extended, model: Path, tmp_path: Path) -> None:
    command = ("export", "onnx", "--model", model, "--check", "off", tmp_path / "out", "--for")
    found = odd.run(*command, "sekond", code=1)[1]
    assert '"sekond" is not one of genai, transformersjs, optimum, plain' in found
    assert "installed packages have engines ending, failing" in found
    for more in (("--dtype", "fp32,fp16"), ("--add", "--dtype", "fp16")):
        assert "package" in odd.run(*command, "second", *more, code=1)[1]
    assert "takes a folder" in odd.run(*command[:-2], tmp_path / "model.onnx", "--for", "second", code=1)[1]
    assert not os.listdir(tmp_path)
