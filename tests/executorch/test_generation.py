"""Programs of tasks: what they generate is what the model generates. `python tests/sweeps generation` has more models."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("executorch")

from sweeps import ROOT  # noqa: E402
from sweeps.generation import compare, export, make_twin, vocabulary_size  # noqa: E402
from sweeps.workers.generation_worker import letter_tokenizer  # noqa: E402
from thorough import thorough  # noqa: E402

more = pytest.mark.skipif(
    "ARGOSY_MORE_TESTS" not in os.environ, reason="a capture takes half a minute; ARGOSY_MORE_TESTS=1 runs these too"
)
ARGOSY = os.environ.get("ARGOSY_BIN", str(ROOT / "build/release/apps/cli/argosy"))


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("ARGOSY_CACHE", str(tmp_path_factory.getbasetemp() / "cache-of-generation"))
        yield


@pytest.fixture(scope="module")
def twins(tmp_path_factory: pytest.TempPathFactory):
    folder = tmp_path_factory.mktemp("twins")

    def twin(family: str) -> Path:
        if not (folder / family).exists():
            make_twin(family, folder / family)
        return folder / family

    return twin


def opened(path: Path):
    from executorch.extension.llm.custom_ops import custom_ops  # noqa: F401
    from executorch.runtime import Runtime

    program = Runtime.get().load_program(str(path))
    methods = {}

    def call(name: str, *inputs):
        if name not in methods:
            methods[name] = program.load_method(name)
        return methods[name].execute(list(inputs))

    return program, call


@pytest.mark.parametrize(
    "options", [("--recipe", "xnnpack"), thorough((("--recipe", "portable", "--no-custom-sdpa", "--no-custom-kv-cache"),))]
)
def test_a_decoder_with_windows_generates_as_eager(twins, tmp_path: Path, options: tuple[str, ...]) -> None:
    assert compare(ARGOSY, twins("gemma3_text"), tmp_path, 8, *options) == []


@more
def test_a_seq2seq_model_generates_as_eager(twins, tmp_path: Path) -> None:
    from transformers import T5ForConditionalGeneration

    model = T5ForConditionalGeneration.from_pretrained(twins("t5")).eval()
    export(ARGOSY, twins("t5"), tmp_path / "model.pte", "--max-seq-len", "32", task="text2text-generation")
    program, call = opened(tmp_path / "model.pte")
    assert {"encoder", "text_decoder", "decoder_start_token_id", "get_max_seq_len"} <= set(program.method_names)
    ids = torch.randint(3, 120, (1, 9), generator=torch.Generator().manual_seed(0))
    encoded = call("encoder", ids)[0].clone()
    with torch.no_grad():
        torch.testing.assert_close(encoded, model.encoder(ids).last_hidden_state, rtol=1e-4, atol=1e-4)
        tokens = [0]
        for position in range(5):
            logits = call("text_decoder", torch.tensor([tokens[-1:]]), encoded, torch.tensor([position]))[0]
            eager = model(input_ids=ids, decoder_input_ids=torch.tensor([tokens])).logits[0, -1]
            torch.testing.assert_close(logits[0, -1], eager, rtol=1e-4, atol=1e-4)
            tokens.append(int(eager.topk(position + 1).indices[-1]))  # another one each time


@more
def test_a_model_that_sees_takes_pictures_apart_from_text(twins, tmp_path: Path) -> None:
    from transformers import LlavaForConditionalGeneration

    model = LlavaForConditionalGeneration.from_pretrained(twins("llava")).eval()
    export(ARGOSY, twins("llava"), tmp_path / "model.pte", "--max-seq-len", "128", task="multimodal-text-to-text")
    program, call = opened(tmp_path / "model.pte")
    assert call("modality") == ["vision"]
    assert call("vision_token_id") == [model.config.image_token_id]
    side = model.config.vision_config.image_size
    pixels = torch.randn(1, 3, side, side, generator=torch.Generator().manual_seed(0))
    seen = call("vision_encoder", pixels)[0].clone()
    ids = torch.tensor([[5, 6, *[model.config.image_token_id] * seen.shape[1], 7, 8]])
    texts = [call("token_embedding", part)[0].clone() for part in (ids[:, :2], ids[:, -2:])]
    embeddings, position = torch.cat([texts[0], seen, texts[1]], dim=1), 0
    for part in embeddings.split(40, dim=1):
        logits = call("text_decoder", part.contiguous(), torch.arange(position, position + part.shape[1]))[0]
        position += part.shape[1]
    with torch.no_grad():
        eager = model(input_ids=ids, pixel_values=pixels, attention_mask=torch.ones_like(ids)).logits[0, -1]
    torch.testing.assert_close(logits[0, -1], eager, rtol=1e-4, atol=1e-4)


def test_tokens_of_a_picture_see_each_other(twins, tmp_path: Path) -> None:
    """Gemma 3: calls are those of ExecuTorch's runner, which passes embeddings and positions, each picture by itself."""
    from transformers import Gemma3ForConditionalGeneration

    model = Gemma3ForConditionalGeneration.from_pretrained(twins("gemma3")).eval()
    options = {"task": "multimodal-text-to-text", "check": "twin"}  # which feeds a picture too
    export(ARGOSY, twins("gemma3"), tmp_path / "model.pte", "--max-seq-len", "256", **options)
    _, call = opened(tmp_path / "model.pte")
    side, mark = model.config.vision_config.image_size, model.config.image_token_id
    for seed in (0, 1):  # the second time over what the first one left
        generator = torch.Generator().manual_seed(seed)
        pixels = torch.randn(2, 3, side, side, generator=generator)
        pictures = [call("vision_encoder", each[None])[0].clone() for each in pixels]
        count = pictures[0].shape[1]
        words = torch.randint(5, 90, (3, 4 - seed), generator=generator)
        texts = [call("token_embedding", each[None])[0].clone() for each in words]
        position = 0
        for part in (texts[0], pictures[0], texts[1], pictures[1], texts[2]):
            logits = call("text_decoder", part, torch.arange(position, position + part.shape[1]))[0]
            position += part.shape[1]
        places = torch.tensor([mark] * count)
        ids = torch.cat([words[0], places, words[1], places, words[2]])[None]
        with torch.no_grad():
            given = {"input_ids": ids, "pixel_values": pixels, "attention_mask": torch.ones_like(ids)}
            eager = model(**given, token_type_ids=(ids == mark).long()).logits[0, -1]
            blind = model(**given, token_type_ids=torch.zeros_like(ids)).logits[0, -1]
        torch.testing.assert_close(logits[0, -1], eager, rtol=1e-4, atol=1e-4)
        assert (eager - blind).abs().max() > 1e-3  # else nothing was shown


def test_lint_looks_into_programs(twins, tmp_path: Path) -> None:
    def rules() -> set[str]:
        done = subprocess.run([ARGOSY, "lint", "--json", str(tmp_path)], capture_output=True, text=True)
        return {found["rule"] for found in json.loads(done.stdout)["findings"]}

    export(ARGOSY, twins("gemma3_text"), tmp_path / "model.pte", "--max-seq-len", "16")
    size = vocabulary_size(twins("gemma3_text"))
    (tmp_path / "tokenizer.json").write_text(json.dumps(letter_tokenizer(size)), encoding="utf-8")
    assert rules() == set()
    (tmp_path / "tokenizer.json").write_text(json.dumps(letter_tokenizer(size + 1)), encoding="utf-8")
    assert rules() == {"executorch-vocabulary"}
    whole = (tmp_path / "model.pte").read_bytes()
    (tmp_path / "model.pte").write_bytes(whole[: len(whole) // 2])
    assert rules() == {"executorch-program-unreadable"}


def test_tasks_that_do_not_fit_say_so(twins, tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="image-classification needs a component model"):
        export(ARGOSY, twins("gemma3_text"), tmp_path / "model.pte", task="image-classification")
    with pytest.raises(RuntimeError, match='"poetry" is not a task'):
        export(ARGOSY, twins("gemma3_text"), tmp_path / "model.pte", task="poetry")
