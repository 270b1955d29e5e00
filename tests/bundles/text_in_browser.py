"""The trained decoder of tests/fixtures, exported for transformers.js with ``--device webgpu``, generates text in a page in headless
Chromium, on WebGPU; greedy tokens beside PyTorch's.

    python tests/bundles/text_in_browser.py [--program build/release/apps/cli/argosy] [--modules NODE_MODULES] [--tokens 32]
        [--screenshot docs/images/text-on-webgpu.png]

Needs Node 20, transformers.js (tools/setup installs it) and Chromium, whose software device SwiftShader stands in for a GPU.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

import torch
from node_modules import node, node_modules
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).parents[2]
MODEL = ROOT / "tests/fixtures/trained-decoder"
SCRIPT = Path(__file__).parent / "js/browser.mjs"
PROMPT = "The library reads"


def eager_tokens(prompt: str, count: int) -> tuple[list[int], list[int], float]:
    """Of the prompt and of its continuation, and the least distance between the best token's logit and the next one's."""
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32).eval()
    ids = AutoTokenizer.from_pretrained(MODEL)(prompt, return_tensors="pt").input_ids
    model.generation_config.eos_token_id = None
    with torch.no_grad():
        made = model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, do_sample=False, output_scores=True,
                              return_dict_in_generate=True)  # fmt: skip
    top = torch.stack(made.scores).topk(2, dim=-1).values
    return ids[0].tolist(), made.sequences[0, ids.shape[1] :].tolist(), float((top[..., 0] - top[..., 1]).min())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n", 1)[0])
    parser.add_argument("--program", default=str(ROOT / "build/release/apps/cli/argosy"))
    parser.add_argument("--modules", type=Path, default=node_modules())
    parser.add_argument("--browser", default="chromium")
    parser.add_argument("--prompt", default=PROMPT)
    parser.add_argument("--tokens", type=int, default=32)
    parser.add_argument("--seconds", type=int, default=300)
    parser.add_argument("--screenshot", type=Path)
    options = parser.parse_args()
    if options.modules is None:
        parser.error("--modules: where @huggingface/transformers is")
    prompt, expected, margin = eager_tokens(options.prompt, options.tokens)
    with tempfile.TemporaryDirectory(prefix="argosy-page-") as folder:
        bundle = Path(folder) / "decoder"
        subprocess.run([options.program, "export", "onnx", "--model", MODEL, "--for", "transformersjs", "--device", "webgpu", "-o", bundle], check=True)
        command = [node() or "node", "--experimental-websocket", str(SCRIPT), "--modules", str(options.modules), "--bundle", str(bundle),
                   "--browser", options.browser, "--page", "text_page.html", "--name", "decoder", "--webgpu", "--seconds", str(options.seconds),
                   "--query", json.dumps({"prompt": options.prompt, "tokens": str(options.tokens)})]  # fmt: skip
        if options.screenshot:
            command += ["--screenshot", str(options.screenshot)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(done.stdout + done.stderr)
    result = json.loads(done.stdout)
    same = result["prompt"] == prompt and result["tokens"] == expected
    on_gpu = result["device"] == "webgpu" and result["submits"] > 0 and result["pipelines"] > 0
    print(f"transformers.js {result['version']} in {options.browser}, {result['device']} on {result['adapter']}: {result['pipelines']} shaders, "
          f"{result['submits']} submissions, {len(result['tokens'])} tokens in {result['seconds']:.1f} s")  # fmt: skip
    print(f"{options.prompt}|{result['text']}")
    print(f"greedy tokens {'are' if same else 'are not'} those of PyTorch (least margin {margin:.4f})")
    if not same:
        print(f"  PyTorch: {prompt} {expected}\n  page:    {result['prompt']} {result['tokens']}")
    if not on_gpu:
        print("nothing was computed on the GPU")
    return 0 if same and on_gpu else 1


if __name__ == "__main__":
    sys.exit(main())
