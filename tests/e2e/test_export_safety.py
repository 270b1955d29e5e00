"""What users have is never deleted, what is not the model's is never copied, and what is typed wrong is refused before work
that takes time."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from export_kill import MAKE_LLAMA
from exporter_tool import Exporter, make_exporter, save_twins


@pytest.fixture(scope="module")
def exporter(tmp_path_factory: pytest.TempPathFactory) -> Exporter:
    return make_exporter(tmp_path_factory.mktemp("export"), "onnx")


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """70 MB: large enough that something happens while they are written."""
    model = tmp_path_factory.mktemp("small") / "model"
    subprocess.run([sys.executable, MAKE_LLAMA, "17m", model], check=True)
    return model


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_twins(tmp_path_factory.mktemp("twins"), "llama", "bert")


def once_writing_begins(folder: Path, act: Callable[[], object]) -> threading.Thread:
    """Calls ``act`` when the temporary folder of an export appears in ``folder``."""

    def watch() -> None:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            if any(path.name.endswith(".argosy-tmp") for path in folder.iterdir()):
                act()
                return
            time.sleep(0.001)

    thread = threading.Thread(target=watch)
    thread.start()
    return thread


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def test_a_file_that_is_saved_while_an_export_runs_stays(exporter: Exporter, small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exporter.export(small, out)
    for name, text in (("notes.txt", "mine"), ("empty.txt", ""), ("README.md", "my own words")):
        before = contents(out)
        watcher = once_writing_begins(tmp_path, lambda name=name, text=text: (out / name).write_text(text))
        said = exporter.export(small, out, code=1)
        watcher.join()
        assert name in said, said
        assert (out / name).read_text() == text
        assert {key: data for key, data in contents(out).items() if key != name} == {
            key: data for key, data in before.items() if key != name
        }
        assert [path.name for path in tmp_path.iterdir()] == ["out"]
        if name != "README.md":
            (out / name).unlink()
    exporter.export(small, out)  # what a manifest lists is the export's again, once nobody changes it meanwhile
    assert (out / "README.md").read_text() != "my own words"


def test_empty_files_and_folders_are_the_user_s(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    exporter.export(twins / "llama", out)
    (out / "empty").touch()
    assert '"empty"' in exporter.export(twins / "llama", out, code=1)
    (out / "empty").unlink()
    (out / "folder").mkdir()
    assert '"folder"' in exporter.export(twins / "llama", out, code=1)
    assert (out / "folder").is_dir()


def test_data_of_somebody_else_is_not_replaced(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    data = tmp_path / "model.onnx.data"
    data.write_text("mine")
    said = exporter.export(twins / "llama", tmp_path / "model.onnx", code=1)
    assert "model.onnx.data" in said and "belongs to no export" in said
    assert data.read_text() == "mine" and [path.name for path in tmp_path.iterdir()] == [data.name]


def test_links_out_of_the_model_s_folder_are_not_followed(exporter: Exporter, twins: Path, tmp_path: Path) -> None:
    model, secret = tmp_path / "model", tmp_path / "secret"
    shutil.copytree(twins / "llama", model)
    secret.write_text("of this machine")
    (model / "NOTICE").symlink_to(secret)
    said = exporter.export(model, tmp_path / "out")
    assert "NOTICE is left out" in said
    assert not (tmp_path / "out/NOTICE").exists()
    assert b"of this machine" not in b"".join(contents(tmp_path / "out").values())
    for name in ("generation_config.json", "config.json", "model.safetensors"):
        kept = tmp_path / name
        (model / name).rename(kept)
        (model / name).symlink_to(kept)
        said = exporter.export(model, tmp_path / "out", code=1)
        assert name in said and "leads out of its folder" in said
        (model / name).unlink()
        kept.rename(model / name)
    (tmp_path / "link").symlink_to(model)  # the folder itself may be one
    exporter.export(tmp_path / "link", tmp_path / "out")


@pytest.mark.parametrize(
    ("backend", "arguments", "text"),
    [
        ("onnx", ("--memory", "1KB"), "is not enough"),
        ("onnx", ("--shape", "batch:1"), "is not a size of a dim"),
        ("onnx", ("--for", "transformersjs", "--weights", "link"), "data files of its own"),
        ("onnx", ("--for", "optimum", "--dtype", "bf16"), "no bfloat16"),
        ("executorch", ("--task", "text-generaton"), "is not a task"),
        ("executorch", ("--max-seq-len", "64"), "--max-seq-len says something of a task"),
        ("executorch", ("--qlinear", "8da4w", "--qlinear-group-size", "48"), "fits no layer"),
        ("executorch", ("--qlinear", "8da4w", "--qlinear-group-size", "4096"), "fits no weight"),
        ("executorch", ("--qlinear", "8da4w", "--recipe", "portable"), "by XNNPACK alone"),
        ("executorch", ("--qlinear-group-size", "32"), "which is not given"),
    ],
)
def test_what_flags_and_headers_show_is_refused_at_once(
    twins: Path, tmp_path: Path, backend: str, arguments: tuple[str, ...], text: str
) -> None:
    said = make_exporter(tmp_path, backend).export(twins / "llama", *arguments, tmp_path / "out", code=1)
    assert text in said
    assert "Tracing" not in said and "Planning" not in said, "Python was asked first"


@pytest.mark.parametrize(
    ("backend", "model", "arguments", "texts"),
    [
        ("onnx", "bert", ("--shape", "batsh=1"), ("no dim 'batsh'", "batch, sequence")),
        ("executorch", "bert", ("--shape", "batsh=1"), ('no dim "batsh"', "batch, sequence")),
        ("onnx", "bert", ("--shape", "batch=0"), ("'batch' no size",)),
        ("onnx", "bert", ("--for", "genai"), ("consists of model",)),
        ("executorch", "bert", ("--task", "text2text-generation"), ("needs a component encoder",)),
    ],
)
def test_what_components_show_is_refused_before_they_are_traced(
    twins: Path, tmp_path: Path, backend: str, model: str, arguments: tuple[str, ...], texts: tuple[str, ...]
) -> None:
    exporter = make_exporter(tmp_path, backend)
    said = exporter.export(twins / model, *arguments, tmp_path / "out", "--log-level", "info", code=1)
    assert all(text in said for text in texts), said
    assert "tracing model" not in said and "writing" not in said
    assert not list((tmp_path / "cache").rglob("*.capture"))
