"""What `argosy lint` says of bundles for ONNX Runtime GenAI is what the engine says of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from lint_bundles import MAKERS, genai, genai_config, write_json
from lint_cases import CASES, Case
from test_lint import findings

pytest.importorskip("onnxruntime_genai")

# Opens each bundle and generates a few tokens; the errors go to stdout, one a line. In a process of its own, since the
# engine is given what it does not expect.
WORKER = """
import json, sys
import onnxruntime_genai as og

def run(folder):
    model = og.Model(folder)
    og.Tokenizer(model)
    generator = og.Generator(model, og.GeneratorParams(model))
    generator.append_tokens([3, 4, 5])
    for _ in range(3):
        if not generator.is_done():
            generator.generate_next_token()

for folder in json.load(sys.stdin):
    try:
        run(folder)
        print(json.dumps(""))
    except Exception as error:
        print(json.dumps(str(error) or "error"))
    sys.stdout.flush()
"""

# Errors of lint that the engine does not stumble over itself: files that it does not read, and wrong results.
SILENT = {
    "graph-unreadable-link",
    "json-unreadable-array",
    "external-data-missing-attribute",
    "genai-eos-",
    "genai-eos-pad",
    "genai-eos-more",
}

TYPES = """chatglm decoder ernie4_5 gemma gemma2 gemma3 gemma3_text gemma3_vl_text gemma4 gemma4_text gemma4_unified gpt2
gptoss granite granitemoehybrid hunyuandensev1 internlm2 lfm2 lfm2_audio lfm2_audio_text lfm2_moe lfm2_vl lfm2_vl_text llama
mistral mistral3 mistral3_text nemotron olmo phi phi3 phi3small phi3v phi4mm phimoe qwen2 qwen2_5_vl qwen2_5_vl_text qwen3
qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_vl qwen3_vl_text smollm3 videochat_flash_qwen whisper fara
parakeet_tdt nemotron_speech marian-ssru mixtral cohere cohere2 falcon bloom gptj gpt_neox opt starcoder2 stablelm olmo2
qwen2_moe qwen3_moe gpt_oss foo""".split()

# Keys with a value of the right kind, of a wrong one, or that are not known.
KEYS = [
    ("model", "bos_token_id", 1),
    ("model", "bos_token_id", None),
    ("model", "bos_token_id", "1"),
    ("model", "eos_token_id", [1, 2]),
    ("model", "eos_token_id", None),
    ("model", "image_token_id", 3),
    ("model", "head_dim", 3),
    ("model", "tokenizer_dir", "."),
    ("model", "torch_dtype", "float32"),
    ("model", "num_hidden_layers", 2),
    ("model", "vision", {}),
    ("model", "audio", {}),
    ("model.decoder", "head_size", 4),
    ("model.decoder", "head_size", None),
    ("model.decoder", "sliding_window", None),
    ("model.decoder", "sliding_window", {"window_size": 4}),
    ("model.decoder", "layer_types", ["full_attention"]),
    ("model.decoder", "inputs", {"input_ids": "input_ids"}),
    ("model.decoder", "inputs", {"decoder_input_ids": "input_ids"}),
    ("model.decoder", "inputs", {"cross_past_key_names": "past_key_cross_%d"}),
    ("model.decoder", "outputs", {"logits": "logits"}),
    ("model.decoder", "outputs", {"past_key_names": "x"}),
    ("model.decoder", "rope_theta", 10000.0),
    ("search", "top_k", 50),
    ("search", "top_k", None),
    ("search", "do_sample", 1),
    ("search", "max_new_tokens", 20),
    ("search", "temperature", 0.5),
    ("search", "pad_token_id", 0),
]


def ask_engine(folders: list[Path]) -> list[str]:
    """What the engine complains of, empty where it runs."""
    command = [sys.executable, "-c", WORKER]
    given = json.dumps([str(folder) for folder in folders])
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def lint_rules_of(folder: Path) -> set[str]:
    return {each["rule"] for each in findings(folder, "--for", "genai")[1]}


def test_errors_are_what_the_engine_refuses(tmp_path: Path) -> None:
    def make(number: int, case: Case) -> Path:
        folder = tmp_path / str(number) / "bundle"
        MAKERS[case.bundle](folder)
        case.spoil(folder)
        return folder

    cases = [case for case in CASES if case.bundle == "genai"]
    folders = [make(number, case) for number, case in enumerate(cases)]
    genai(tmp_path / "good")
    complaints = ask_engine([tmp_path / "good", *folders])
    assert complaints[0] == ""
    for case, folder, complaint in zip(cases, folders, complaints[1:], strict=True):
        has_errors = findings(folder, "--for", "genai")[0] == 3
        is_silent = f"{case.rule}-{case.name}" in SILENT
        # A warning may be of something that the engine refuses, as here a prompt of another length.
        if has_errors:
            assert bool(complaint) != is_silent, (case.rule, case.name, complaint)


def test_types_are_those_of_the_engine(tmp_path: Path) -> None:
    folders = []
    for name in TYPES:
        folders.append(tmp_path / name)
        genai(folders[-1])
        write_json(folders[-1] / "genai_config.json", genai_config(type=name))
    for name, folder, complaint in zip(TYPES, folders, ask_engine(folders), strict=True):
        assert ("genai-type-unknown" in lint_rules_of(folder)) == ("Unsupported model_type" in complaint), (
            name,
            complaint,
        )


def test_keys_are_those_of_the_engine(tmp_path: Path) -> None:
    folders = []
    for number, (section, key, content) in enumerate(KEYS):
        folders.append(tmp_path / str(number))
        genai(folders[-1])
        config = genai_config()
        place = config
        for part in section.split("."):
            place = place[part]
        place[key] = content
        write_json(folders[-1] / "genai_config.json", config)
    for row, folder, complaint in zip(KEYS, folders, ask_engine(folders), strict=True):
        is_refused = "Unknown value" in complaint or "Expected a" in complaint
        assert ("genai-key-refused" in lint_rules_of(folder)) == is_refused, (row, complaint)
