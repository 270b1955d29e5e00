"""What the Dockerfile does is what the gate does, and its image has the libraries that the program is linked with."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PROGRAM = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy")).absolute()
RUN = re.findall(r"^RUN (.*)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
#: Every image of Debian has these, apt needs them.
BASE = {"libc", "libgcc_s", "libm", "libstdc++", "ld-linux-x86-64", "ld-linux-aarch64"}


def packages(run: str) -> set[str]:
    return set(re.search(r"--no-install-recommends ([^&]*)", run)[1].split())


def test_commands_are_those_of_the_gate() -> None:
    gate = (ROOT / ".ci/run").read_text()
    commands = [part.strip() for run in RUN if "apt-get" not in run for part in run.split("&&")]
    assert len(commands) == 6
    for command in commands:
        assert command.removeprefix("/argosy/") in gate, command


@pytest.mark.skipif(not PROGRAM.exists(), reason="the program is not built")
def test_the_image_has_the_libraries_of_the_program() -> None:
    # An installed program opens a library beside it.
    files = [PROGRAM, *PROGRAM.parents[1].glob("lib*/libargosy.so*")]
    said = "".join(subprocess.run(["readelf", "-d", file], capture_output=True, text=True, check=True).stdout for file in files)
    needed = set(re.findall(r"Shared library: \[([\w+-]+)\.so\.?(\d*)", said))
    wanted = {"zlib1g" if name == "libz" else name + version for name, version in needed if name not in {*BASE, "libargosy"}}
    assert "libfmt9" in wanted
    final = packages(RUN[-2])
    assert wanted == final - {"python3"}
    assert not final & packages(RUN[0])
