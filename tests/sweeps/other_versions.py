"""Captures and checks a few families on other versions of transformers, each in a folder of its own beside this environment.

    python tests/sweeps other-versions [VERSION ...]

Needs pip and a package index; torch is the one that is installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from . import ROOT

VERSIONS = ("4.57.6", "5.13.0")
FAMILIES = ("llama", "bert", "t5", "llava")
#: What each major version of transformers needs that this environment has in another version.
COMPANIONS = {
    "4": ["huggingface_hub<1.0", "tokenizers>=0.22,<=0.23.0"],
    "5": ["huggingface_hub>=1.5,<2.0", "tokenizers>=0.22,<=0.23.0"],
}

CHECK = """
import os, sys, tempfile
import transformers
from transformers import CONFIG_MAPPING
from argosy.check.captures import compare, edge_shapes
from argosy.capture.reader import read_capture
from argosy.capture.session import open_session, trace_session, write_session
from argosy.capture.twin import shrink

name = sys.argv[1]
session = open_session(shrink(CONFIG_MAPPING[name]()))
trace_session(session)
path = os.path.join(tempfile.mkdtemp(), "x.capture")
write_session(session, path, {})
graphs = read_capture(path, session.twin.state_dict())
results = [compare(each, graphs[each.name], session.twin, shape) for each in session.components for shape in edge_shapes(each)]
bad = [result for result in results if not result.ok]
parts = ",".join(each.name for each in session.components)
print(f"transformers {transformers.__version__} {name}: {parts}: {len(results) - len(bad)} of {len(results)} shapes equal eager")
for result in bad:
    print("  ", result)
sys.stdout.flush()
os._exit(bool(bad))
"""


def main(arguments: list[str]) -> int:
    failed = 0
    for version in arguments or VERSIONS:
        with tempfile.TemporaryDirectory() as folder:
            install = [sys.executable, "-m", "pip", "install", "--quiet", "--target", folder]
            subprocess.run([*install, "--no-deps", f"transformers=={version}"], check=True)
            subprocess.run([*install, *COMPANIONS[version.split(".")[0]]], check=True, stderr=subprocess.DEVNULL)
            environment = {**os.environ, "PYTHONPATH": f"{folder}:{ROOT / 'python'}", "TRANSFORMERS_VERBOSITY": "error"}
            for family in FAMILIES:
                failed += subprocess.run([sys.executable, "-c", CHECK, family], env=environment).returncode != 0
    return failed
