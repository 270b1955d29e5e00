"""Greedy generation through an exported program, token by token, beside ``generate`` of the eager model."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from ..capture.components import Component, Shape
from ..structures import identifier
from ..capture.swap import replaced
from .calls import error_line
from .engines import EngineError, EngineProcess
from .interface import complete, next_states, wired
from .rows import Row

NEW_TOKENS = 12
TEXTS = ("The capital of France is", "Once upon a time there was a ship that", "def add(a, b):")


@dataclass
class ExpectedTokens:
    """A prompt and what eager generates for it. ``reason``: why it could not, which is no fault of the export."""

    prompt: dict[str, torch.Tensor]
    #: without the prompt, [1, new tokens]
    tokens: torch.Tensor | None
    #: how far eager's best logit is above the next, for each new token; of the size of the logits
    margins: list[float]
    start: int = 0
    seconds: float = 0.0
    reason: str = ""


def expected_tokens(
    model: torch.nn.Module, components: list[Component], folder: Path | None = None, count: int = 3
) -> list[ExpectedTokens]:
    """For ``count`` prompts: words where ``folder`` has a tokenizer, else random ids. Models that generate no text from
    text or through one encoder have none."""
    names = [component.name for component in components]
    if names[-1:] == ["decode"] and set(names) <= {"prefill", "decode"}:
        prompts = _prompts(model, folder, count)
    elif names == ["encoder", "decoder"]:
        shapes = (Shape(1, 9, 1, 0), Shape(1, 14, 1, 0))[:count]
        prompts = [components[0].inputs(model, shape) for shape in shapes]
    else:
        return []
    return [_generated(model, prompt, names[-1]) for prompt in prompts]


def _prompts(model: torch.nn.Module, folder: Path | None, count: int) -> list[dict[str, torch.Tensor]]:
    from ..capture.twin import Sizes, sample_inputs

    if folder is not None and (folder / "tokenizer.json").is_file():
        try:
            from transformers import AutoTokenizer

            tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
            found = [tokenizer(text, return_tensors="pt")["input_ids"] for text in TEXTS[:count]]
            if all(ids.numel() for ids in found):
                return [{"input_ids": ids} for ids in found]
        except Exception:  # noqa: BLE001 - random ids are as good
            pass
    lengths = (5, 9, 13)[:count]
    return [{"input_ids": sample_inputs(model, Sizes(batch=1, sequence=length), seed=length)["input_ids"]}
            for length in lengths]  # fmt: skip


def _generated(model: torch.nn.Module, prompt: dict[str, torch.Tensor], component: str) -> ExpectedTokens:
    from transformers import GenerationConfig

    own = model.generation_config
    # Nothing but the best logit decides: no penalties, no forced or final tokens.
    settings = GenerationConfig(max_new_tokens=NEW_TOKENS, do_sample=False, num_beams=1, eos_token_id=None,
                                pad_token_id=own.pad_token_id, bos_token_id=own.bos_token_id,
                                decoder_start_token_id=own.decoder_start_token_id,
                                return_dict_in_generate=True, output_logits=True)  # fmt: skip
    start = time.perf_counter()
    try:
        with torch.no_grad():
            given = dict(prompt)
            if "input_ids" in given and "attention_mask" not in given:
                given["attention_mask"] = torch.ones_like(given["input_ids"])
            # In place of the model's own, which would fill what is None here.
            with replaced(model, "generation_config", settings):
                made = model.generate(**given)
        steps = torch.stack([step[0].float() for step in made.logits])
        tokens = made.sequences[:, -len(made.logits) :]
        first = int(made.sequences[0, 0])
    except Exception as error:  # noqa: BLE001 - generate runs code of the model's own
        return ExpectedTokens(prompt, None, [], reason=f"generate of the eager model fails: {error_line(error)}")
    best = steps.topk(2, dim=-1).values
    margins = ((best[:, 0] - best[:, 1]) / steps.abs().amax(-1).clamp_min(1.0)).tolist()
    return ExpectedTokens(prompt, tokens, margins, first, time.perf_counter() - start)


def run_tokens(
    engine: EngineProcess, manifest: Mapping[str, Any], expected: ExpectedTokens, tolerance: float
) -> Row:
    """Tokens must agree up to the first whose two best logits are closer than the tolerance allows for."""
    interfaces = {each["name"]: each for each in manifest["components"]}
    name = "decoder" if "decoder" in interfaces else "decode"
    length = next(iter(expected.prompt.values())).shape[1]
    wanted = NEW_TOKENS if expected.tokens is None else expected.tokens.shape[1]
    row = Row(name, "greedy", f"prompt of {length}, {wanted} new tokens", None, seconds_model=expected.seconds)
    if expected.tokens is None:
        row.note = expected.reason
        return row
    start = time.perf_counter()
    try:
        tokens = _greedy(engine, manifest, interfaces, expected, wanted)
    except LookupError as error:
        row.note = str(error)
        return row
    except EngineError as error:
        row.ok, row.note = False, str(error)
        return row
    row.seconds_program = time.perf_counter() - start
    same = [ours == theirs for ours, theirs in zip(tokens, expected.tokens[0].tolist(), strict=True)]
    agreed = wanted if all(same) else same.index(False)
    row.tokens = (agreed, wanted)
    if agreed == wanted:
        row.ok = True
    else:
        margin = expected.margins[agreed]
        row.ok = margin <= 2 * tolerance  # each of the two logits may be off by that much
        row.note = f"token {agreed + 1} differs, its two best logits are {margin:.1e} apart"
        if row.ok:
            row.note += ", a near tie"
    return row


def _greedy(engine: EngineProcess, manifest: Mapping[str, Any], interfaces: Mapping[str, Any],
            expected: ExpectedTokens, count: int) -> list[int]:  # fmt: skip
    if "decoder" in interfaces:
        target, argument = interfaces["decoder"], "decoder_input_ids"
        prompt = complete(interfaces["encoder"], _known(interfaces["encoder"], expected.prompt))
        encoded = _by_dotted_name(interfaces["encoder"], engine.call("encoder", prompt)[0])
        constant = _known(target, {**prompt, **wired(manifest["wiring"], "encoder", "decoder", encoded, target)})
        row = torch.tensor([[expected.start]])
    else:
        target, argument, constant, row = interfaces["decode"], "input_ids", {}, expected.prompt["input_ids"]
    longest = (target["dims"].get("sequence") or {}).get("max") or row.shape[1]
    states: dict[str, torch.Tensor] = {}
    tokens: list[int] = []
    pending = list(row.split(min(longest, row.shape[1]), dim=1))
    while len(tokens) < count:
        new = pending.pop(0)
        inputs = complete(target, {argument: new.contiguous(), **constant, **states})
        outputs = _by_dotted_name(target, engine.call(target["name"], inputs)[0])
        states = next_states(target, outputs)
        if not pending:
            tokens.append(int(outputs["logits"][0, -1].argmax()))
            pending.append(torch.tensor([[tokens[-1]]]))
    return tokens


def _known(interface: Mapping[str, Any], tensors: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    names = {item["name"] for item in interface["inputs"]}
    return {name: tensor for name, tensor in tensors.items() if name in names}


def _by_dotted_name(interface: Mapping[str, Any], outputs: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    names = {identifier(output["name"]): output["name"] for output in interface["outputs"]}
    return {names.get(name, name): tensor for name, tensor in outputs.items()}
