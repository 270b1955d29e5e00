"""The real MiniLM, exported for transformers.js and run in a page in headless Chromium, beside PyTorch.

    python tests/bundles/minilm_in_browser.py --program build/release/apps/cli/argosy --model FOLDER --modules NODE_MODULES \
        [--screenshot docs/images/minilm-in-a-page.png]

FOLDER is a checkpoint of sentence-transformers/all-MiniLM-L6-v2. Needs Node 20 and Chromium.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from transformers import AutoModel, AutoTokenizer

SCRIPT = Path(__file__).parent / "js" / "browser.mjs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--modules", type=Path, required=True)
    parser.add_argument("--screenshot", type=Path)
    parser.add_argument("--browser", default="chromium")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="argosy-page-") as folder:
        bundle = Path(folder) / "minilm"
        subprocess.run([options.program, "export", "onnx", "--model", options.model, "--for", "transformersjs", "-o", bundle], check=True)
        command = ["node", "--experimental-websocket", str(SCRIPT), "--modules", str(options.modules), "--bundle", str(bundle), "--browser", options.browser]
        if options.screenshot:
            command += ["--screenshot", str(options.screenshot)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    result = json.loads(done.stdout)
    batch = AutoTokenizer.from_pretrained(options.model)(result["texts"], padding=True, return_tensors="pt")
    with torch.no_grad():
        hidden = AutoModel.from_pretrained(options.model).eval()(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].float()
    expected = (hidden * mask).sum(1) / mask.sum(1)
    cosine = torch.nn.functional.cosine_similarity(torch.tensor(result["vectors"]), expected).min().item()
    print(f"transformers.js {result['version']} in {options.browser}: {len(result['texts'])} sentences, cosine at least {cosine:.7f}")
    return 0 if cosine >= 0.9999 else 1


if __name__ == "__main__":
    sys.exit(main())
