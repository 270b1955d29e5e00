"""The program that captures imports less of transformers, and nothing is missing for it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import transformers
from transformers.utils import import_utils

PROGRAM = """
import json, sys
from argosy.capture.start import import_libraries
import_libraries()
print(json.dumps(sorted(sys.modules)))
sys.path.insert(0, sys.argv[1])
from test_start import found
print(json.dumps(found()))
"""
#: What no capture calls, and takes long to import.
UNUSED = {"scipy", "torchao", "networkx", "torchvision", "sklearn"}


def found() -> list[Any]:
    """What transformers has and what it knows of other packages, here or in the child."""
    models = Path(transformers.__file__).parent / "models"
    exported = [import_utils.define_import_structure(models / name) for name in ("__init__.py", "llama/__init__.py")]
    listed = [sorted([*sorted(needs), name, *sorted(classes)] for needs, parts in each.items() for name, classes in parts.items())
              for each in exported]  # fmt: skip
    packages = ("scipy", "sklearn", "sentencepiece", "tokenizers", "protobuf", "vision", "timm", "bitsandbytes", "torchao", "rich")
    known = {name: getattr(import_utils, f"is_{name}_available")() for name in packages}
    return [listed, known, [import_utils._is_package_available(name) for name in ("numpy", "PIL", "nowhere")]]


def test_a_capture_imports_less_and_finds_the_same() -> None:
    child = subprocess.run([sys.executable, "-c", PROGRAM, str(Path(__file__).parent)], check=True, capture_output=True, text=True)
    imported, there = (json.loads(line) for line in child.stdout.splitlines())
    assert {"torch.export._trace", "transformers.modeling_utils"} <= set(imported)
    assert UNUSED.isdisjoint(imported)
    assert there == json.loads(json.dumps(found()))
