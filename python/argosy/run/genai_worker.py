"""Bundles in ONNX Runtime GenAI. Part of the worker's process: imports nothing of this package."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import genai_media
import numpy
import onnxruntime_genai

#: Types of the engine (genai_config.json) whose prompt is not words but what their decoder starts with.
_TRANSCRIBERS = ("whisper",)
#: What their prompt goes on with, as far as the tokenizer has it: English speech as it is, without times.
_TRANSCRIPT = ("<|en|>", "<|transcribe|>", "<|notimestamps|>")
#: What stands for a picture in a prompt, by the engine's type; for chat templates that put none there.
_VISION = "<|vision_start|><|image_pad|><|vision_end|>"
_PICTURES = {"gemma3": "<start_of_image>", **dict.fromkeys(("fara", "qwen2_5_vl", "qwen3_vl", "qwen3_5"), _VISION)}


class Session:
    def __init__(self, folder: str, on_cpu: bool = False) -> None:
        onnxruntime_genai.disable_telemetry_events()
        self.version = importlib.metadata.version("onnxruntime-genai")
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "genai_config.json").read_text(encoding="utf-8"))["model"]
        config = onnxruntime_genai.Config(folder)
        if on_cpu:
            config.clear_providers()
        self.model = onnxruntime_genai.Model(config)
        self._tokenizer: Any = None
        self._adapters: Any = None
        self._loaded: set[str] = set()
        self._active = ""

    @property
    def tokenizer(self) -> Any:
        if self._tokenizer is None:
            self._tokenizer = onnxruntime_genai.Tokenizer(self.model)
        return self._tokenizer

    @property
    def ends(self) -> set[int]:
        found = self.config.get("eos_token_id", [])
        return set(found if isinstance(found, list) else [found])

    def encode(self, texts: list[str], *, special: bool = True) -> list[list[int]]:
        """``special``: with the tokens that the tokenizer puts around a text, which the engine leaves out unless asked."""
        self.tokenizer.update_options(add_special_tokens="true" if special else "false")
        return [self.tokenizer.encode(text).tolist() for text in texts]

    def generator(self, rows: int, length: int, sampling: dict[str, Any] | None = None) -> Any:
        parameters = onnxruntime_genai.GeneratorParams(self.model)
        # Nothing but the best logit decides, unless tokens are to be drawn.
        options: dict[str, Any] = {"do_sample": False}
        if sampling:
            options = {"do_sample": True, "random_seed": sampling["seed"]}
            options |= {name: sampling[name] for name in ("temperature", "top_k", "top_p")}
        parameters.set_search_options(num_beams=1, repetition_penalty=1.0, batch_size=rows, max_length=length, **options)
        generator = onnxruntime_genai.Generator(self.model, parameters)
        if self._active:
            generator.set_active_adapter(self._adapters, self._active)
        return generator

    def use_adapter(self, file: str) -> None:
        """From now on; "": none. The engine keeps those that were loaded."""
        if file and self._adapters is None:
            self._adapters = onnxruntime_genai.Adapters(self.model)
        if file and file not in self._loaded:
            self._adapters.load(str(self.folder / file), file)
            self._loaded.add(file)
        self._active = file

    def ids(self, rows: list[list[int]], count: int) -> list[list[int]]:
        """Rows are padded at their end: that is how the engine's own batches are, it masks no padding at the front."""
        pad = self.config.get("pad_token_id")
        longest = max(map(len, rows))
        if any(len(row) < longest for row in rows) and any(pad == row[-1] for row in rows):
            raise ValueError(f"a row ends with {pad}, which the engine takes for padding")
        padded = [row + [pad] * (longest - len(row)) for row in rows]
        generator = self.generator(len(rows), longest + count)
        generator.append_tokens(numpy.array(padded, numpy.int32))
        steps = []
        while not generator.is_done():
            generator.generate_next_token()
            steps.append(generator.get_next_tokens().tolist())  # a sequence alone lacks the token that ends it
        return [self.up_to_end([step[i] for step in steps]) for i in range(len(rows))]

    def feed(self, prompts: list[list[list[int]]], file: str) -> None:
        """Each prompt in pieces, as applications go on with a conversation; the logits behind each piece."""
        found = {}
        for number, pieces in enumerate(prompts):
            generator = self.generator(1, sum(map(len, pieces)) + 1)
            for i, piece in enumerate(pieces):
                generator.append_tokens(numpy.array([piece], numpy.int32))
                found[f"{number}.{i}"] = numpy.array(generator.get_logits(), numpy.float32)
        numpy.savez(file, **found)

    def up_to_end(self, tokens: list[int]) -> list[int]:
        for i, token in enumerate(tokens):
            if token in self.ends:
                return tokens[: i + 1]
        return tokens

    def text(self, request: dict[str, Any], on_piece: Callable[[str], None]) -> dict[str, Any]:
        media = [kind for kind in ("images", "audios") if request.get(kind)]
        prompt = self.prompt(request)
        if media:
            return self.with_media(request, prompt, on_piece)
        ids = self.encode([prompt], special=not request.get("chat"))[0]  # a chat template has them itself
        generator = self.generator(1, self.limit(len(ids), request), request.get("sampling"))
        generator.append_tokens(numpy.array([ids], numpy.int32))
        return self.finish(generator, len(ids), self.tokenizer.create_stream(), on_piece)

    def limit(self, length: int, request: dict[str, Any]) -> int:
        limit = int(self.config["context_length"])
        if length >= limit:
            raise ValueError(f"the prompt has {length} tokens, the model takes {limit}")
        return min(limit, length + request["max_new_tokens"])

    def prompt(self, request: dict[str, Any]) -> str:
        if self.config["type"] in _TRANSCRIBERS:
            return request["text"] or self.transcript()
        prompt = self.chat(request) if request.get("chat") else request["text"]
        mark = _PICTURES.get(self.config["type"], "")
        if request.get("images") and mark and mark.split(">")[0] not in prompt:
            marked = {**request, "text": mark * len(request["images"]) + request["text"], "images": [], "audios": []}
            prompt = self.chat(marked) if request.get("chat") else marked["text"]
        return prompt

    def transcript(self) -> str:
        """What the decoder of a model that writes down speech starts with."""
        tokenizer = json.loads((self.folder / "tokenizer.json").read_text(encoding="utf-8"))
        names = {token["id"]: token["content"] for token in tokenizer.get("added_tokens", ())}
        file = self.folder / "generation_config.json"
        settings = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        start = settings.get("decoder_start_token_id", self.config.get("decoder_start_token_id"))
        known = set(names.values())
        return names.get(start, "<|startoftranscript|>") + "".join(each for each in _TRANSCRIPT if each in known)

    def chat(self, request: dict[str, Any]) -> str:
        content: Any = request["text"]
        if request.get("images") or request.get("audios"):
            parts = [{"type": "image"} for _ in request.get("images", [])]
            parts += [{"type": "audio"} for _ in request.get("audios", [])]
            content = [*parts, {"type": "text", "text": request["text"]}]
        system = [{"role": "system", "content": request["system"]}] if request.get("system") else []
        messages = json.dumps([*system, {"role": "user", "content": content}])
        return self.tokenizer.apply_chat_template(messages=messages, add_generation_prompt=True)

    def with_media(self, request: dict[str, Any], prompt: str, on_piece: Callable[[str], None]) -> dict[str, Any]:
        processor, inputs = genai_media.by_engine(self, request, prompt)
        return self.with_inputs(inputs, request, processor.create_stream(), on_piece)

    def prepare(self, request: dict[str, Any]) -> list[str]:
        return genai_media.prepare(self, request)

    def tensors(self, request: dict[str, Any], on_piece: Callable[[str], None]) -> dict[str, Any]:
        """Inputs of the file ``tensors``."""
        inputs, _arrays = genai_media.from_file(request["tensors"])
        return self.with_inputs(inputs, request, self.tokenizer.create_stream(), on_piece)

    def with_inputs(self, inputs: Any, request: dict[str, Any], stream: Any, on_piece: Callable[[str], None]) -> dict[str, Any]:
        names = inputs.keys()
        name = next((each for each in ("input_ids", "decoder_input_ids") if each in names), None)
        length = inputs[name].shape()[-1] if name else 0
        generator = self.generator(1, self.limit(length, request), request.get("sampling"))
        generator.set_inputs(inputs)
        return self.finish(generator, generator.token_count(), stream, on_piece)

    def finish(self, generator: Any, length: int, stream: Any, on_piece: Callable[[str], None]) -> dict[str, Any]:
        tokens, pieces = [], []
        while not generator.is_done():
            generator.generate_next_token()
            token = int(generator.get_next_tokens()[0])
            tokens.append(token)
            if token in self.ends:
                break
            pieces.append(stream.decode(token))
            on_piece(pieces[-1])
        return {"tokens": [tokens], "text": "".join(pieces), "prompt_tokens": length}
