"""Bundles in ExecuTorch's runtime: text through its LLM runner, everything else by a loop over the program's methods. Part of
the worker's process: imports nothing of this package but what opens programs, which stands alone too."""

from __future__ import annotations

import importlib.metadata
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch

sys.path.append(str(Path(__file__).parents[1] / "check"))
import executorch_worker  # noqa: E402

#: Outputs of methods that show pictures and sounds, and what stands for one in a prompt: a constant method, or a setting.
_MEDIA = {
    "vision_encoder": ("pixel_values", ("vision_token_id", "image_token_id"), ("image_token_id", "image_token_index")),
    "audio_encoder": ("input_features", ("audio_token_id",), ("audio_token_id", "audio_token_index")),
}


def drawing(sampling: dict[str, Any]) -> Callable[[torch.Tensor], int]:
    """Draws a token by logits: among the ``top_k`` best, then the fewest of these that are as likely as ``top_p`` together."""
    generator = torch.Generator().manual_seed(sampling["seed"])

    def pick(logits: torch.Tensor) -> int:
        best, tokens = (logits.float() / sampling["temperature"]).sort(descending=True)
        if sampling["top_k"]:
            best, tokens = best[: sampling["top_k"]], tokens[: sampling["top_k"]]
        shares = best.softmax(0)
        kept = int((shares.cumsum(0) - shares < sampling["top_p"]).sum())
        return int(tokens[torch.multinomial(shares[:kept], 1, generator=generator)])

    return pick


class Session:
    def __init__(self, folder: str) -> None:
        self.version = importlib.metadata.version("executorch")
        self.folder = Path(folder)
        self.file = self.folder / "model.pte"
        self.program = executorch_worker.open_program(self.file)
        self.names = set(self.program.method_names)
        self._methods: dict[str, Callable[[list[Any]], list[Any]]] = {}
        self._tokenizer: Any = None
        if not self.names & {"forward", "text_decoder"}:
            raise ValueError(f"{self.file} has methods {', '.join(sorted(self.names))}, none of which generates")
        self.decoder = "forward" if "forward" in self.names else "text_decoder"
        if self.program.metadata(self.decoder).num_inputs() < 2:
            raise ValueError(f"{self.decoder} takes no positions: it was not exported for a task that generates")

    # ---- what the program and the files beside it say

    def call(self, method: str, *inputs: Any) -> torch.Tensor:
        if method not in self._methods:
            self._methods[method] = executorch_worker.open_method(self.program, method)
        return self._methods[method](list(inputs))[0]

    def constant(self, name: str) -> list[Any]:
        """What a method without inputs returns; empty if there is none."""
        return list(executorch_worker.open_method(self.program, name)([])) if name in self.names else []

    def setting(self, *names: str) -> list[int]:
        """Of generation_config.json, then config.json: the first that is there."""
        for file in ("generation_config.json", "config.json"):
            path = self.folder / file
            found = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            for name in names:
                if (value := found.get(name)) is not None:
                    return value if isinstance(value, list) else [value]
        return []

    @property
    def ends(self) -> set[int]:
        return set(self.constant("get_eos_ids") or self.setting("eos_token_id"))

    @property
    def limit(self) -> int:
        """Tokens of a prompt and of what is generated."""
        return int((self.constant("get_max_context_len") or self.constant("get_max_seq_len"))[0])

    def longest(self, method: str) -> int:
        """Tokens that one call takes."""
        return self.program.metadata(method).input_tensor_meta(0).sizes()[1]

    # ---- tokens

    def ids(self, rows: list[list[int]], count: int) -> list[list[int]]:
        """One row after the other: programs have room for one."""
        return [list(self.generate(self.prompt_inputs(torch.tensor([row])), count)) for row in rows]

    def prompt_inputs(self, ids: torch.Tensor) -> dict[str, torch.Tensor]:
        if "encoder" in self.names:
            return {"encoded": self.call("encoder", ids)}
        return {"embeddings": self.embedded(ids)} if "token_embedding" in self.names else {"tokens": ids}

    def embedded(self, ids: torch.Tensor) -> torch.Tensor:
        parts = ids.split(self.longest("token_embedding"), dim=1)
        return torch.cat([self.call("token_embedding", part) for part in parts], dim=1)

    def generate(
        self, prompt: dict[str, torch.Tensor], count: int, sampling: dict[str, Any] | None = None
    ) -> Iterator[int]:
        """New tokens, up to and with one that ends the text: that of the best logit, or drawn."""
        pick = drawing(sampling) if sampling else lambda logits: int(logits.argmax())
        encoded = prompt.get("encoded")
        if encoded is not None:
            start = self.constant("decoder_start_token_id") or self.setting("decoder_start_token_id", "bos_token_id")
            given = prompt.get("tokens", torch.tensor([[int(start[0])]]))
        else:
            given = prompt["embeddings"] if "embeddings" in prompt else prompt["tokens"]
        longest, position, ends, limit = self.longest(self.decoder), 0, self.ends, self.limit
        if given.shape[1] >= limit:
            raise ValueError(f"the prompt has {given.shape[1]} tokens, the program takes {limit}")
        for _ in range(min(count, limit - given.shape[1])):
            for part in given.split(longest, dim=1):
                positions = torch.arange(position, position + part.shape[1])
                inputs = [part, positions] if encoded is None else [part, encoded, positions]
                logits = self.call(self.decoder, *inputs)
                position += part.shape[1]
            token = pick(logits[0, -1])
            yield token
            if token in ends:
                return
            given = torch.tensor([[token]])
            if "embeddings" in prompt:
                given = self.embedded(given)

    # ---- texts

    @property
    def tokenizer(self) -> Any:
        if self._tokenizer is None:
            from pytorch_tokenizers import CppHFTokenizer

            self._tokenizer = CppHFTokenizer()
            self._tokenizer.load(str(self.folder / "tokenizer.json"))
        return self._tokenizer

    def encode(self, texts: list[str], *, special: bool = True) -> list[list[int]]:
        """``special``: with the tokens that the tokenizer puts around a text."""
        return [list(self.tokenizer.encode(text, int(special), int(special))) for text in texts]

    def piece(self, token: int) -> str:
        try:
            return self.tokenizer.decode(token, True)
        except (RuntimeError, UnicodeDecodeError):  # half a letter
            return "\ufffd"

    def text(self, request: dict[str, Any], on_piece: Callable[[str], None]) -> dict[str, Any]:
        if request.get("images") or request.get("audios"):
            raise ValueError("pictures and sounds come prepared, as tensors")
        prompt = self.chat(request["text"], request.get("system", "")) if request.get("chat") else request["text"]
        special = not request.get("chat")  # a chat template has them itself
        ids = self.encode([prompt], special=special)[0]
        if self.decoder == "forward" and not request.get("sampling"):  # the runner has neither seed nor top_k
            try:
                return self.by_runner(prompt, special, len(ids), request["max_new_tokens"], on_piece)
            except UnicodeDecodeError:  # of a letter whose bytes are several tokens; the runner cannot go on
                pass
        return self.finish(self.prompt_inputs(torch.tensor([ids])), len(ids), request, on_piece)

    def by_runner(
        self, prompt: str, special: bool, length: int, count: int, on_piece: Callable[[str], None]
    ) -> dict[str, Any]:
        """By ExecuTorch's own runner, as applications do it."""
        from executorch.extension.llm.runner import GenerationConfig, TextLLMRunner

        data = self.file.with_suffix(".ptd")
        runner = TextLLMRunner(str(self.file), str(self.folder / "tokenizer.json"), str(data) if data.exists() else None)
        settings = GenerationConfig(echo=False, max_new_tokens=min(count, self.limit - length), temperature=0.0,
                                    num_bos=int(special), num_eos=int(special))  # fmt: skip
        pieces: list[str] = []
        runner.generate(prompt, settings, pieces.append)
        for piece in pieces:
            on_piece(piece)
        return {"tokens": [[]], "new_tokens": len(pieces), "text": "".join(pieces), "prompt_tokens": length}

    def finish(
        self, prompt: dict[str, torch.Tensor], length: int, request: dict[str, Any], on_piece: Callable[[str], None]
    ) -> dict[str, Any]:
        tokens, text = [], ""
        has_text = (self.folder / "tokenizer.json").is_file()
        for token in self.generate(prompt, request["max_new_tokens"], request.get("sampling")):
            tokens.append(token)
            piece = "" if token in self.ends or not has_text else self.piece(token)
            text += piece
            on_piece(piece)
        return {"tokens": [tokens], "text": text, "prompt_tokens": length}

    def chat(self, text: str, system: str = "") -> str:
        try:
            from jinja2.sandbox import ImmutableSandboxedEnvironment
        except ImportError as error:
            raise ValueError("chat templates need jinja2: install it, or give the prompt as it is (--raw)") from error
        settings = json.loads((self.folder / "tokenizer_config.json").read_text(encoding="utf-8"))
        file = self.folder / "chat_template.jinja"
        template = file.read_text(encoding="utf-8") if file.is_file() else settings["chat_template"]
        names = {name: value["content"] if isinstance(value, dict) else value
                 for name, value in settings.items() if name.endswith("_token") and value}  # fmt: skip
        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        messages = [*([{"role": "system", "content": system}] if system else []), {"role": "user", "content": text}]
        return environment.from_string(template).render(messages=messages, add_generation_prompt=True, **names)

    # ---- pictures and sounds

    def tensors(self, request: dict[str, Any], on_piece: Callable[[str], None]) -> dict[str, Any]:
        """Inputs of the file ``tensors``, as processors make them."""
        import numpy

        with numpy.load(request["tensors"], allow_pickle=False) as stored:
            given = {name: torch.from_numpy(stored[name]) for name in stored.files}
        ids = given["input_ids"].long() if "input_ids" in given else None
        if "encoder" in self.names:
            features = next(given[name] for name in ("input_features", "input_values", "input_ids") if name in given)
            prompt = {"encoded": self.call("encoder", features)}
            if (start := given.get("decoder_input_ids")) is not None:
                prompt["tokens"] = start.long()
            return self.finish(prompt, features.shape[1], request, on_piece)
        if ids is None:
            raise ValueError("there are no input_ids among the tensors")
        embeddings = self.embedded(ids)
        for method, (name, constants, settings) in _MEDIA.items():
            if name not in given:
                continue
            if method not in self.names:
                raise ValueError(f"the program has no {method}")
            marks = [value for constant in constants for value in self.constant(constant)] or self.setting(*settings)
            features = self.call(method, given[name])
            places = ids == int(marks[0])
            if int(places.sum()) != features.numel() // features.shape[-1]:
                raise ValueError(f"the prompt has {int(places.sum())} places for {features.numel() // features.shape[-1]} "
                                 f"features of {name}")  # fmt: skip
            embeddings[places] = features.reshape(-1, features.shape[-1]).to(embeddings.dtype)
        return self.finish({"embeddings": embeddings}, ids.shape[1], request, on_piece)

    def prepare(self, request: dict[str, Any]) -> list[str]:
        raise ValueError("the runtime has no processor: transformers prepares pictures and sounds")
