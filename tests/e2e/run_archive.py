"""Runs an archive as a user of torch does: in a process that cannot import transformers or argosy.

    python run_archive.py ARCHIVE INPUTS.pt OUTPUTS.pt
"""

import json
import os
import sys


class Refuse:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("transformers", "argosy"):
            raise ImportError(f"{name} is not installed")


sys.meta_path.insert(0, Refuse())

import torch  # noqa: E402

archive, inputs, outputs = sys.argv[1:]
extra = {"argosy.json": ""}
program = torch.export.load(archive, extra_files=extra)
with torch.no_grad():
    results = program.module()(**torch.load(inputs))
torch.save({"results": results, "manifest": json.loads(extra["argosy.json"])}, outputs)
sys.stdout.flush()
os._exit(0)
