"""`argosy run` and `argosy check --tokens`, with the trained decoder in ONNX Runtime GenAI."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from argosy.run.bundles import Bundle, open_bundle
from argosy.run.runners import BundleProcess
from node_modules import node, node_modules
from transformers import AutoModelForCausalLM, AutoTokenizer

ROOT = Path(__file__).resolve().parents[2]
ARGOSY = Path(os.environ.get("ARGOSY_BIN", ROOT / "build/release/apps/cli/argosy"))
MODEL = ROOT / "tests/fixtures/trained-decoder"
PROMPT = "def __init__(self, "
NEW_TOKENS = 24


def argosy(*arguments: str | Path, given: bytes = b"", **environment: str) -> subprocess.CompletedProcess[str]:
    """``given``: on standard input."""
    own = {"ARGOSY_PYTHON": sys.executable, "PYTHONPATH": str(ROOT / "python")}
    done = subprocess.run([str(ARGOSY), *map(str, arguments)], capture_output=True, input=given, timeout=600, check=False,
                          env={**os.environ, **own, **environment})  # fmt: skip
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


def text_of(bundle: Path, *arguments: str, given: bytes = b"") -> str:
    done = argosy("run", bundle, "--max-new-tokens", str(NEW_TOKENS), *arguments, given=given)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("run")
    folder = place / "bundle"
    done = argosy("export", "onnx", "--model", MODEL, "--for", "genai", "--check", "off", "-o", folder,
                  ARGOSY_CACHE=str(place / "cache"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    return folder


def test_text_is_that_of_the_model(bundle: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(MODEL, dtype=torch.float32, local_files_only=True).eval()
    tokenizer = AutoTokenizer.from_pretrained(MODEL, local_files_only=True)
    ids = tokenizer(PROMPT, return_tensors="pt")
    made = model.generate(**ids, max_new_tokens=NEW_TOKENS, do_sample=False)[0, ids["input_ids"].shape[1] :]
    done = argosy("run", bundle, "--prompt", PROMPT, "--max-new-tokens", str(NEW_TOKENS))
    assert done.returncode == 0, done.stderr
    assert done.stdout == tokenizer.decode(made, skip_special_tokens=True) + "\n"
    assert f"prompt of {ids['input_ids'].shape[1]} tokens" in done.stderr  # figures are no text


def test_a_prompt_may_come_from_standard_input(bundle: Path) -> None:
    wanted = text_of(bundle, "--prompt", PROMPT)
    assert text_of(bundle, given=PROMPT.encode()) == text_of(bundle, "--prompt", "-", given=PROMPT.encode() + b"\n") == wanted
    assert text_of(bundle, "--prompt", PROMPT, given=b"not read") == wanted
    for given, said in {b"": "standard input has no prompt", b"\n": "has no prompt", b"a\xff": "no text in UTF-8: invalid start byte at byte 1"}.items():
        done = argosy("run", bundle, given=given)
        assert done.returncode == 1 and said in done.stderr and "  hint: " in done.stderr, done.stderr
    done = argosy("run", bundle, given=b"a" * ((16 << 20) + 1))
    assert done.returncode == 1 and "more than 16 MiB" in done.stderr


def test_the_same_seed_draws_the_same_text(bundle: Path) -> None:
    with BundleProcess(open_bundle(bundle)) as process:
        expect_drawing(process)
    done = argosy("run", bundle, "--prompt", PROMPT, "--temperature", "1.5", "--max-new-tokens", str(NEW_TOKENS))
    seed = re.search(r"seed (\d+)$", done.stderr.strip())
    assert seed and done.stdout.strip()
    again = json.loads(text_of(bundle, "--prompt", PROMPT, "--temperature", "1.5", "--seed", seed[1], "--json"))
    assert again["text"] + "\n" == done.stdout and again["seed"] == int(seed[1])


def test_drawing_needs_a_temperature(bundle: Path) -> None:
    for flag in ("--seed", "--top-k", "--top-p"):
        done = argosy("run", bundle, "--prompt", PROMPT, flag, "1")
        assert done.returncode == 1 and f"{flag} is about how tokens are drawn" in done.stderr
        assert "hint: add --temperature 0.8" in done.stderr
    done = argosy("run", bundle, "--prompt", PROMPT, "--temperature", "nan")
    assert done.returncode != 0 and "--temperature" in done.stderr


def test_a_reader_that_has_enough_and_a_user_who_breaks_off_get_no_traceback(bundle: Path) -> None:
    own = {**os.environ, "PYTHONPATH": str(ROOT / "python")}
    command = [sys.executable, "-m", "argosy.run", str(bundle), "--prompt", PROMPT, "--max-new-tokens"]
    process = subprocess.Popen([*command, "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own)
    process.stdout.close()
    assert "Traceback" not in process.stderr.read() and process.wait(60) == 1
    process.stderr.close()
    process = subprocess.Popen([*command, "400"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=own)
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert "Traceback" not in said and process.returncode in (0, 130), said


@pytest.mark.skipif(node() is None or node_modules() is None, reason="tools/setup has not installed transformers.js")
def test_transformers_js_draws_too(bundle: Path, tmp_path: Path) -> None:
    done = argosy("export", "onnx", "--model", MODEL, "--for", "transformersjs", "--check", "off", "-o", tmp_path / "js",
                  ARGOSY_CACHE=str(bundle.parent / "cache"))  # fmt: skip
    assert done.returncode == 0, done.stderr
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NODE_PATH", str(node_modules()))
        patch.setenv("PATH", f"{Path(node()).parent}{os.pathsep}{os.environ['PATH']}")
        with BundleProcess(open_bundle(tmp_path / "js")) as process:
            expect_drawing(process)


def test_optimum_draws_too(tmp_path: Path) -> None:
    """Optimum needs another transformers than ours; its models have transformers' generate, and here are transformers' models."""
    (tmp_path / "optimum").mkdir()
    (tmp_path / "optimum/__init__.py").write_text("")
    (tmp_path / "optimum/onnxruntime.py").write_text("from transformers import AutoModelForCausalLM as ORTModelForCausalLM\n")
    (tmp_path / "optimum_onnx-0.1.dist-info").mkdir()
    (tmp_path / "optimum_onnx-0.1.dist-info/METADATA").write_text("Metadata-Version: 2.1\nName: optimum-onnx\nVersion: 0.1\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(tmp_path))
        with BundleProcess(Bundle(MODEL, "optimum")) as process:
            expect_drawing(process)


def expect_drawing(process: BundleProcess) -> None:
    request = {"text": PROMPT, "chat": False, "max_new_tokens": 12}

    def drawn(**changes: float) -> str:
        sampling = {"temperature": 1.5, "top_k": 0, "top_p": 1.0, "seed": 2, **changes}
        return process.ask({**request, "sampling": sampling})["text"]

    best, texts = process.ask(request)["text"], {seed: drawn(seed=seed) for seed in range(4)}
    assert len({*texts.values(), best}) == 5
    assert drawn(seed=1) == texts[1] and drawn() == texts[2]
    assert drawn(top_k=1) == drawn(temperature=0.001) == best
    assert len({drawn(top_k=3), texts[2], best}) == 3
    if "top_p" not in process.runner.draws_without:
        assert drawn(top_p=0.0001) == best and len({drawn(top_p=0.5), texts[2], best}) == 3


def test_what_an_engine_cannot_draw_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "bundle.json").write_text('{"engine": "transformersjs"}')
    done = argosy("run", tmp_path, "--prompt", "a", "--temperature", "1", "--top-p", "0.9")
    assert done.returncode == 1 and "error[unsupported-feature]: transformers.js has no --top-p" in done.stderr


def test_a_chat_may_begin_with_a_system_s_words(bundle: Path, tmp_path: Path) -> None:
    done = argosy("run", bundle, "--prompt", PROMPT, "--system", "x")
    assert done.returncode == 1 and "--system is for chat templates" in done.stderr
    chat = tmp_path / "chat"
    shutil.copytree(bundle, chat)
    template = "{% for message in messages %}{{ message['content'] }}{% endfor %}"
    settings = json.loads((chat / "tokenizer_config.json").read_text())
    (chat / "tokenizer_config.json").write_text(json.dumps({**settings, "chat_template": template}))
    (chat / "chat_template.jinja").write_text(template)
    said = [json.loads(text_of(chat, "--json", *words)) for words in
            (("--prompt", PROMPT), ("--system", "import os\n", "--prompt", PROMPT), ("--prompt", f"import os\n{PROMPT}"))]  # fmt: skip
    assert said[1]["text"] == said[2]["text"] and said[1]["prompt_tokens"] == said[2]["prompt_tokens"] > said[0]["prompt_tokens"]
    done = argosy("run", chat, "--prompt", PROMPT, "--system", "x", "--raw")
    assert done.returncode == 1 and "hint: leave out --raw" in done.stderr


def test_tokens_are_those_of_the_model(bundle: Path) -> None:
    done = argosy("check", bundle, "--against", MODEL, "--tokens", "32", "--json")
    assert done.returncode == 0, done.stderr + done.stdout
    report = json.loads(done.stdout)
    assert report["engine"] == "genai"
    assert [row["call"] for row in report["rows"]] == ["tokenizer"] + ["tokens"] * 4
    assert all(row["ok"] for row in report["rows"]), report["rows"]
    assert "padded batch" in report["rows"][-1]["shape"]
    assert report["rows"][-1]["tokens"] == [96, 96]


def test_spoilt_weights_are_found(bundle: Path, tmp_path: Path) -> None:
    spoilt = tmp_path / "spoilt"
    shutil.copytree(bundle, spoilt)
    data = spoilt / "model.onnx.data"
    content = bytearray(data.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 400_000] = content[middle + 400_000 : middle + 800_000]
    data.write_bytes(content)
    done = argosy("check", spoilt, "--against", MODEL, "--tokens", "32")
    assert done.returncode == 3, done.stderr + done.stdout
    assert "WRONG" in done.stdout


def test_what_to_do_is_said(bundle: Path, tmp_path: Path) -> None:
    (tmp_path / "onnxruntime_genai.py").write_text("raise ModuleNotFoundError('no', name='onnxruntime_genai')\n")
    path = os.pathsep.join((str(tmp_path), str(ROOT / "python")))
    done = argosy("run", bundle, "--prompt", "a", PYTHONPATH=path)
    assert done.returncode == 1
    assert "pip install onnxruntime-genai" in done.stderr
    plain = tmp_path / "plain"
    plain.mkdir()
    (plain / "bundle.json").write_text('{"engine": "plain"}')
    done = argosy("run", plain, "--prompt", "a")
    assert done.returncode == 1
    assert "--for one of genai" in done.stderr
    done = argosy("run", tmp_path, "--prompt", "a")
    assert done.returncode == 1
    assert "does not say which engine" in done.stderr
