"""A reader's machine for all tests of this folder: the program and the package, a Hub, and one cache for everything."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "e2e"), str(HERE.parent / "bundles"), str(HERE.parent / "warm")]

from hub_server import hub_server  # noqa: E402
from page_run import PROGRAM, REPOSITORY, package_folder, reader_environment  # noqa: E402
from prepared import DECODER  # noqa: E402

#: Where the libraries are: the program may be an installed one, which is not in a build folder.
BUILDS = [PROGRAM.parents[2], *(REPOSITORY / "build" / preset for preset in ("release", "dev"))]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    folder = tmp_path_factory.mktemp("reader")
    with hub_server() as hub:
        hub.add("org/name", DECODER)
        package = package_folder(folder / "package")
        yield reader_environment(package, folder / "cache", folder / "programs", **hub.environment(folder / "home"))


@pytest.fixture(scope="session")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Callable[[], Path]:
    """Installs the C++ library when it is first wanted."""

    @cache
    def installed() -> Path:
        folder = tmp_path_factory.mktemp("cpp") / "prefix"
        build = next(each for each in BUILDS if (each / "cmake_install.cmake").exists())
        command = ["cmake", "--install", build, "--prefix", folder, "--component", "development"]
        done = subprocess.run([str(part) for part in command], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr
        return folder

    return installed
