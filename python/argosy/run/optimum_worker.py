"""Bundles in Optimum. Part of the worker's process: imports nothing of this package."""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import transformers
from optimum import onnxruntime as optimum_onnxruntime
from transformers.models.auto.modeling_auto import MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES


class Session:
    def __init__(self, folder: str) -> None:
        self.version = importlib.metadata.version("optimum-onnx")
        self.folder = Path(folder)
        self.config = json.loads((self.folder / "config.json").read_text(encoding="utf-8"))
        self.is_seq2seq = bool(self.config.get("is_encoder_decoder"))
        if self.is_seq2seq:
            is_speech = self.config["model_type"] in MODEL_FOR_SPEECH_SEQ_2_SEQ_MAPPING_NAMES
            kind = "ORTModelForSpeechSeq2Seq" if is_speech else "ORTModelForSeq2SeqLM"
        elif any(name.endswith("ForCausalLM") or "LMHead" in name for name in self.config.get("architectures") or []):
            kind = "ORTModelForCausalLM"
        else:
            raise ValueError(f"{self.config.get('architectures')} generates no text; open the bundle by its ORTModelFor… class")
        self.model = getattr(optimum_onnxruntime, kind).from_pretrained(folder, local_files_only=True)
        self._tokenizer: Any = None

    @property
    def tokenizer(self) -> Any:
        if self._tokenizer is None:
            self._tokenizer = transformers.AutoTokenizer.from_pretrained(self.folder, local_files_only=True)
        return self._tokenizer

    def encode(self, texts: list[str]) -> list[list[int]]:
        return [self.tokenizer(text)["input_ids"] for text in texts]

    def ids(self, rows: list[list[int]], count: int, sampling: dict[str, Any] | None = None) -> list[list[int]]:
        longest = max(map(len, rows))
        pad = self.model.generation_config.pad_token_id or 0
        ids = torch.tensor([[pad] * (longest - len(row)) + row for row in rows])
        mask = torch.tensor([[0] * (longest - len(row)) + [1] * len(row) for row in rows])
        if self.is_seq2seq:
            ids = torch.tensor([row + [pad] * (longest - len(row)) for row in rows])
            mask = torch.tensor([[1] * len(row) + [0] * (longest - len(row)) for row in rows])
        options: dict[str, Any] = {"do_sample": False}
        if sampling:
            torch.manual_seed(sampling["seed"])
            options = {"do_sample": True, **{name: sampling[name] for name in ("temperature", "top_k", "top_p")}}
        made = self.model.generate(input_ids=ids, attention_mask=mask, num_beams=1, max_new_tokens=count, **options)
        new = made[:, 1:] if self.is_seq2seq else made[:, longest:]
        return [self.up_to_end(row) for row in new.tolist()]

    def up_to_end(self, tokens: list[int]) -> list[int]:
        ends = self.model.generation_config.eos_token_id
        ends = set(ends if isinstance(ends, list) else [ends])
        for i, token in enumerate(tokens):
            if token in ends:
                return tokens[: i + 1]
        return tokens

    def text(self, request: dict[str, Any], on_piece: Callable[[str], None]) -> dict[str, Any]:
        if request.get("images") or request.get("audios"):
            raise ValueError("images and audio are not run in Optimum here; open the bundle by its ORTModelFor… class")
        text = request["text"]
        if request.get("chat"):
            system = [{"role": "system", "content": request["system"]}] if request.get("system") else []
            messages = [*system, {"role": "user", "content": text}]
            ids = self.tokenizer.apply_chat_template(messages, add_generation_prompt=True, return_dict=True)["input_ids"]
        else:
            ids = self.encode([text])[0]
        tokens = self.ids([ids], request["max_new_tokens"], request.get("sampling"))
        made = self.tokenizer.decode(tokens[0], skip_special_tokens=True)
        on_piece(made)
        return {"tokens": tokens, "text": made, "prompt_tokens": len(ids)}
