"""The layer check itself: an upward include or import, a circle and a stray third-party header must make it fail."""
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).resolve().parent.parent / "tools" / "check_layers.py"


def run(root: Path) -> tuple[int, str]:
    done = subprocess.run([sys.executable, TOOL, root], capture_output=True, text=True)
    return done.returncode, done.stdout


def make(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_this_repository_is_in_order():
    code, output = run(TOOL.parent.parent)
    assert code == 0, output


@pytest.mark.parametrize(
    "name, include, complaint",
    [
        ("src/base/x.h", '#include "ir/graph.h"', "layer base may not include ir/graph.h (layer ir)"),
        ("src/ir/x.cpp", '#include "io/json.h"', "layer ir may not include io/json.h (layer io)"),
        ("src/passes/x.cpp", '  #  include "backends/pt2/writer.h"', "layer passes may not include"),
        ("src/frontends/pt2/x.cpp", '#include "passes/pass.h"', "layer frontends may not include"),
        ("src/ir/x.h", "#include <simdjson.h>", "includes simdjson.h, which belongs to src/io/json only"),
        ("src/misc/x.h", "", "belongs to no known layer"),
    ],
)
def test_rejects(tmp_path, name, include, complaint):
    make(tmp_path, "src/base/error.h", "")
    assert run(tmp_path)[0] == 0
    make(tmp_path, name, include)
    code, output = run(tmp_path)
    assert code == 1
    assert complaint in output


@pytest.mark.parametrize(
    "files, complaint",
    [
        (
            {"src/base/a.h": '#include "base/b.h"', "src/base/b.h": '#include "base/a.h"'},
            "a circle: src/base/a.h -> src/base/b.h -> src/base/a.h",
        ),
        (
            {"python/argosy/run/a.py": "from . import b", "python/argosy/run/b.py": "def f():\n    from .a import g"},
            "a circle: argosy.run.a -> argosy.run.b -> argosy.run.a",
        ),
        ({"python/argosy/check/a.py": "from ..exporters import b", "python/argosy/exporters/b.py": ""}, "check may not import"),
        ({"python/argosy/check/a.py": "def f():\n    from sweeps.twins import main"}, "the package may not import sweeps"),
        ({"python/argosy/new/a.py": ""}, "belongs to no known part of the package"),
    ],
)
def test_rejects_circles_and_imports_that_point_upwards(tmp_path, files, complaint):
    for name, text in files.items():
        make(tmp_path, name, text)
    code, output = run(tmp_path)
    assert code == 1
    assert complaint in output
