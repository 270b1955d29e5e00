"""Completion in shells and the manual page, which are made of the command line's own tables."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from cli_tool import REPOSITORY

PROGRAM = os.environ.get("ARGOSY_BIN", str(REPOSITORY / "build/release/apps/cli/argosy"))


def printed(*arguments: str) -> str:
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, check=True).stdout


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "argosy.bash"
    path.write_text(printed("completion", "bash"))
    return path


def completed(script: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words."""
    line = "source \"$0\"; COMP_WORDS=(argosy \"$@\"); COMP_CWORD=$#; _argosy; printf '%s\\n' \"${COMPREPLY[@]}\""
    done = subprocess.run(["bash", "--norc", "-uc", line, str(script), *words], capture_output=True, text=True, check=True)
    assert not done.stderr, done.stderr
    return done.stdout.split()


def test_bash_completes_commands(script: Path) -> None:
    listed = re.findall(r"^  ([a-z]+)  ", printed("--help"), re.MULTILINE)
    assert len(listed) > 10 and sorted(completed(script, "")) == sorted([*listed, "help"])
    assert completed(script, "ex") == ["export", "explain"]
    assert completed(script, "export", "") == ["onnx", "executorch", "pt2"]
    assert completed(script, "help", "export", "o") == ["onnx"]
    assert completed(script, "cache", "e") == ["export"]
    assert completed(script, "completion", "") == ["bash", "zsh", "fish"]


def test_bash_completes_options_of_the_command(script: Path) -> None:
    assert completed(script, "export", "onnx", "--ops") == ["--opset"]
    assert completed(script, "export", "pt2", "--ops") == []
    assert completed(script, "export", "onnx", "--model", "m", "--prog") == ["--progress"]
    # another command of the same name
    assert completed(script, "cache", "export", "--m") == [] and "--output" in completed(script, "cache", "export", "--")


def test_bash_completes_values(script: Path) -> None:
    assert "genai" in completed(script, "export", "onnx", "--for", "")
    assert completed(script, "export", "executorch", "--qlinear", "8da") == ["8da4w", "8da8w"]
    assert completed(script, "doctor", "--progress", "=", "j") == ["json"]
    assert "off" in completed(script, "doctor", "--progress", "=")
    assert "q4f16" in completed(script, "export", "onnx", "--dtype", "")
    # Files are the shell's own business.
    assert completed(script, "export", "onnx", "--model", "") == [] and completed(script, "inspect", "") == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_scripts_are_in_the_shell_s_syntax(shell: str, tmp_path: Path) -> None:
    path = tmp_path / "script"
    path.write_text(printed("completion", shell))
    # Zsh runs the function for bash, so that bash can read it as well. Of fish only fish itself can say it.
    program = shutil.which(shell) or (shutil.which("bash") if shell == "zsh" else None)
    if program is None:
        text = path.read_text()
        assert text.count("'") % 2 == text.count("\\'") % 2 and "-l opset" in text and "-x -a '4w 8a8w 8da4w 8da8w 8w'" in text
        return
    done = subprocess.run([program, "-n", str(path)], capture_output=True, text=True)
    assert done.returncode == 0 and not done.stderr, done.stderr


def test_the_manual_page_has_every_command() -> None:
    page = printed("help", "--man")
    sections = re.findall(r"^\.SS argosy (.*)$", page, re.MULTILINE)
    assert {"export onnx", "cache prune", "completion", "run"} <= set(sections)
    assert page.isascii() and "Store weights of linear layers" in page
    if groff := shutil.which("groff"):
        done = subprocess.run([groff, "-man", "-Tascii", "-ww"], input=page, capture_output=True, text=True)
        assert done.returncode == 0 and not done.stderr and "COMMANDS" in re.sub(".\b", "", done.stdout), done.stderr
