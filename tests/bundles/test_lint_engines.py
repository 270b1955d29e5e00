"""What `argosy lint` says of bundles for ONNX Runtime GenAI and transformers.js is what these say of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from lint_bundles import MAKERS, genai, genai_config, write_json
from lint_cases import CASES, Case
from node_modules import node, node_modules
from test_lint import findings

HERE = Path(__file__).resolve().parent

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

# Errors of lint that the engines do not stumble over here: files that they do not read, wrong results, and data that Node
# finds without being told, as browsers do not.
SILENT = {
    "graph-unreadable-link",
    "json-unreadable-array",
    "external-data-missing-attribute",
    "genai-eos-",
    "genai-eos-pad",
    "genai-eos-more",
    "tjs-data-name-",
    "tjs-data-undeclared-",
    "tjs-data-undeclared-none",
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


def ask_genai(folders: list[Path]) -> list[str]:
    """What the engine complains of, empty where it runs."""
    command = [sys.executable, "-c", WORKER]
    given = json.dumps([str(folder) for folder in folders])
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def lint_rules_of(folder: Path) -> set[str]:
    return {each["rule"] for each in findings(folder, "--for", "genai")[1]}


def ask_transformersjs(folders: list[Path], classes: list[str]) -> list[str]:
    given = json.dumps([[str(folder), name] for folder, name in zip(folders, classes, strict=True)])
    command = [node(), str(HERE / "js/open_bundles.mjs")]
    variables = {**os.environ, "NODE_MODULES": str(node_modules())}
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300, check=True, env=variables)
    return [json.loads(line) for line in done.stdout.splitlines()]


def spoilt(cases: list[Case], folder: Path) -> list[Path]:
    folders = []
    for number, case in enumerate(cases):
        folders.append(folder / str(number) / "bundle")
        MAKERS[case.bundle](folders[-1])
        case.spoil(folders[-1])
    return folders


def compare(engine: str, cases: list[Case], folders: list[Path], complaints: list[str]) -> None:
    for case, folder, complaint in zip(cases, folders, complaints, strict=True):
        # A warning may be of something that the engine refuses, too: it depends on what it is asked.
        if findings(folder, "--for", engine)[0] == 3:
            is_silent = f"{case.rule}-{case.name}" in SILENT
            assert bool(complaint) != is_silent, (case.rule, case.name, complaint)


def test_errors_are_what_genai_refuses(tmp_path: Path) -> None:
    cases = [case for case in CASES if case.bundle == "genai"]
    folders = spoilt(cases, tmp_path)
    genai(tmp_path / "good")
    complaints = ask_genai([tmp_path / "good", *folders])
    assert complaints[0] == ""
    compare("genai", cases, folders, complaints[1:])


@pytest.mark.skipif(node() is None or node_modules() is None, reason="Node and transformers.js are not installed")
def test_errors_are_what_transformersjs_refuses(tmp_path: Path) -> None:
    good = {"transformersjs": "AutoModelForCausalLM", "transformersjs_seq2seq": "AutoModelForSeq2SeqLM"}
    cases = [case for case in CASES if case.bundle in good]
    folders = spoilt(cases, tmp_path)
    for name in good:
        MAKERS[name](tmp_path / name)
    classes = [*good.values(), *(good[case.bundle] for case in cases)]
    complaints = ask_transformersjs([*(tmp_path / name for name in good), *folders], classes)
    assert complaints[:2] == ["", ""]
    compare("transformersjs", cases, folders, complaints[2:])


def test_types_are_those_of_the_engine(tmp_path: Path) -> None:
    folders = []
    for name in TYPES:
        folders.append(tmp_path / name)
        genai(folders[-1])
        write_json(folders[-1] / "genai_config.json", genai_config(type=name))
    for name, folder, complaint in zip(TYPES, folders, ask_genai(folders), strict=True):
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
    for row, folder, complaint in zip(KEYS, folders, ask_genai(folders), strict=True):
        is_refused = "Unknown value" in complaint or "Expected a" in complaint
        assert ("genai-key-refused" in lint_rules_of(folder)) == is_refused, (row, complaint)
