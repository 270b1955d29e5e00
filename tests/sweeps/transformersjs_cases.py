"""What bundles do in transformers.js, beside PyTorch: one case for each model, run by tests and by the sweep."""

from __future__ import annotations

import json
import subprocess
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from node_modules import node

from . import ROOT
from .twin_texts import NEW_TOKENS, Text, best_text, never_stops, random_prompts

SCRIPT = ROOT / "tests/bundles/js/run_requests.mjs"


@dataclass
class Case:
    """A request to the engine, and what its answer is held against."""

    name: str
    what: str
    request: dict[str, Any]
    #: empty, or why the answer is wrong
    judge: Callable[[Any], str]
    #: of the reference: "32 tokens, 17 distinct"
    facts: str = ""
    #: tokens of the reference that differ from each other
    distinct: int = 0

    @property
    def key(self) -> str:
        return f"{self.name}: {self.what}"


def spec(tensor: torch.Tensor) -> dict[str, Any]:
    dtype = {torch.int64: "int64", torch.float32: "float32"}[tensor.dtype]
    return {"dtype": dtype, "dims": list(tensor.shape), "data": tensor.flatten().tolist()}


def _specs(**tensors: torch.Tensor) -> dict[str, Any]:
    return {name: spec(tensor) for name, tensor in tensors.items()}


def _same_tokens(expected: list[list[int]]) -> Callable[[Any], str]:
    def judge(answer: list[list[int]]) -> str:
        if answer == expected:
            return ""
        for row, (a, b) in enumerate(zip(answer, expected, strict=True)):
            step = next((i for i, (x, y) in enumerate(zip(a, b, strict=False)) if x != y), None)
            if step is not None or len(a) != len(b):
                return f"row {row} differs at token {step} of {len(b)}: {a[-NEW_TOKENS:]} instead of {b[-NEW_TOKENS:]}"
        return f"{len(answer)} rows instead of {len(expected)}"

    return judge


def _facts(text: Text) -> str:
    return f"{len(text.tokens)} tokens, {text.distinct} distinct"


def decoder(model: Any, name: str, folder: Path | None = None) -> Case:
    vocabulary = model.config.get_text_config().vocab_size
    prompts = random_prompts(vocabulary)
    inputs = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
    text = best_text(model, inputs, prompts, prompts.shape[1])
    request = {
        "call": "generate", "auto": "AutoModelForCausalLM", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(input_ids=torch.tensor([text.prompt]), attention_mask=torch.ones(1, len(text.prompt), dtype=torch.int64)),
    }  # fmt: skip
    return Case(name, "text generation", request, _same_tokens([text.prompt + text.tokens]), _facts(text), text.distinct)


def padded_decoder(model: Any, name: str, folder: Path | None = None) -> Case:
    """Three prompts of different lengths, filled up at their left."""
    vocabulary = model.config.get_text_config().vocab_size
    prompts = random_prompts(vocabulary, 3, 9, seed=1)
    mask = torch.ones_like(prompts)
    for row, padding in enumerate((0, 2, 5)):
        prompts[row, :padding] = 0
        mask[row, :padding] = 0
    never_stops(model)
    with torch.no_grad():
        made = model.generate(input_ids=prompts, attention_mask=mask, max_new_tokens=NEW_TOKENS)
    request = {
        "call": "generate", "auto": "AutoModelForCausalLM", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(input_ids=prompts, attention_mask=mask),
    }  # fmt: skip
    return Case(name, "text generation, padded batch of 3", request, _same_tokens(made.tolist()))


def seq2seq(model: Any, name: str, folder: Path | None = None) -> Case:
    prompts = random_prompts(model.config.vocab_size)
    inputs = {"input_ids": prompts, "attention_mask": torch.ones_like(prompts)}
    text = best_text(model, inputs, prompts, 1)
    request = {
        "call": "generate", "auto": "AutoModelForSeq2SeqLM", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(input_ids=torch.tensor([text.prompt]), attention_mask=torch.ones(1, len(text.prompt), dtype=torch.int64)),
        "options": _nothing_forced(),
    }  # fmt: skip
    return Case(name, "encoder and decoder", request, _same_tokens([[_start(model), *text.tokens]]), _facts(text), text.distinct)


def _start(model: Any) -> int:
    settings = model.generation_config
    return settings.bos_token_id if settings.decoder_start_token_id is None else settings.decoder_start_token_id


def _nothing_forced() -> dict[str, None]:
    return {"forced_eos_token_id": None, "forced_bos_token_id": None, "bad_words_ids": None, "suppress_tokens": None,
            "begin_suppress_tokens": None, "no_repeat_ngram_size": None}  # fmt: skip


def whisper(model: Any, name: str, folder: Path | None = None) -> Case:
    config = model.config
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(12, config.num_mel_bins, 2 * config.max_source_positions, generator=generator)
    never_stops(model)
    start = config.decoder_start_token_id
    decoder_ids = torch.full((len(features), 1), start)
    with torch.no_grad():
        # The model's own generate() is for speech, and splits and joins it; greedy decoding is what is compared.
        tokens = decoder_ids
        for _ in range(NEW_TOKENS):
            logits = model(input_features=features, decoder_input_ids=tokens, use_cache=False).logits[:, -1]
            tokens = torch.cat([tokens, logits.argmax(-1, keepdim=True)], 1)
    row = max(range(len(tokens)), key=lambda i: len(set(tokens[i].tolist())))
    request = {
        "call": "generate", "auto": "AutoModelForSpeechSeq2Seq", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(inputs=features[row : row + 1]),
        "options": {**_nothing_forced(), "decoder_input_ids": [start], "is_multilingual": False, "return_timestamps": False},
    }  # fmt: skip
    distinct = len(set(tokens[row, 1:].tolist()))
    return Case(name, "speech, tokens of features", request, _same_tokens([tokens[row].tolist()]), f"{NEW_TOKENS} tokens, {distinct} distinct", distinct)


def caption(model: Any, name: str, folder: Path | None = None) -> Case:
    """Tokens of a picture, by an encoder and a decoder."""
    size = model.config.encoder.image_size
    pixels = torch.randn(12, 3, size, size, generator=torch.Generator().manual_seed(0))
    text = best_text(model, {"pixel_values": pixels}, torch.zeros(len(pixels), 0, dtype=torch.int64), 1)
    request = {
        "call": "generate", "auto": "AutoModelForVision2Seq", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(pixel_values=pixels[text.row : text.row + 1]), "options": _nothing_forced(),
    }  # fmt: skip
    return Case(name, "text of a picture", request, _same_tokens([[_start(model), *text.tokens]]), _facts(text), text.distinct)


def picture(path: Path, size: int, seed: int = 0) -> np.ndarray:
    """A picture without edges, so that scaling it would matter little; written as PNG."""
    from PIL import Image

    rng = np.random.default_rng(seed)
    small = Image.fromarray(rng.integers(0, 255, (4, 4, 3), dtype=np.uint8))
    image = small.resize((size, size), Image.Resampling.BICUBIC)
    image.save(path)
    return np.asarray(image)


def _pixels(image: np.ndarray, settings: dict[str, Any]) -> torch.Tensor:
    """As a processor makes them of a picture that has the right size already."""
    scaled = image.astype(np.float32) / 255
    scaled = (scaled - np.array(settings["image_mean"], np.float32)) / np.array(settings["image_std"], np.float32)
    return torch.from_numpy(scaled.transpose(2, 0, 1)[None].copy())


def _size(settings: dict[str, Any]) -> int:
    size = settings["size"]
    return int(size.get("height") or size.get("shortest_edge"))


def image_classes(model: Any, name: str, folder: Path) -> Case:
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    image = picture(folder.parent / f"{name}.png", _size(settings))
    with torch.no_grad():
        scores = model(pixel_values=_pixels(image, settings)).logits.softmax(-1)[0]
    expected = {model.config.id2label[i]: float(score) for i, score in enumerate(scores)}
    request = {"call": "pipeline", "task": "image-classification", "arguments": [str(folder.parent / f"{name}.png")], "options": {"top_k": len(expected)}}

    def judge(answer: list[dict[str, Any]]) -> str:
        found = {each["label"]: each["score"] for each in answer}
        order = sorted(expected, key=expected.get, reverse=True)
        if [each["label"] for each in answer] != order:
            return f"labels {[each['label'] for each in answer]} instead of {order}"
        worst = max(abs(found[label] - expected[label]) for label in expected)
        return "" if worst < 1e-4 else f"scores differ by {worst}"

    return Case(name, "image classification", request, judge, f"{len(expected)} labels in the same order, scores within 1e-4")


def detection(model: Any, name: str, folder: Path) -> Case:
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    size = _size(settings)
    image = picture(folder.parent / f"{name}.png", size)
    with torch.no_grad():
        made = model(pixel_values=_pixels(image, settings))
    scores, labels = made.logits.softmax(-1)[0, :, :-1].max(-1)
    cx, cy, w, h = made.pred_boxes[0].unbind(-1)
    boxes = torch.stack([cx - w / 2, cy - h / 2, cx + w / 2, cy + h / 2], -1)
    # What the engine leaves out: queries whose best class is that of no object.
    kept = [i for i in range(len(scores)) if made.logits[0, i].argmax() != made.logits.shape[-1] - 1]
    expected = sorted((model.config.id2label[int(labels[i])], float(scores[i]), *boxes[i].tolist()) for i in kept)
    request = {"call": "pipeline", "task": "object-detection", "arguments": [str(folder.parent / f"{name}.png")], "options": {"threshold": 0, "percentage": True}}

    def judge(answer: list[dict[str, Any]]) -> str:
        found = sorted((each["label"], each["score"], *(each["box"][side] for side in ("xmin", "ymin", "xmax", "ymax"))) for each in answer)
        if [each[0] for each in found] != [each[0] for each in expected]:
            return f"labels {[each[0] for each in found]} instead of {[each[0] for each in expected]}"
        worst = max((abs(a - b) for x, y in zip(found, expected, strict=True) for a, b in zip(x[1:], y[1:], strict=True)), default=0)
        return "" if worst < 1e-3 else f"scores or boxes differ by {worst}"

    return Case(name, "object detection", request, judge, f"{len(expected)} objects, same labels, scores and boxes within 1e-3")


def zero_shot(model: Any, name: str, folder: Path) -> Case:
    from transformers import AutoTokenizer

    settings = json.loads((folder / "preprocessor_config.json").read_text())
    image = picture(folder.parent / f"{name}.png", _size(settings))
    labels = ["a cat", "a red house", "two dogs and a bird"]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    # What the engine does for these models, and what they were trained with.
    is_siglip = model.config.model_type == "siglip"
    texts = tokenizer(labels, padding="max_length" if is_siglip else True, return_tensors="pt")
    inputs = {"input_ids": texts["input_ids"], "pixel_values": _pixels(image, settings)}
    if not is_siglip:
        inputs["attention_mask"] = texts["attention_mask"]
    with torch.no_grad():
        logits = model(**inputs).logits_per_image[0]
    scores = dict(zip(labels, (logits.sigmoid() if is_siglip else logits.softmax(-1)).tolist(), strict=True))
    request = {
        "call": "pipeline", "task": "zero-shot-image-classification",
        "arguments": [str(folder.parent / f"{name}.png"), labels], "options": {"hypothesis_template": "{}"},
    }  # fmt: skip

    def judge(answer: list[dict[str, Any]]) -> str:
        order = sorted(scores, key=scores.get, reverse=True)
        if [each["label"] for each in answer] != order:
            return f"labels {[each['label'] for each in answer]} instead of {order}"
        worst = max(abs(each["score"] - scores[each["label"]]) for each in answer)
        return "" if worst < 1e-4 else f"scores differ by {worst}"

    return Case(name, "image and texts", request, judge, "3 texts in the same order, scores within 1e-4")


SENTENCES = ("The weather is lovely today.", "It's so sunny outside!", "He drove to the stadium, where his team was to play that night.")


def features(model: Any, name: str, folder: Path, texts: tuple[str, ...] = SENTENCES, least: float = 0.9999) -> Case:
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    batch = tokenizer(list(texts), padding=True, truncation=True, return_tensors="pt")
    with torch.no_grad():
        hidden = model(**batch).last_hidden_state
    mask = batch["attention_mask"][..., None].float()
    expected = torch.nn.functional.normalize((hidden * mask).sum(1) / mask.sum(1), dim=-1)
    request = {"call": "pipeline", "task": "feature-extraction", "arguments": [list(texts)], "options": {"pooling": "mean", "normalize": True}}

    def judge(answer: dict[str, Any]) -> str:
        found = torch.tensor(answer["data"]).reshape(answer["dims"])
        if list(found.shape) != list(expected.shape):
            return f"shape {answer['dims']}"
        cosine = torch.nn.functional.cosine_similarity(found, expected).min().item()
        return "" if cosine >= least else f"cosine {cosine}"

    return Case(name, "feature extraction", request, judge, f"{len(texts)} texts, cosine at least {least}")


def speech_text(model: Any, name: str, folder: Path) -> Case:
    from transformers import AutoTokenizer

    rng = np.random.default_rng(0)
    samples = (rng.standard_normal(16000) * np.sin(np.arange(16000) / 500)).astype(np.float32)
    settings = json.loads((folder / "preprocessor_config.json").read_text())
    values = samples
    if settings.get("do_normalize"):
        values = (samples - samples.mean()) / np.sqrt(samples.var() + 1e-7)
    with torch.no_grad():
        inputs = torch.from_numpy(values)[None]
        logits = model(input_values=inputs, attention_mask=torch.ones_like(inputs, dtype=torch.int64)).logits
    text = AutoTokenizer.from_pretrained(folder).decode(logits.argmax(-1)[0], skip_special_tokens=True)
    request = {"call": "sound", "task": "automatic-speech-recognition", "samples": samples.tolist(), "options": {}}

    def judge(answer: dict[str, Any]) -> str:
        return "" if answer["text"].strip() == text.strip() else f"{answer['text']!r} instead of {text!r}"

    return Case(name, "speech, letters of samples", request, judge, f"the same text of {len(text)} characters")


def image_text(model: Any, name: str, folder: Path) -> Case:
    """The tokens after a text with a picture in it."""
    generator = torch.Generator().manual_seed(0)
    size = model.config.vision_config.image_size
    has_many = model.config.model_type in ("idefics3", "smolvlm")
    pixels = torch.randn(1, 1, 3, size, size, generator=generator) if has_many else torch.randn(1, 3, size, size, generator=generator)
    extra = {"pixel_attention_mask": torch.ones(1, 1, size, size, dtype=torch.int64)} if has_many else {}
    with torch.no_grad():
        made = model.model.get_image_features(pixel_values=pixels, **extra)
    made = getattr(made, "pooler_output", made)
    count = sum(len(each) for each in made) if isinstance(made, (list, tuple)) else made.reshape(-1, made.shape[-1]).shape[0]
    token = getattr(model.config, "image_token_id", None) or model.config.image_token_index
    prompts = random_prompts(min(model.config.get_text_config().vocab_size, token), 16, 6)
    ids = torch.cat([prompts[:, :2], torch.full((len(prompts), count), token), prompts[:, 2:]], 1)
    repeat = [len(prompts)] + [1] * (pixels.dim() - 1)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "pixel_values": pixels.repeat(repeat)}
    if extra:
        inputs["pixel_attention_mask"] = extra["pixel_attention_mask"].repeat(len(prompts), 1, 1, 1)
    text = best_text(model, inputs, ids, ids.shape[1])
    request = {
        "call": "generate", "auto": "AutoModelForImageTextToText", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(input_ids=torch.tensor([text.prompt]), attention_mask=torch.ones(1, len(text.prompt), dtype=torch.int64), pixel_values=pixels),
        "masks": {name: list(mask.shape) for name, mask in extra.items()},
    }  # fmt: skip
    return Case(name, "text with a picture", request, _same_tokens([text.prompt + text.tokens]), _facts(text), text.distinct)


def audio_text(model: Any, name: str, folder: Path | None = None) -> Case:
    """The tokens after a text with a sound in it."""
    config = model.config.audio_config
    sound = torch.randn(1, config.num_mel_bins, 2 * config.max_source_positions, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        made = model.get_audio_features(sound)
    made = getattr(made, "pooler_output", made)
    count = made.reshape(-1, made.shape[-1]).shape[0]
    prompts = random_prompts(model.config.get_text_config().vocab_size, 16, 6)
    ids = torch.cat([prompts[:, :2], torch.full((len(prompts), count), model.config.audio_token_id), prompts[:, 2:]], 1)
    inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids), "input_features": sound.repeat(len(prompts), 1, 1)}
    text = best_text(model, inputs, ids, ids.shape[1])
    request = {
        "call": "generate", "auto": "AutoModelForAudioTextToText", "max_new_tokens": NEW_TOKENS,
        "inputs": _specs(input_ids=torch.tensor([text.prompt]), attention_mask=torch.ones(1, len(text.prompt), dtype=torch.int64), audio_values=sound),
    }  # fmt: skip
    return Case(name, "text with a sound", request, _same_tokens([text.prompt + text.tokens]), _facts(text), text.distinct)


def run_cases(package: Path, models: Path, cases: list[Case], scratch: Path, timeout: float = 600, browser: str = "") -> dict[str, str]:
    """What is wrong with each case, by its name and kind; empty strings for what is right. Each case's bundle is the
    folder of its name in `models`. With `browser` ("wasm", "webgpu") they run in a page, else in Node."""
    requests = [{"name": case.key, "model": case.name, **case.request} for case in cases]
    answers, said = (
        _answers_of_page(package, models, requests, scratch, timeout, is_gpu=browser == "webgpu")
        if browser
        else _answers_of_node(package, models, requests, scratch, timeout)
    )
    verdicts = {}
    for case in cases:
        answer = answers.get(case.key)
        if answer is None:
            verdicts[case.key] = f"no answer: {said[-800:]}"
        elif "error" in answer:
            verdicts[case.key] = answer["error"]
        elif browser == "webgpu" and not answer["submits"]:
            verdicts[case.key] = "nothing was computed on the GPU"
        else:
            verdicts[case.key] = case.judge(answer["result"])
    return verdicts


def _answers_of_node(
    package: Path, models: Path, requests: list[dict[str, Any]], scratch: Path, timeout: float
) -> tuple[dict[str, Any], str]:
    file = scratch / "requests.json"
    file.write_text(json.dumps({"package": str(package), "models": str(models) + "/", "requests": requests}))
    done = subprocess.run([node() or "node", str(SCRIPT), str(file)], capture_output=True, text=True, timeout=timeout, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {line["name"]: line for line in lines}, done.stderr


def _answers_of_page(
    package: Path, models: Path, requests: list[dict[str, Any]], scratch: Path, timeout: float, *, is_gpu: bool
) -> tuple[dict[str, Any], str]:
    """A page for each model: what one leaves behind does not fail the next."""
    answers, said = {}, []
    folders = {"/models/": str(models), "/job/": str(scratch), "/files/": str(scratch / "twins")}
    for model in dict.fromkeys(request["model"] for request in requests):
        asked = [request for request in requests if request["model"] == model]
        text = json.dumps({"requests": asked}).replace(str(scratch / "twins") + "/", "/files/")
        (scratch / "requests.json").write_text(text)
        command = [node() or "node", "--experimental-websocket", str(SCRIPT.with_name("browser.mjs")), "--modules", str(package.parents[1]),
                   "--page", "requests_page.html", "--folders", json.dumps(folders), "--seconds", "300"]  # fmt: skip
        done = subprocess.run([*command, *(["--webgpu"] if is_gpu else [])], capture_output=True, text=True, timeout=timeout, check=False)
        said.append(f"{model}: {done.stderr or done.stdout[:300]}")
        if done.returncode == 0:
            answers |= {line["name"]: line for line in json.loads(done.stdout)["answers"]}
    return answers, "\n".join(said)


def quiet() -> None:
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
