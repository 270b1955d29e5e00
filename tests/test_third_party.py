"""What is compiled into packages: each library is pinned, and comes with its licence."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def words(name: str, file: str) -> list[str]:
    """Those of a list ``name=(…)`` in a shell script."""
    found = re.search(rf"^{name}=\((.*?)\)", (ROOT / file).read_text(), re.MULTILINE | re.DOTALL)
    assert found
    return found[1].split()


SOURCES = dict(entry.split("=") for entry in words("sources", "tools/third_party"))
HEADERS = dict(reversed(entry.split("=")) for entry in words("headers", "tools/third_party"))


def test_libraries_of_the_build_are_collected_with_their_licences() -> None:
    build = (ROOT / "cmake/third_party.cmake").read_text().lower()
    targets = re.findall(r"^argosy_third_party\(argosy_(\w+)", build, re.MULTILINE)
    headers = re.findall(r"^set\((\w+)_include_dir", build, re.MULTILINE)
    collected = {name.lower(): name for name in (*SOURCES, *HEADERS)}
    other = {"fmt": "fmtlib", "cli11": "cli", "tl_expected": "tl", "sodium": "libsodium"}
    assert {other.get(name, name) for name in (*targets, *headers)} == set(collected)
    licensed = set(words("libraries", "tools/test_wheel"))
    assert {name.replace("fmtlib", "fmt").replace("libsodium", "sodium") for name in collected.values()} <= licensed


def test_their_packages_are_pinned() -> None:
    pinned = {line.split("=")[0] for line in (ROOT / "tools/debian-packages.txt").read_text().splitlines()}
    assert {*SOURCES.values(), *HEADERS.values()} <= pinned
    files = ("pyproject.toml", "tools/requirements.txt", "tools/wheel-requirements.txt")
    versions = [re.findall(r"nanobind==([\d.]+)", (ROOT / file).read_text()) for file in files]
    assert versions[0] and versions[0] == versions[1] == versions[2]
