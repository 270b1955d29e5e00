"""The table of schemas that rules add nodes by is what its tool writes from the installed torch."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HEADER = ROOT / "src" / "passes" / "aten_schemas.h"


def check(header: Path) -> int:
    tool = [sys.executable, str(ROOT / "tools" / "write_aten_schemas.py"), "--check", "--header", str(header)]
    return subprocess.run(tool, check=False).returncode


def test_is_what_torch_says():
    assert check(HEADER) == 0


def test_finds_another_text(tmp_path):
    changed = tmp_path / "aten_schemas.h"
    changed.write_text(HEADER.read_text().replace("Scalar alpha=1", "Scalar alpha=2", 1))
    assert check(changed) == 1


def test_every_schema_is_used():
    sources = [path for path in (ROOT / "src").rglob("*.cpp")] + [path for path in (ROOT / "tests").rglob("*.cpp")]
    used = set(re.findall(r"aten::(k\w+)", "".join(path.read_text() for path in sources)))
    assert set(re.findall(r"string_view (k\w+)", HEADER.read_text())) - used == set()


def test_no_schema_is_typed_by_hand():
    sources = [path for folder in ("passes", "backends") for path in (ROOT / "src" / folder).rglob("*.[ch]*")]
    typed = {
        f"{path.name}: {text}"
        for path in sources
        if path != HEADER and not path.name.endswith("_test.cpp")
        for text in re.findall(r'"(aten::[\w.]+\()', path.read_text())
    }
    assert typed == set()


def test_structures_are_what_captures_have():
    import torch
    import transformers.integrations.moe  # noqa: F401 - registers the op

    import argosy.capture.attention  # noqa: F401 - registers the op

    ops = {"attention": torch.ops.argosy.attention, "experts": torch.ops.transformers.grouped_mm_fallback}
    recognised_only = {"rotary"}  # no capture has it
    for path in (ROOT / "src/passes/structures").glob("*.cpp"):
        if path.stem not in recognised_only and (schema := re.search(r"k\w*Schema =([^;]*);", path.read_text())):
            text = "".join(re.findall(r'"([^"]*)"', schema[1]))
            # In a graph of a capture a number is one that is known.
            assert text == str(ops.pop(path.stem).default._schema).replace("SymInt", "int"), path.name
    assert not ops
